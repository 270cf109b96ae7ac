"""The service of A2A 0.3: `a2a.v1.A2AService`. Its messages are the protobuf form of the 0.3 dialect.

Tasks and configs are resources with names: `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{id}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

from a2a_host.bindings import methods
from a2a_host.bindings.cards import extended_card
from a2a_host.bindings.grpc.convert_in import json_bytes, members_of
from a2a_host.bindings.grpc.service import Rpc
from agents.cards import build_card
from protocol.codec import encode
from protocol.dialects.v03 import V0_3_PROTO
from protocol.errors import InvalidParamsError, Violation
from protocol.requests import GetExtendedAgentCardRequest
from tasks_app.operations import Call

NAME = "a2a.v1.A2AService"
DIALECT = V0_3_PROTO

_TASK = re.compile(r"tasks/([^/]+)")
_CONFIGS = re.compile(r"tasks/([^/]+)(?:/pushNotificationConfigs)?")
_CONFIG = re.compile(r"tasks/([^/]+)/pushNotificationConfigs/(.+)", re.DOTALL)
_encode = msgspec.json.encode


def _named(field: str, form: re.Pattern[str], shown: str, *members: str) -> Callable[[Message], bytes]:
    """A reader that puts the ids of the resource name in `field` in its place, as `members`.

    It raises InvalidParamsError for any other name.
    """

    def read(message: Message) -> bytes:
        given = members_of(message)
        match = form.fullmatch(given.pop(field, ""))
        if match is None:
            raise InvalidParamsError([Violation(field, f"must be {shown}")])
        return _encode(dict(zip(members, match.groups(), strict=True)) | given)

    return read


_read_task = _named("name", _TASK, "tasks/{id}", "id")
_read_configs = _named("parent", _CONFIGS, "tasks/{id}", "id")
_read_config = _named("name", _CONFIG, "tasks/{id}/pushNotificationConfigs/{id}", "id", "pushNotificationConfigId")
_read_new_config = _named("parent", _CONFIGS, "tasks/{id}", "taskId")


def shape_card(card: dict[str, Any]) -> dict[str, Any]:
    """A 0.3 card as the JSON of its protobuf definition, which names security schemes and requirements otherwise."""
    shaped = _shape_security(card)
    if "securitySchemes" in card:
        shaped["securitySchemes"] = {name: _shape_scheme(given) for name, given in card["securitySchemes"].items()}
    shaped["skills"] = [_shape_security(skill) for skill in card["skills"]]
    return shaped


_SCHEMES = {
    "apiKey": "apiKeySecurityScheme",
    "http": "httpAuthSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "openIdConnect": "openIdConnectSecurityScheme",
    "mutualTLS": "mtlsSecurityScheme",
}


def _shape_scheme(given: dict[str, Any]) -> dict[str, Any]:
    scheme = {("location" if name == "in" else name): value for name, value in given.items() if name != "type"}
    return {_SCHEMES[given["type"]]: scheme}


def _shape_security(given: dict[str, Any]) -> dict[str, Any]:
    """A card or a skill."""
    if "security" not in given:
        return dict(given)
    requirements = [{"schemes": {name: {"list": scopes} for name, scopes in one.items()}} for one in given["security"]]
    return {**given, "security": requirements}


async def _agent_card(call: Call, request: GetExtendedAgentCardRequest) -> bytes:
    """The card of the agent as this caller may see it."""
    if call.entry.has_extended_card and call.caller.authenticated:
        return extended_card(call)
    return encode(build_card(call.entry, call.find_base_url()))


GET_AGENT_CARD = replace(methods.GET_EXTENDED_CARD, run=_agent_card, check=None)
"""GetAgentCard is both of GetExtendedAgentCard and the public card."""

METHODS: dict[str, Rpc] = {
    "SendMessage": Rpc(methods.SEND_MESSAGE, pb.SendMessageRequest, pb.SendMessageResponse),
    "SendStreamingMessage": Rpc(methods.SEND_STREAMING_MESSAGE, pb.SendMessageRequest, pb.StreamResponse),
    "GetTask": Rpc(methods.GET_TASK, pb.GetTaskRequest, pb.Task, _read_task),
    "CancelTask": Rpc(methods.CANCEL_TASK, pb.CancelTaskRequest, pb.Task, _read_task),
    "TaskSubscription": Rpc(methods.RESUBSCRIBE_TO_TASK, pb.TaskSubscriptionRequest, pb.StreamResponse, _read_task),
    "CreateTaskPushNotificationConfig": Rpc(
        methods.CREATE_PUSH_CONFIG,
        pb.CreateTaskPushNotificationConfigRequest,
        pb.TaskPushNotificationConfig,
        _read_new_config,
    ),
    "GetTaskPushNotificationConfig": Rpc(
        methods.GET_PUSH_CONFIG, pb.GetTaskPushNotificationConfigRequest, pb.TaskPushNotificationConfig, _read_config
    ),
    "ListTaskPushNotificationConfig": Rpc(
        methods.LIST_PUSH_CONFIGS,
        pb.ListTaskPushNotificationConfigRequest,
        pb.ListTaskPushNotificationConfigResponse,
        _read_configs,
    ),
    "DeleteTaskPushNotificationConfig": Rpc(
        methods.DELETE_PUSH_CONFIG, pb.DeleteTaskPushNotificationConfigRequest, Empty, _read_config
    ),
    "GetAgentCard": Rpc(GET_AGENT_CARD, pb.GetAgentCardRequest, pb.AgentCard, json_bytes, shape_card),
}
"""By their name in the definition."""
