"""The gRPC binding with the interface of the other peers: members in, members out, an error is `Refused`.

Parameters that protobuf cannot say (a wrong type, an unknown member) are a mistake of the test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from tests.support.events import Event
from tests.support.peers import Peer
from tests.support.refusals import refusal_of_grpc

SECONDS = 30.0
_WHOLE_SECOND = re.compile(r"T\d\d:\d\d:\d\dZ")


class GrpcEventStream:
    """The messages of a stream as events. They have no ids: the number of the first is told, the others follow it."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._messages: Iterator[Message] = iter(call)
        self._next_id: int | None = None
        self._taken: list[bytes] = []
        self._first = self._take()
        self.ended = self._first is None

    def __enter__(self) -> GrpcEventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up, whether the stream has ended or not."""
        self._call.cancel()

    @property
    def raw(self) -> bytes:
        """All messages so far."""
        return b"".join(self._taken)

    def next(self) -> Event:
        """The next event. Raises AssertionError when the stream ends instead, Refused when it ends with an error."""
        event = self._next()
        assert event is not None, "the stream ended"
        return event

    def until(self, state: str) -> list[Event]:
        """Events up to the first one with this state, such as `WORKING`."""
        events = [self.next()]
        while events[-1].state != state:
            events.append(self.next())
        return events

    def rest(self) -> list[Event]:
        """All events that are left, to the end of the stream."""
        return list(iter(self._next, None))

    def _next(self) -> Event | None:
        event, self._first = self._first, None
        event = event or self._take()
        self.ended = event is None
        return event

    def _take(self) -> Event | None:
        with refusing():
            message = next(self._messages, None)
        if message is None:
            return None
        if self._next_id is None:
            self._next_id = int(dict(self._call.initial_metadata())["first-event-id"])
        data = message.SerializeToString()
        self._taken.append(data)
        self._next_id += 1
        return Event(self._next_id - 1, members(message), data)


class refusing:
    """`with refusing():` turns an error status into `Refused`."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, grpc.RpcError):
            raise refusal_of_grpc(error) from None


class GrpcPeer(Peer):
    """The gRPC binding (§10). The tenant of a request names the agent."""

    name = "grpc"

    def send(self, params: str | Mapping[str, Any]) -> dict[str, Any]:
        return self.call("SendMessage", self.request(pb.SendMessageRequest, params))

    def get(self, id: str, **members: Any) -> dict[str, Any]:
        return self.call("GetTask", self.request(pb.GetTaskRequest, {"id": id} | members))

    def list(self, **members: Any) -> dict[str, Any]:
        empty: dict[str, Any] = {"tasks": [], "nextPageToken": "", "totalSize": 0}
        return empty | self.call("ListTasks", self.request(pb.ListTasksRequest, members))

    def cancel(self, id: str, **members: Any) -> dict[str, Any]:
        return self.call("CancelTask", self.request(pb.CancelTaskRequest, {"id": id} | members))

    def stream(self, params: str | Mapping[str, Any]) -> Any:
        return self.open("SendStreamingMessage", self.request(pb.SendMessageRequest, params))

    def subscribe(self, id: str) -> Any:
        return self.open("SubscribeToTask", self.request(pb.SubscribeToTaskRequest, {"id": id}))

    def request(self, kind: type[Message], params: str | Mapping[str, Any]) -> Message:
        """A message for this agent."""
        given = json.loads(params) if isinstance(params, str) else dict(params)
        return ParseDict({"tenant": self.slug} | given, kind())

    def call(self, method: str, request: Message) -> dict[str, Any]:
        """The answer to a call. Raises Refused."""
        with refusing():
            return members(self.stub(method)(request, timeout=SECONDS, metadata=self.metadata))

    def open(self, method: str, request: Message) -> GrpcEventStream:
        """The stream that answers a call; its first event has come. Raises Refused."""
        return GrpcEventStream(self.stub(method)(request, timeout=SECONDS, metadata=self.metadata))

    def stub(self, method: str) -> Callable[..., Any]:
        """A method of the service."""
        call: Callable[..., Any] = getattr(a2a_pb2_grpc.A2AServiceStub(channel_to(self.port)), method)
        return call

    @property
    def metadata(self) -> list[tuple[str, str]]:
        """Headers as metadata."""
        return [(name.lower(), value) for name, value in self.headers.items()]


_channels: dict[int, grpc.Channel] = {}


def channel_to(port: int) -> grpc.Channel:
    """The channel that all peers of a server share."""
    if port not in _channels:
        _channels[port] = grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.max_receive_message_length", -1)])
    return _channels[port]


def members(message: Message) -> dict[str, Any]:
    """A message as ProtoJSON. Milliseconds stay where protobuf would leave out zeros, as the host prints them."""
    read: dict[str, Any] = _with_milliseconds(MessageToDict(message))
    return read


def _with_milliseconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _moment(one) if name == "timestamp" else _with_milliseconds(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_milliseconds(one) for one in value]
    return value


def _moment(text: Any) -> Any:
    return f"{text[:-1]}.000Z" if isinstance(text, str) and _WHOLE_SECOND.search(text) else text
