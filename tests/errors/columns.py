"""One call, said in every binding and version, and the refusal that answers it in the form of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
import httpx
from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToJson, ParseDict
from google.protobuf.message_factory import GetMessageClass
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from protocol.ids import new_id
from tests.fuzz.judging import give_away
from tests.support.deployment import GrpcServer, Web
from tests.support.refusals import CODES, Refused, refusal_of_grpc, refusal_of_rest

Json = dict[str, Any]
_V0_3_METHODS = {
    "SendMessage": "message/send",
    "SendStreamingMessage": "message/stream",
    "GetTask": "tasks/get",
    "CancelTask": "tasks/cancel",
    "CreateTaskPushNotificationConfig": "tasks/pushNotificationConfig/set",
    "GetTaskPushNotificationConfig": "tasks/pushNotificationConfig/get",
    "GetExtendedAgentCard": "agent/getAuthenticatedExtendedCard",
}


@dataclass(frozen=True)
class Host:
    """The processes that are asked, and the caller's key."""

    client: httpx.Client
    web: Web
    grpc_server: GrpcServer
    key: str


@dataclass(frozen=True)
class Ask:
    """A call: an operation by its name in 1.0 with the ids or the parts that it takes, and what goes beside it."""

    operation: str = "GetTask"
    task: str = "none"
    config: str = "none"
    parts: list[Json] | None = None
    slug: str = "echo"
    with_key: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    # Bytes in the place of the message of the call.
    raw: bytes | None = None
    # Another method or path than that of the operation, where a binding has them.
    verb: str = ""
    path: str = ""

    def all_headers(self, host: Host) -> dict[str, str]:
        """Headers or metadata."""
        return ({"authorization": f"Bearer {host.key}"} if self.with_key else {}) | self.headers


class Column:
    """A binding in a version."""

    binding = ""

    def __init__(self, version: str) -> None:
        self.version = version
        self.name = f"{self.binding}-{version}"

    @classmethod
    def named(cls, name: str) -> Self:
        """The column with this name."""
        (found,) = [column for column in COLUMNS if column.name == name]
        return found  # type: ignore[return-value]

    def refusal(self, host: Host, ask: Ask) -> tuple[Refused, str]:
        """(the error that answers a call, all of the reply as text)."""
        raise NotImplementedError

    def reply(self, host: Host, ask: Ask) -> Json:
        """The document that answers a call."""
        raise NotImplementedError

    def params(self, ask: Ask) -> Json:
        """Parameters of the call in this column's words."""
        if ask.parts is not None:
            return {"message": self.message(ask.parts)}
        if ask.operation.endswith("PushNotificationConfig"):
            return self.config(ask)
        return {} if ask.operation == "GetExtendedAgentCard" else {"id": ask.task}

    def message(self, parts: list[Json]) -> Json:
        """A message with these parts of 1.0."""
        if self.version == "1.0":
            return {"messageId": new_id(), "role": "ROLE_USER", "parts": parts}
        old = [
            {"kind": "text", "text": part["text"]}
            if "text" in part
            else {"kind": "file", "file": {"bytes": part["raw"], "mimeType": part["mediaType"]}}
            for part in parts
        ]
        return {"kind": "message", "messageId": new_id(), "role": "user", "parts": old}

    def config(self, ask: Ask) -> Json:
        """Parameters of the operations on push configs."""
        creates = ask.operation.startswith("Create")
        if self.version == "1.0":
            return {"taskId": ask.task} | ({"url": "https://e.test/"} if creates else {"id": ask.config})
        if creates:
            return {"taskId": ask.task, "pushNotificationConfig": {"url": "https://e.test/"}}
        return {"id": ask.task, "pushNotificationConfigId": ask.config}


class JsonRpc(Column):
    """JSON-RPC over HTTP."""

    binding = "jsonrpc"

    def refusal(self, host: Host, ask: Ask) -> tuple[Refused, str]:
        response = self._response(host, ask)
        if ask.verb:  # only POST is JSON-RPC
            return refusal_of_rest(response.status_code, response.json()), response.text
        return refused_by_rpc(response.json(), response.status_code), response.text

    def reply(self, host: Host, ask: Ask) -> Json:
        document: Json = self._response(host, ask).json()
        return document

    def envelope(self, ask: Ask) -> bytes:
        """The request."""
        if ask.raw is not None:
            return ask.raw
        method = _V0_3_METHODS.get(ask.operation, ask.operation) if self.version == "0.3" else ask.operation
        return json.dumps({"jsonrpc": "2.0", "id": "q1", "method": method, "params": self.params(ask)}).encode()

    def _response(self, host: Host, ask: Ask) -> httpx.Response:
        headers = {"content-type": "application/json"} | ask.all_headers(host)
        url = host.web.agent_url(ask.slug)
        return host.client.request(ask.verb or "POST", url, content=self.envelope(ask), headers=headers)


class WebSocket(JsonRpc):
    """JSON-RPC over WebSocket. A refused connection is told like a refused request over HTTP."""

    binding = "websocket"

    def refusal(self, host: Host, ask: Ask) -> tuple[Refused, str]:
        address = host.web.agent_url(ask.slug) + (ask.path or "/ws")
        if ask.verb:  # no connection is asked for
            response = host.client.request(ask.verb, address, headers=ask.all_headers(host))
            return refusal_of_rest(response.status_code, response.json()), response.text
        url = address.replace("http:", "ws:")
        try:
            with connect(url, additional_headers=ask.all_headers(host), proxy=None) as connection:
                connection.send(self.envelope(ask), text=True)
                text = connection.recv(timeout=30)
        except InvalidStatus as refused:
            body = refused.response.body or b""
            return refused_by_rpc(json.loads(body), refused.response.status_code), body.decode()
        assert isinstance(text, str)
        return refused_by_rpc(json.loads(text), None), text


