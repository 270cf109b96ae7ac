"""The parameters of the 0.3 HTTP+JSON operations in the JSON of the protobuf definition."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET, UnsetType, field

from protocol import model
from protocol.dialects.v03.proto.messages import Message, read_message
from protocol.dialects.v03.push import PushNotificationConfig, check_config, read_config
from protocol.dialects.v03.requests import create_config
from protocol.model import Count, JsonObject, Key, OptionalKey, Role, Wire
from protocol.requests import CreateTaskPushNotificationConfigRequest, SendMessageConfiguration, SendMessageRequest
from protocol.violations import Violations


class Configuration(Wire, kw_only=True):
    """How the caller wants to be answered. Protobuf cannot tell an absent `blocking` from false: it does not block.

    A `history_length` of 0 is no limit.
    """

    accepted_output_modes: list[str] | UnsetType = UNSET
    push_notification: PushNotificationConfig | UnsetType = UNSET
    history_length: Count = 0
    blocking: bool = False


class SendParams(Wire, kw_only=True):
    """SendMessageRequest. Without a configuration the call blocks."""

    request: Message = field(name="message")  # two names in the definition, and ProtoJSON takes both
    configuration: Configuration | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET


class GivenConfig(Wire, kw_only=True):
    """A config inside of the parameters that create it; the path says which task it is for."""

    push_notification_config: PushNotificationConfig


class CreateConfigParams(Wire, kw_only=True):
    """CreateTaskPushNotificationConfigRequest. The protobuf annotation makes the config the whole body; the text of
    the specification (§7.5) and the SDKs wrap it."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("config", "push_notification_config")

    task_id: Key
    config_id: OptionalKey = ""
    config: GivenConfig | UnsetType = UNSET
    push_notification_config: PushNotificationConfig | UnsetType = UNSET


def check_send(params: SendParams, out: Violations) -> None:
    """Note what is wrong across the fields. Fields that could not be read may hold anything."""
    if getattr(params.request, "role", None) is Role.AGENT:
        out.add("message.role", "must be ROLE_USER in a message to an agent")
    config = getattr(params.configuration, "push_notification", UNSET)
    check_config(config, "configuration.pushNotification", out)


def read_send(params: SendParams) -> SendMessageRequest:
    """The 1.0 request of checked parameters."""
    given = params.configuration
    configuration = UNSET if given is UNSET else _read_configuration(given)
    return SendMessageRequest(
        message=read_message(params.request), configuration=configuration, metadata=params.metadata
    )


def _read_configuration(given: Configuration) -> SendMessageConfiguration:
    config: model.TaskPushNotificationConfig | UnsetType = UNSET
    if given.push_notification is not UNSET:
        config = read_config(given.push_notification)
    return SendMessageConfiguration(
        accepted_output_modes=given.accepted_output_modes or [],
        task_push_notification_config=config,
        history_length=given.history_length or None,
        return_immediately=not given.blocking,
    )


def check_create(params: CreateConfigParams, out: Violations) -> None:
    """Note what is wrong across the fields. Fields that could not be read may hold anything."""
    inner = getattr(params.config, "push_notification_config", UNSET)
    check_config(inner, "config.pushNotificationConfig", out)
    check_config(params.push_notification_config, "pushNotificationConfig", out)


def read_create(params: CreateConfigParams) -> CreateTaskPushNotificationConfigRequest:
    """The 1.0 request of checked parameters."""
    config = params.push_notification_config if params.config is UNSET else params.config.push_notification_config
    assert config is not UNSET
    return create_config(params.task_id, config, params.config_id)
