"""How calls end: a code, a message and trailing metadata."""

from __future__ import annotations

from urllib.parse import quote

from grpc import StatusCode

from a2a_host.bindings.grpc.transport.metadata import Fields, Metadata, written

_PLAIN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")  # what grpc-message holds as it is
_OK: Fields = [(b"grpc-status", b"0")]


class StatusError(Exception):
    """The call ends with this status."""

    def __init__(self, code: StatusCode, message: str = "", metadata: Metadata = ()) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.metadata = metadata


def trailers(code: StatusCode, message: str = "", metadata: Metadata = ()) -> Fields:
    """The fields that end a call."""
    if code is StatusCode.OK:
        return _OK
    number: int = code.value[0]
    fields = [(b"grpc-status", b"%d" % number)]
    if message:
        fields.append((b"grpc-message", quote(message, safe=_PLAIN).encode()))
    return [*fields, *written(metadata)]
