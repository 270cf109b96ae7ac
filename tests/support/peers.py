"""A client of one agent in each binding, with one interface: what is right in one has to be right in the other.

Every reply is checked for the form that its binding prescribes; an error becomes `Refused`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote, urlencode

import httpx

from protocol.ids import new_id
from tests.support.events import EventStream
from tests.support.refusals import ID, refusal_of_rest, refusal_of_rpc
from tests.support.wire import Connection, request

Content = str | list[Any]
"""What a message says: one text, or parts."""


def message(content: Content = "hi", **members: Any) -> dict[str, Any]:
    """A message with a new messageId: text, or a list of parts."""
    parts = [{"text": content}] if isinstance(content, str) else content
    return {"messageId": new_id(), "role": "ROLE_USER", "parts": parts} | members


def envelope(method: str, params: str | Mapping[str, Any] | None = None, id: Any = ID, **members: Any) -> str:
    """A JSON-RPC request; `params` as text goes in as it is, None leaves it out."""
    head = json.dumps({"jsonrpc": "2.0", "id": id, "method": method} | members, ensure_ascii=False)
    if params is None:
        return head
    text = params if isinstance(params, str) else json.dumps(params, ensure_ascii=False)
    return f'{head[:-1]},"params":{text}}}'


class Peer:
    """One agent, one caller, one binding. Operations take parameters as members, or all of them as JSON text."""

    name: str

    def __init__(self, client: httpx.Client, port: int, slug: str, headers: Mapping[str, str]) -> None:
        self.client = client
        self.port = port
        self.slug = slug
        self.headers = dict(headers)
        self.base = f"http://127.0.0.1:{port}"

    def with_headers(self, **headers: str | None) -> Self:
        """The same with other headers, named like `a2a_version`; None leaves one out."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        merged = {name.lower(): value for name, value in self.headers.items()} | named
        kept = {name: value for name, value in merged.items() if value is not None}
        return type(self)(self.client, self.port, self.slug, kept)

    # What follows is the whole of A2A that the host serves; each binding says how.

    def send(self, params: str | Mapping[str, Any]) -> dict[str, Any]:
        """SendMessage (§3.1.1)."""
        raise NotImplementedError

    def get(self, id: str, **members: Any) -> dict[str, Any]:
        """GetTask (§3.1.3)."""
        raise NotImplementedError

    def list(self, **members: Any) -> dict[str, Any]:
        """ListTasks (§3.1.4)."""
        raise NotImplementedError

    def cancel(self, id: str, **members: Any) -> dict[str, Any]:
        """CancelTask (§3.1.5)."""
        raise NotImplementedError

    def stream(self, params: str | Mapping[str, Any]) -> EventStream:
        """SendStreamingMessage (§3.1.2)."""
        raise NotImplementedError

    def subscribe(self, id: str) -> EventStream:
        """SubscribeToTask (§3.1.6)."""
        raise NotImplementedError

    # Short forms.

    def say(self, content: Content = "hi", *, configuration: Any = None, **members: Any) -> dict[str, Any]:
        """SendMessage with a new message; the task of the reply. `members` are the message's."""
        task: dict[str, Any] = self.send(_params(content, configuration, members))["task"]
        return task

    def start(self, content: str = "hold", **members: Any) -> dict[str, Any]:
        """The same with returnImmediately."""
        return self.say(content, configuration={"returnImmediately": True}, **members)

    def say_streaming(self, content: Content, *, configuration: Any = None, **members: Any) -> EventStream:
        """SendStreamingMessage with a new message."""
        return self.stream(_params(content, configuration, members))

    def _open(self, verb: str, path: str, body: bytes) -> Connection:
        lines = [f"{name}: {value}" for name, value in self.headers.items()]
        connection = Connection(self.port, request(verb, path, body, *lines, "Accept: text/event-stream"))
        if connection.read_head() != 200 or connection.header("content-type") != "text/event-stream; charset=utf-8":
            with connection:
                self._refuse(connection.status, connection.header("content-type"), connection.read_body())
                raise AssertionError("no stream, and no error either")
        return connection

    def _refuse(self, status: int, content_type: str | None, body: bytes) -> Any:
        raise NotImplementedError


