"""Calls in disorder and damaged bytes: no connection stumbles, leaves a call or a task behind, or loses room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame, RstStreamFrame

from a2a_host.bindings.grpc.transport.connection import Connection
from tests.grpc.transport.conftest import Site
from tests.tasks_app.world import until

ROOM = 300_000
PATHS = ("/test/Echo", "/test/Gate", "/test/Stream", "/test/Chat", "/test/Fail", "/test/None")


class Sink(asyncio.Transport):
    """A socket that takes everything."""

    def write(self, data: Any) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0


class Client:
    """A client that does something at random, right for the most part."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._http2 = H2Connection(H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False))
        self._http2.initiate_connection()
        self._streams = [1]

    def acts(self) -> list[bytes]:
        """The bytes of each of its acts."""
        acts = [self._call, *[self._data] * 2, self._reset, self._window, self._settings, self._trailers, self._frame]
        done = [self._http2.data_to_send()]
        for act in [self._call, *self._random.choices(acts, k=self._random.randrange(12))]:
            done.append(self._acted(act))
        return done

    def _acted(self, act: Callable[[], bytes | None]) -> bytes:
        try:
            frame = act() or b""
        except (ProtocolError, KeyError):  # It would be wrong in a way that h2 does not let pass.
            frame = b""
        return self._http2.data_to_send() + frame

    def _call(self) -> None:
        any_of = self._random.choice
        head = [(":method", "POST"), (":scheme", "http"), (":path", any_of(PATHS)), ("te", "trailers"), ("times", "3")]
        more = [("grpc-timeout", any_of(["0n", "5S"])), ("grpc-encoding", any_of(["gzip", "br"])), ("A", "b")]
        self._streams.append(self._http2.get_next_available_stream_id())
        fields = [
            *head,
            ("content-type", "application/grpc"),
            *(field for field in more if self._random.random() < 0.2),
        ]
        self._http2.send_headers(self._streams[-1], fields, end_stream=self._random.random() < 0.1)

    def _data(self) -> None:
        body = self._random.randbytes(self._random.choice([0, 3, 100, 5000]))
        prefix = self._random.choice([b"\0", b"\0", b"\1"]) + len(body).to_bytes(4, "big")
        data = self._random.choice([prefix + body, prefix + body, body])
        self._http2.send_data(self._stream(), data, end_stream=self._random.random() < 0.5)

    def _reset(self) -> None:
        self._http2.reset_stream(self._stream())

    def _window(self) -> None:
        self._http2.increment_flow_control_window(self._random.randrange(1, 100_000), self._stream())

    def _settings(self) -> None:
        self._http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: self._random.choice([0, 10, 100_000])})

    def _trailers(self) -> None:
        self._http2.send_headers(self._stream(), [("x", "y")], end_stream=True)

    def _frame(self) -> bytes:
        frames = [RstStreamFrame(self._stream(), 8), GoAwayFrame(0), GoAwayFrame(0, error_code=2)]
        return self._random.choice(frames).serialize()

    def _stream(self) -> int:
        return self._random.choice(self._streams)


def damaged(random: Random, data: bytes) -> bytes:
    """With other bytes here and there, behind the greeting."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        changed[random.randrange(24, len(changed))] = random.randrange(256)
    return bytes(changed)


async def live(site: Site, random: Random) -> None:
    """One connection from its beginning to its end."""
    acts = Client(random).acts()
    pieces = random.choice([acts, [b"".join(acts)], [damaged(random, b"".join(acts))]])
    connection = Connection(site.server)
    connection.connection_made(Sink())
    for piece in pieces:
        connection.data_received(piece)
        if random.random() < 0.1:
            connection.pause_writing()
            await asyncio.sleep(0)
            connection.resume_writing()
        if random.random() < 0.5:
            await asyncio.sleep(0)
        if random.random() < 0.05:
            connection.drain()
    if random.random() < 0.2:
        connection.end()
    connection.connection_lost(None)
    assert connection.calls == {}


@pytest.mark.parametrize("first", range(0, 2000, 250))
async def test_noise(first: int, caplog: pytest.LogCaptureFixture) -> None:
    troubles: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
    site = Site(room=ROOM)
    for seed in range(first, first + 250):
        await live(site, Random(seed))
        assert (site.server._room.left, troubles) == (ROOM, []), seed
    site.gate.set()
    await until(lambda: not site.server._deserted, "the end of all handlers")
    assert {record.exc_info[0] for record in caplog.records if record.exc_info} <= {KeyError}  # of /test/Fail
    assert site.calls
    assert all(call.over for call in site.calls)