class Rest(Column):
    """HTTP+JSON."""

    binding = "rest"

    def refusal(self, host: Host, ask: Ask) -> tuple[Refused, str]:
        verb, path, body = self._place(ask)
        headers = {"content-type": "application/json"} | ask.all_headers(host)
        url = host.web.agent_url(ask.slug) + ("/v1" if self.version == "0.3" else "") + (ask.path or path)
        content = ask.raw if ask.raw is not None else b"" if body is None else json.dumps(body).encode()
        response = host.client.request(ask.verb or verb, url, content=content, headers=headers)
        assert response.headers["content-type"] in ("application/json", "application/a2a+json")
        document = response.json()
        if self.version == "1.0":
            return refusal_of_rest(response.status_code, document), response.text
        assert list(document) == ["error", "type", "code", "message", "data"]
        refused = Refused(document["code"], response.status_code, document["message"], document["data"])
        assert CODES[refused.reason][0] == refused.code
        assert CODES[refused.reason][2] == refused.status
        return refused, response.text

    def _place(self, ask: Ask) -> tuple[str, str, Json | None]:
        configs = f"/tasks/{ask.task}/pushNotificationConfigs"
        match ask.operation:
            case "SendMessage":
                return "POST", "/message:send", self.params(ask)
            case "SendStreamingMessage":
                return "POST", "/message:stream", self.params(ask)
            case "CancelTask":
                return "POST", f"/tasks/{ask.task}:cancel", {}
            case "CreateTaskPushNotificationConfig":
                body = {"url": "https://e.test/"}
                old: Json = {"config": {"pushNotificationConfig": body}}
                return "POST", configs, body if self.version == "1.0" else old
            case "GetTaskPushNotificationConfig":
                return "GET", f"{configs}/{ask.config}", None
            case "GetExtendedAgentCard":
                return "GET", "/extendedAgentCard" if self.version == "1.0" else "/card", None
        return "GET", f"/tasks/{ask.task}", None


class Grpc(Column):
    """gRPC; the agent is named by metadata."""

    binding = "grpc"

    def refusal(self, host: Host, ask: Ask) -> tuple[Refused, str]:
        module: Any = a2a_pb2 if self.version == "1.0" else a2a_v0_3_pb2
        service = module.DESCRIPTOR.services_by_name["A2AService"]
        name = "GetAgentCard" if (self.version, ask.operation) == ("0.3", "GetExtendedAgentCard") else ask.operation
        method = service.methods_by_name.get(name)
        data = ask.raw
        if data is None:
            kind: Any = GetMessageClass(method.input_type) if method else a2a_pb2.GetTaskRequest
            data = ParseDict(self.params(ask), kind(), ignore_unknown_fields=True).SerializeToString()
        metadata = [("a2a-agent", ask.slug), *ask.all_headers(host).items()]
        with host.grpc_server.channel() as channel:
            streams = method is not None and method.server_streaming
            call = (channel.unary_stream if streams else channel.unary_unary)(f"/{service.full_name}/{name}")
            try:
                answer = call(data, timeout=30, metadata=metadata)
                raise AssertionError(list(answer) if streams else MessageToJson(answer))
            except grpc.RpcError as error:
                trailing = [value for _, value in error.trailing_metadata()]
                return refusal_of_grpc(error), f"{error.details()} {trailing!r}"

    def message(self, parts: list[Json]) -> Json:
        if self.version == "1.0":
            return super().message(parts)
        old = [p if "text" in p else {"file": {"fileWithBytes": p["raw"], "mimeType": p["mediaType"]}} for p in parts]
        return {"messageId": new_id(), "role": "ROLE_USER", "content": old}

    def params(self, ask: Ask) -> Json:
        if self.version == "1.0" or ask.parts is not None:
            return super().params(ask)
        if ask.operation == "CreateTaskPushNotificationConfig":
            config = {"pushNotificationConfig": {"url": "https://e.test/"}}
            return {"parent": f"tasks/{ask.task}", "configId": "c", "config": config}
        if ask.operation == "GetTaskPushNotificationConfig":
            return {"name": f"tasks/{ask.task}/pushNotificationConfigs/{ask.config}"}
        return {"name": f"tasks/{ask.task}"}


COLUMNS: list[Column] = [kind(version) for kind in (JsonRpc, WebSocket, Rest, Grpc) for version in ("1.0", "0.3")]


def refused_by_rpc(document: Json, status: int | None) -> Refused:
    """The error of a JSON-RPC reply; `status` None where no HTTP carries it."""
    assert list(document) == ["jsonrpc", "id", "error"]
    error = document["error"]
    assert list(error) == ["code", "message", "data"]
    refused = Refused(error["code"], status or 200, error["message"], error["data"])
    code, http, _, _ = CODES[refused.reason]
    assert refused.code == code
    assert status in (None, http)
    return refused


def check_silent(text: str) -> None:
    """Raises AssertionError for a reply that tells of the inside."""
    assert not give_away(text.encode()), text