class JsonRpcPeer(Peer):
    """The JSON-RPC binding (§9)."""

    name = "jsonrpc"

    @property
    def path(self) -> str:
        """Path of the endpoint."""
        return f"/agents/{self.slug}"

    def call(self, method: str, params: str | Mapping[str, Any] | None) -> dict[str, Any]:
        """The result of a call. Raises Refused."""
        response = self.post(envelope(method, params))
        return self._result(response.status_code, response.headers["content-type"], response.content)

    def post(self, body: str | bytes, **headers: str) -> httpx.Response:
        """Any bytes to the endpoint."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else body.encode()
        all_headers = {"content-type": "application/json"} | self.headers | named
        return self.client.post(self.base + self.path, content=content, headers=all_headers)

    def send(self, params: str | Mapping[str, Any]) -> dict[str, Any]:
        return self.call("SendMessage", params)

    def get(self, id: str, **members: Any) -> dict[str, Any]:
        return self.call("GetTask", {"id": id} | members)

    def list(self, **members: Any) -> dict[str, Any]:
        return self.call("ListTasks", members)

    def cancel(self, id: str, **members: Any) -> dict[str, Any]:
        return self.call("CancelTask", {"id": id} | members)

    def stream(self, params: str | Mapping[str, Any]) -> EventStream:
        return self.open("SendStreamingMessage", params)

    def subscribe(self, id: str) -> EventStream:
        return self.open("SubscribeToTask", {"id": id})

    def open(self, method: str, params: str | Mapping[str, Any]) -> EventStream:
        """The stream of a call. Raises Refused."""
        return EventStream(self._open("POST", self.path, envelope(method, params).encode()), _result_of)

    def _result(self, status: int, content_type: str | None, body: bytes) -> dict[str, Any]:
        reply = json.loads(body)
        if "error" in reply:
            self._refuse(status, content_type, body)
        assert (status, content_type) == (200, "application/json")
        return _result_of(reply)

    def _refuse(self, status: int, content_type: str | None, body: bytes) -> Any:
        assert content_type == "application/json"
        # The id of a body that was not read as JSON is not known.
        raise refusal_of_rpc(status, json.loads(body), None if status in (404, 413, 415) else ID)


def _result_of(reply: dict[str, Any]) -> dict[str, Any]:
    assert list(reply) == ["jsonrpc", "id", "result"]
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", ID)
    result: dict[str, Any] = reply["result"]
    return result


class RestPeer(Peer):
    """The HTTP+JSON binding (§11)."""

    name = "rest"

    @property
    def root(self) -> str:
        """Path that those of the operations go below."""
        return f"/agents/{self.slug}"

    def call(
        self,
        verb: str,
        path: str,
        body: str | bytes | Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The document that answers a request. Raises Refused."""
        response = self.ask(verb, path, body, query)
        content_type = response.headers["content-type"]
        if response.status_code != 200:
            self._refuse(response.status_code, content_type, response.content)
        assert content_type == "application/a2a+json"
        reply: dict[str, Any] = response.json()
        return reply

    def ask(
        self,
        verb: str,
        path: str,
        body: str | bytes | Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        **headers: str,
    ) -> httpx.Response:
        """Any request below the agent's URL. `path` is percent-encoded already."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {} if body is None else {"content-type": "application/a2a+json"}
        url = f"{self.base}{self.root}{path}" + (f"?{urlencode(_literals(query))}" if query else "")
        return self.client.request(verb, url, content=_bytes(body), headers=given | self.headers | named)

    def send(self, params: str | Mapping[str, Any]) -> dict[str, Any]:
        return self.call("POST", "/message:send", params)

    def get(self, id: str, **members: Any) -> dict[str, Any]:
        return self.call("GET", f"/tasks/{in_path(id)}", query=members)

    def list(self, **members: Any) -> dict[str, Any]:
        return self.call("GET", "/tasks", query=members)

    def cancel(self, id: str, **members: Any) -> dict[str, Any]:
        return self.call("POST", f"/tasks/{in_path(id)}:cancel", members)

    def stream(self, params: str | Mapping[str, Any]) -> EventStream:
        return self.open("POST", "/message:stream", params)

    def subscribe(self, id: str) -> EventStream:
        return self.open("POST", f"/tasks/{in_path(id)}:subscribe")

    def open(self, verb: str, path: str, body: str | Mapping[str, Any] | None = None) -> EventStream:
        """The stream that answers a request. Raises Refused."""
        connection = self._open(verb, f"{self.root}{path}", _bytes(body) or b"")
        return EventStream(connection, lambda response: response)

    def _refuse(self, status: int, content_type: str | None, body: bytes) -> Any:
        assert content_type == "application/a2a+json"
        raise refusal_of_rest(status, json.loads(body))


def in_path(id: str) -> str:
    """An id as a segment of a path; a client library would take `..` for a step up."""
    return quote(id, safe="").replace(".", "%2E")


def _params(content: Content, configuration: Any, members: dict[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = {"message": message(content, **members)}
    if configuration is not None:
        params["configuration"] = configuration
    return params


def _bytes(body: str | bytes | Mapping[str, Any] | None) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _literals(query: Mapping[str, Any] | None) -> dict[str, str]:
    """Query parameters as §11.5 writes them."""
    return {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in (query or {}).items()}


PEERS: dict[str, type[Peer]] = {"jsonrpc": JsonRpcPeer, "rest": RestPeer}
