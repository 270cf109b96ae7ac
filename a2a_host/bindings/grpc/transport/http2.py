"""The state of an HTTP/2 connection, set up for calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings
from hpack.hpack import Encoder, encode_integer

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
_DEFAULT_WINDOW = 65535
_EMPTY_TABLE = b"\x20"


class Http2(H2Connection):
    """A connection of a server, with its first frames ready to be sent."""

    MAX_CLOSED_STREAMS = 4096  # Enough to know what was under way when a call ended; a connection lives long.

    def __init__(self) -> None:
        super().__init__(_CONFIG)
        self.local_settings = Settings(client=False, initial_values=_SETTINGS)
        self.decoder.max_header_list_size = MAX_HEADER_LIST
        self.encoder = PlainEncoder()
        self.initiate_connection()
        self.increment_flow_control_window(CONNECTION_WINDOW - _DEFAULT_WINDOW)


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
