"""Clients of 0.3: an agent in JSON-RPC, and in both forms of HTTP+JSON, without a version header.

Each gives what it reads as the bare `kind` objects that JSON-RPC has, so that one test does for all three.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from protocol.ids import new_id
from tests.support.callers import Caller
from tests.support.events import EventStream
from tests.support.peers import JsonRpcPeer, RestPeer, envelope, in_path
from tests.support.refusals import CODES, Refused

Json = dict[str, Any]


def old_message(content: str | list[Json] = "hi", **members: Any) -> Json:
    """A message of 0.3 with a new messageId: text, or a list of parts."""
    parts = [{"kind": "text", "text": content}] if isinstance(content, str) else content
    return {"kind": "message", "messageId": new_id(), "role": "user", "parts": parts} | members


class OldPeer:
    """One agent, one caller."""

    def send(self, message: Json, configuration: Json | None = None) -> Json:
        """message/send."""
        raise NotImplementedError

    def get(self, id: str, **members: Any) -> Json:
        """tasks/get."""
        raise NotImplementedError

    def cancel(self, id: str) -> Json:
        """tasks/cancel."""
        raise NotImplementedError

    def stream(self, message: Json) -> EventStream:
        """message/stream; the bare event is the one member of each response."""
        raise NotImplementedError

    def resubscribe(self, id: str) -> EventStream:
        """tasks/resubscribe."""
        raise NotImplementedError

    def say(self, content: str | list[Json] = "hi", configuration: Json | None = None, **members: Any) -> Json:
        """message/send with a new message."""
        return self.send(old_message(content, **members), configuration)

    def start(self, content: str = "hold") -> Json:
        """The same without waiting."""
        return self.say(content, {"blocking": False})


class OldJsonRpc(OldPeer):
    """JSON-RPC."""

    def __init__(self, caller: Caller, slug: str) -> None:
        self.rpc = JsonRpcPeer(caller.client, caller.web.port, slug, _headers(caller))

    def call(self, method: str, params: Any = None) -> Any:
        """The result. Raises Refused."""
        return self.rpc.call(method, params)

    def send(self, message: Json, configuration: Json | None = None) -> Json:
        found: Json = self.call("message/send", _params(message, configuration))
        return found

    def get(self, id: str, **members: Any) -> Json:
        found: Json = self.call("tasks/get", {"id": id} | members)
        return found

    def cancel(self, id: str) -> Json:
        found: Json = self.call("tasks/cancel", {"id": id})
        return found

    def stream(self, message: Json) -> EventStream:
        return self._open("message/stream", {"message": message})

    def resubscribe(self, id: str) -> EventStream:
        return self._open("tasks/resubscribe", {"id": id})

    def _open(self, method: str, params: Json) -> EventStream:
        connection = self.rpc._open("POST", self.rpc.path, envelope(method, params).encode())
        if connection.header("content-length") is not None:  # no stream, but the one event that refuses it
            with connection:
                event = connection.read_body().decode()
            assert (event[:6], event[-2:]) == ("data: ", "\n\n")
            self.rpc._refuse(200, "application/json", event[6:-2].encode())
        return EventStream(connection, lambda reply: {"event": reply["result"]})


class _Rest(RestPeer):
    def _refuse(self, status: int, content_type: str | None, body: bytes) -> Any:
        assert content_type == "application/json"
        raise old_refusal(status, json.loads(body))


class OldRest(OldPeer):
    """HTTP+JSON with `kind` objects, as the text of the specification has it."""

    def __init__(self, caller: Caller, slug: str) -> None:
        self.rest = _Rest(caller.client, caller.web.port, slug, _headers(caller))

    def call(self, verb: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """The document that answers. Raises Refused."""
        given = {"content_type": "application/json"} if body is not None else {}
        response = self.rest.ask(verb, f"/v1{path}", body, query, **given)
        if response.status_code != 200:
            self.rest._refuse(response.status_code, response.headers["content-type"], response.content)
        assert response.headers["content-type"] == "application/json"
        return response.json()

    def send(self, message: Json, configuration: Json | None = None) -> Json:
        (found,) = self.call("POST", "/message:send", _params(message, configuration)).values()
        return self.read(found)

    def get(self, id: str, **members: Any) -> Json:
        return read_proto(self.call("GET", f"/tasks/{in_path(id)}", query=members))

    def cancel(self, id: str) -> Json:
        return read_proto(self.call("POST", f"/tasks/{in_path(id)}:cancel", {"name": f"tasks/{id}"}))

    def stream(self, message: Json) -> EventStream:
        return self._open("POST", "/message:stream", json.dumps(_params(message, None)), self.read)

    def resubscribe(self, id: str, verb: str = "GET") -> EventStream:
        return self._open(verb, f"/tasks/{in_path(id)}:subscribe", "", read_proto)

    def read(self, given: Json) -> Json:
        """What was answered to a message, in its form."""
        return given

    def _open(self, verb: str, path: str, body: str, read: Any) -> EventStream:
        connection = self.rest._open(verb, f"{self.rest.root}/v1{path}", body.encode())

        def unwrap(reply: Json) -> Json:
            ((name, event),) = reply.items()
            bare = read(event)
            kinds = {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}
            assert bare["kind"] == kinds.get(name, name)
            return {"event": bare}

        return EventStream(connection, unwrap)


class OldProtoRest(OldRest):
    """HTTP+JSON with the JSON of the protobuf definition, as the SDKs send it."""

    def send(self, message: Json, configuration: Json | None = None) -> Json:
        params = _params(write_proto(message), configuration)
        # Protobuf has no way to leave `blocking` open but to leave out all of the configuration.
        (found,) = self.call("POST", "/message:send", params).values()
        return self.read(found)

    def stream(self, message: Json) -> EventStream:
        return self._open("POST", "/message:stream", json.dumps({"message": write_proto(message)}), self.read)

    def read(self, given: Json) -> Json:
        return read_proto(given)


OLD_PEERS: dict[str, type[OldJsonRpc] | type[OldRest]] = {
    "jsonrpc": OldJsonRpc,
    "rest": OldRest,
    "proto": OldProtoRest,
}


def old_refusal(status: int, reply: Json) -> Refused:
    """The error of HTTP+JSON in 0.3."""
    assert list(reply) == ["error", "type", "code", "message", "data"]
    refused = Refused(reply["code"], status, reply["message"], reply["data"])
    assert (CODES[refused.reason][0], CODES[refused.reason][2]) == (reply["code"], status), refused
    return refused


def write_proto(message: Json) -> Json:
    """The protobuf form of a message."""
    said = {name: value for name, value in message.items() if name not in ("kind", "parts", "role")}
    return said | {"role": f"ROLE_{message['role'].upper()}", "content": [_write_part(p) for p in message["parts"]]}


def _write_part(part: Json) -> Json:
    rest = {"metadata": part["metadata"]} if "metadata" in part else {}
    if part["kind"] == "data":
        return {"data": {"data": part["data"]}} | rest
    if part["kind"] == "text":
        return {"text": part["text"]} | rest
    file = dict(part["file"])
    if "bytes" in file:
        file["fileWithBytes"] = base64.b64encode(file.pop("bytes").encode()).decode()
    else:
        file["fileWithUri"] = file.pop("uri")
    return {"file": file} | rest


_STATES = {"CANCELLED": "canceled", "INPUT_REQUIRED": "input-required", "AUTH_REQUIRED": "auth-required"}


def read_proto(given: Json) -> Json:
    """The `kind` object of a task, a message or an event in its protobuf form."""
    if "content" in given:
        return _read_message(given)
    if "artifact" in given:
        return {"kind": "artifact-update"} | given | {"artifact": _read_artifact(given["artifact"])}
    read = {"kind": "status-update" if "final" in given else "task"} | given | {"status": _read_status(given["status"])}
    if "artifacts" in given:
        read["artifacts"] = [_read_artifact(artifact) for artifact in given["artifacts"]]
    if "history" in given:
        read["history"] = [_read_message(message) for message in given["history"]]
    return read


def _read_status(status: Json) -> Json:
    name = status["state"].removeprefix("TASK_STATE_")
    read = status | {"state": _STATES.get(name, name.lower())}
    return read | ({"message": _read_message(status["message"])} if "message" in status else {})


def _read_artifact(artifact: Json) -> Json:
    return artifact | {"parts": [_read_part(part) for part in artifact["parts"]]}


def _read_message(message: Json) -> Json:
    read = {"kind": "message"} | message
    read["role"] = message["role"].removeprefix("ROLE_").lower()
    read["parts"] = [_read_part(part) for part in read.pop("content")]
    return read


def _read_part(part: Json) -> Json:
    (kind,) = set(part) - {"metadata"}
    read = {"kind": kind} | part
    if kind == "data":
        read["data"] = part["data"]["data"]
    elif kind == "file":
        file = dict(part["file"])
        if "fileWithBytes" in file:
            file["bytes"] = base64.b64decode(file.pop("fileWithBytes")).decode()
        else:
            file["uri"] = file.pop("fileWithUri")
        read["file"] = file
    return read


def _headers(caller: Caller) -> dict[str, str]:
    return {name: value for name, value in caller.headers.items() if name != "a2a-version"}


def _params(message: Json, configuration: Json | None) -> Json:
    return {"message": message} | ({} if configuration is None else {"configuration": configuration})
