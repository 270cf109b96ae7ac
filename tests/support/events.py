"""Server-Sent Events read strictly, byte by byte: whatever is not the documented form fails the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.wire import Connection


class Event(NamedTuple):
    """One event: its id, its StreamResponse (§3.2.3) and its data line as it came."""

    id: int
    response: dict[str, Any]
    data: bytes

    @property
    def kind(self) -> str:
        """task, message, statusUpdate or artifactUpdate."""
        (kind,) = self.response
        return kind

    @property
    def state(self) -> str | None:
        """The state that a task or a status update has."""
        if self.kind not in ("task", "statusUpdate"):
            return None
        state: str = self.response[self.kind]["status"]["state"]
        return state.removeprefix("TASK_STATE_")


class EventStream:
    """The events of a response whose head was read. `unwrap` gives the StreamResponse in a data line."""

    def __init__(self, connection: Connection, unwrap: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._connection = connection
        self._chunks = connection.chunks()
        self._unwrap = unwrap
        self._buffer = b""
        self._taken: list[bytes] = []
        self.comments: list[bytes] = []
        self.ended = False

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up, whether the stream has ended or not."""
        self._chunks.close()  # type: ignore[attr-defined]
        self._connection.close()

    @property
    def raw(self) -> bytes:
        """All bytes so far."""
        return b"".join(self._taken)

    def header(self, name: str) -> str | None:
        """A header of the response."""
        return self._connection.header(name)

    def next(self) -> Event:
        """The next event. Raises AssertionError when the stream ends instead."""
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
        events = []
        while (event := self._next()) is not None:
            events.append(event)
        return events

    def wait_for_comment(self) -> bytes:
        """The next block that is a comment; an event instead fails."""
        block = self._block()
        assert block is not None
        assert block.startswith(b":"), block
        return block

    def _next(self) -> Event | None:
        while (block := self._block()) is not None:
            if not block.startswith(b":"):
                return self._event(block)
            self.comments.append(block)
        return None

    def _event(self, block: bytes) -> Event:
        id_line, data_line = block.split(b"\n")
        assert id_line.startswith(b"id: ")
        assert data_line.startswith(b"data: ")
        data = data_line.removeprefix(b"data: ")
        return Event(int(id_line.removeprefix(b"id: ")), self._unwrap(json.loads(data)), data)

    def _block(self) -> bytes | None:
        """What is before the next blank line; None at the end, which must come after one."""
        while b"\n\n" not in self._buffer:
            chunk = next(self._chunks, None)
            if chunk is None:
                assert self._buffer == b"", f"the stream ended inside an event: {self._buffer!r}"
                self.ended = True
                return None
            self._taken.append(chunk)
            self._buffer += chunk
        block, self._buffer = self._buffer.split(b"\n\n", 1)
        assert b"\r" not in block
        return block
