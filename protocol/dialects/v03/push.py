"""Push notification configs in 0.3 (§6.8 to §6.10): nested, with a list of schemes."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from protocol import model
from protocol.model import Key, OptionalKey, Text, Wire
from protocol.violations import Violations


class AuthenticationInfo(Wire, kw_only=True):
    """How a webhook wants to be called (0.3 §6.9); the first scheme counts."""

    schemes: list[Text] = field(default_factory=list)
    credentials: str = ""


class PushNotificationConfig(Wire, kw_only=True):
    """Where to report changes (0.3 §6.8)."""

    id: OptionalKey = ""
    url: Text
    token: str = ""
    authentication: AuthenticationInfo | UnsetType = UNSET


class TaskPushNotificationConfig(Wire, kw_only=True):
    """A config and the task that it is for (0.3 §6.10)."""

    task_id: Key
    push_notification_config: PushNotificationConfig


def check_config(config: Any, path: str, out: Violations) -> None:
    """Note credentials that nothing says how to use. Fields that could not be read may hold anything."""
    authentication = getattr(config, "authentication", UNSET)
    if getattr(authentication, "credentials", "") and getattr(authentication, "schemes", None) == []:
        out.add(f"{path}.authentication.schemes", "must have at least one element")


def read_config(config: PushNotificationConfig) -> model.TaskPushNotificationConfig:
    """The 1.0 config of a checked 0.3 one, for no task yet."""
    return model.TaskPushNotificationConfig(
        id=config.id, url=config.url, token=config.token, authentication=read_authentication(config)
    )


def read_authentication(config: PushNotificationConfig) -> model.AuthenticationInfo | UnsetType:
    """How 1.0 says what a config says of authentication; no scheme is none."""
    given = config.authentication
    if given is UNSET or not given.schemes:
        return UNSET
    return model.AuthenticationInfo(scheme=given.schemes[0], credentials=given.credentials)


def write_config(config: model.TaskPushNotificationConfig) -> PushNotificationConfig:
    """The 0.3 config of a 1.0 one."""
    given = config.authentication
    authentication: AuthenticationInfo | UnsetType = UNSET
    if given is not UNSET:
        authentication = AuthenticationInfo(schemes=[given.scheme], credentials=given.credentials)
    return PushNotificationConfig(id=config.id, url=config.url, token=config.token, authentication=authentication)


def write_task_config(config: model.TaskPushNotificationConfig) -> TaskPushNotificationConfig:
    """The 0.3 config with its task."""
    return TaskPushNotificationConfig(task_id=config.task_id, push_notification_config=write_config(config))


def write_task_configs(page: model.ListTaskPushNotificationConfigsResponse) -> list[TaskPushNotificationConfig]:
    """The result of tasks/pushNotificationConfig/list (0.3 §7.7), which knows no pages."""
    return [write_task_config(config) for config in page.configs]
