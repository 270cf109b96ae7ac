"""Messages in the bytes of a stream: a flag, a length of four bytes, the message, which may be compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct

from grpc import StatusCode

from a2a_host.bindings.grpc.transport.status import StatusError

Message = bytes | bytearray
Packed = tuple[bool, Message]
"""Whether a message is compressed, and its bytes."""

_PREFIX = Struct(">BI")
_OVERHEAD = 128  # bytes that a message takes beside its own
_WINDOW_BITS = {"identity": 0, "gzip": 31, "deflate": 15}  # of zlib
ENCODINGS = ",".join(_WINDOW_BITS)
"""The compressions that are read, as `grpc-accept-encoding` names them."""


def framed(message: bytes) -> bytes:
    """A message as it is sent."""
    return _PREFIX.pack(0, len(message)) + message


class UploadRoom:
    """Bytes that the unfinished messages of all connections may take together."""

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, size: int) -> None:
        """Raises StatusError if there is not so much."""
        if size > self.left:
            raise StatusError(StatusCode.RESOURCE_EXHAUSTED, "The server holds too many unfinished messages.")
        self.left -= size


class Inbox:
    """Cuts the messages of a call out of what comes in. None is larger than `largest`, compressed or not.

    What is held counts until it is released: whoever sends and never ends holds no more than there is room for.
    """

    __slots__ = ("_body", "_compressed", "_held", "_largest", "_length", "_prefix", "_room", "_window_bits")

    def __init__(self, encoding: str, largest: int, room: UploadRoom) -> None:
        if encoding not in _WINDOW_BITS:
            accepted = [("grpc-accept-encoding", ENCODINGS)]
            raise StatusError(StatusCode.UNIMPLEMENTED, "Messages of this grpc-encoding cannot be read.", accepted)
        self._largest = largest
        self._window_bits = _WINDOW_BITS[encoding]
        self._room = room
        self._held = 0
        self._prefix = b""
        self._body: bytearray | None = None
        self._length = 0
        self._compressed = False

    def only(self, data: bytes) -> Packed | None:
        """The message, if `data` is one and nothing else, and nothing came before: so are nearly all."""
        if not self.within and len(data) >= _PREFIX.size:
            flag, length = _PREFIX.unpack_from(data)
            if not flag and length == len(data) - _PREFIX.size <= self._largest:
                return False, data[_PREFIX.size :]
        return None

    def feed(self, data: bytes) -> Iterator[Packed]:
        """The messages that end in `data`. Raises StatusError."""
        rest = memoryview(data)
        while True:
            if self._body is None:
                missing = _PREFIX.size - len(self._prefix)
                self._prefix += bytes(rest[:missing])
                rest = rest[missing:]
                if len(self._prefix) < _PREFIX.size:
                    return
                self._body = self._begun()
            piece = rest[: self._length - len(self._body)]
            self._hold(len(piece))
            self._body += piece
            rest = rest[len(piece) :]
            if len(self._body) < self._length:
                return
            packed = self._compressed, self._body
            self._body = None
            yield packed

    @property
    def within(self) -> bool:
        """Whether the last message is not whole yet."""
        return self._body is not None or self._prefix != b""

    def release(self) -> None:
        """All whole messages were taken."""
        within = 0 if self._body is None else _OVERHEAD + len(self._body)
        self._room.left += self._held - within
        self._held = within

    def close(self) -> None:
        """Nothing more is wanted."""
        self._body = None
        self.release()

    def unpacked(self, packed: Packed) -> Message:
        """The message itself. Raises StatusError."""
        compressed, body = packed
        return self._inflated(body) if compressed else body

    def _begun(self) -> bytearray:
        """The place of a message whose prefix has come. Raises StatusError."""
        flag, self._length = _PREFIX.unpack(self._prefix)
        self._prefix = b""
        if self._length > self._largest:
            raise _too_large(self._largest)
        self._compressed = flag == 1
        if flag > 1 or (self._compressed and not self._window_bits):
            raise StatusError(StatusCode.INTERNAL, "The flag of a message does not fit its grpc-encoding.")
        self._hold(_OVERHEAD)
        return bytearray()

    def _hold(self, size: int) -> None:
        self._room.take(size)
        self._held += size

    def _inflated(self, body: Message) -> bytes:
        inflating = zlib.decompressobj(self._window_bits)
        try:
            message = inflating.decompress(body, self._largest + 1)
        except zlib.error:
            message = b""
        if len(message) > self._largest:
            raise _too_large(self._largest)
        if not inflating.eof:
            raise StatusError(StatusCode.INTERNAL, "A message cannot be decompressed.")
        return message


def _too_large(largest: int) -> StatusError:
    return StatusError(StatusCode.RESOURCE_EXHAUSTED, f"A message has at most {largest} bytes.")
