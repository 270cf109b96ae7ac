"""The state of an HTTP/2 connection, set up for calls."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, Event
from h2.settings import SettingCodes, Settings
from hpack.hpack import Decoder, Encoder, encode_integer
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame

from a2a_host.bindings.grpc.transport.metadata import Fields

MAX_STREAMS = 1000
"""Calls at a time on one connection."""
MAX_HEADER_LIST = 32 * 1024
"""Bytes of the fields of a call."""
STREAM_WINDOW = 1024 * 1024
"""Bytes of one call that may be under way to this process."""
CONNECTION_WINDOW = 4 * STREAM_WINDOW

_CONFIG = H2Configuration(
    client_side=False,
    header_encoding=None,
    # `request.py` looks at every field anyway, and what is sent is right.
    validate_inbound_headers=False,
    normalize_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)
_SETTINGS = {
    SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
    SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST,
    SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
}
_FEW_STREAMS = 128  # of a connection, those among them that have ended and are not forgotten yet
_DEFAULT_WINDOW = 65535
_FRAME = Struct(">HBBBL")
_END_HEADERS = 4
_NUMBERS = bytes(range(0x81, 0xFF))  # bytes that each stand for a whole field
_MOST_KNOWN = 16
_EMPTY_TABLE = b"\x20"


class Http2(H2Connection):
    """A connection of a server, with its first frames ready to be sent."""

    MAX_CLOSED_STREAMS = 4096  # Enough to know what was under way when a call ended; a connection lives long.

    def __init__(self) -> None:
        super().__init__(_CONFIG)
        self.local_settings = Settings(client=False, initial_values=_SETTINGS)
        self.decoder = RememberingDecoder(MAX_HEADER_LIST)
        self.encoder = PlainEncoder()
        self.initiate_connection()
        self.increment_flow_control_window(CONNECTION_WINDOW - _DEFAULT_WINDOW)

    @property
    def open_inbound_streams(self) -> int:
        """At least so many. h2 looks at every stream for each request, to count those that are open and to forget the
        others; here only when there are many, so that it takes a call of many less time."""
        known = len(self.streams)
        return known if known < _FEW_STREAMS else super().open_inbound_streams

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        """h2 would take and send nothing more. A client that goes away waits for its open calls (RFC 9113 §6.8)."""
        event = ConnectionTerminated()
        event.error_code, event.last_stream_id = frame.error_code, frame.last_stream_id
        return [], [event]

    def answer_frames(self, stream_id: int, head: Fields, data: bytes) -> bytes:
        """The frames of an answer but its last one, for data that fits into the windows and into one frame.

        h2 is told of the last one only, which ends the stream: it takes ten times what these take to tell it of each.
        """
        self.outbound_flow_control_window -= len(data)
        block = self.encoder.encode(head)
        headers = _frame_head(HeadersFrame.type, _END_HEADERS, stream_id, len(block))
        return b"".join([headers, block, _frame_head(DataFrame.type, 0, stream_id, len(data)), data])


def _frame_head(kind: int, flags: int, stream_id: int, length: int) -> bytes:
    return _FRAME.pack(length >> 8, length & 0xFF, kind, flags, stream_id)


class RememberingDecoder(Decoder):
    """HPACK that does not read twice what is said twice by numbers alone, as nearly every call of a client is."""

    def __init__(self, largest: int) -> None:
        super().__init__(largest)
        self._known: dict[bytes, Iterable[Any]] = {}

    def decode(self, data: bytes, raw: bool = False) -> Iterable[Any]:
        """The fields of a block."""
        fields = self._known.get(data)
        if fields is None:
            fields = super().decode(data, raw)
            if data.translate(None, _NUMBERS):  # It may have changed what numbers mean.
                self._known.clear()
            elif len(self._known) < _MOST_KNOWN:
                self._known[data] = fields
        return fields


class PlainEncoder(Encoder):
    """HPACK without a table: the few fields of an answer are the same bytes in every one, and need no work."""

    def __init__(self) -> None:
        super().__init__()
        self._start = _EMPTY_TABLE  # said once, so that no size of the peer's can be too small

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        """A block of literal fields."""
        start, self._start = self._start, b""
        return start + b"".join([_CONSTANT.get(field) or _literal(*field) for field in headers])


def _literal(name: bytes, value: bytes) -> bytes:
    return b"".join([b"\0", encode_integer(len(name), 7), name, encode_integer(len(value), 7), value])


_CONSTANT = {
    (b":status", b"200"): b"\x88",  # number 8 of the static table
    **{field: _literal(*field) for field in [(b"content-type", b"application/grpc"), (b"grpc-status", b"0")]},
}
