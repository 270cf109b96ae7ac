"""The head of a call: what a client says before its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from a2a_host.bindings.grpc.transport.metadata import MalformedError, entries

_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_SECONDS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_PSEUDO = frozenset([b":method", b":scheme", b":path", b":authority"])
_OWN = _PSEUDO | {b"content-type", b"te", b"grpc-timeout", b"grpc-encoding", b"host"}
_IGNORED = frozenset([b"grpc-accept-encoding", b"content-length", b"accept-encoding"])
"""Answers are never compressed, and h2 looks after the length."""


class NotGrpcError(Exception):
    """A request of HTTP that is no call; `status` is the one of HTTP that says so."""

    def __init__(self, status: bytes) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class Request:
    """Which method is called, and how. `timeout` is in seconds, `encoding` the compression of the messages."""

    path: str
    authority: str
    timeout: float | None
    encoding: str
    metadata: list[tuple[str, str | bytes]] = field(default_factory=list)


def read_request(fields: Iterable[tuple[bytes, bytes]]) -> Request:
    """The head of a call from the fields of its HEADERS. Raises MalformedError, NotGrpcError."""
    own: dict[bytes, bytes] = {}
    metadata: list[tuple[str, str | bytes]] = []
    regular = False
    for name, value in fields:
        if name in _OWN:
            if name in own or (regular and name in _PSEUDO):
                raise MalformedError
            own[name] = value
            regular = regular or name not in _PSEUDO
        elif name not in _IGNORED:
            metadata += entries(name, value)
            regular = True
    _check(own)
    return Request(
        path=own[b":path"].decode("latin-1"),
        authority=(own.get(b":authority") or own.get(b"host", b"")).decode("latin-1"),
        timeout=_timeout(own[b"grpc-timeout"]) if b"grpc-timeout" in own else None,
        encoding=own.get(b"grpc-encoding", b"identity").decode("latin-1"),
        metadata=metadata,
    )


def _check(own: dict[bytes, bytes]) -> None:
    if not own.get(b":path") or not own.get(b":scheme") or b":method" not in own:
        raise MalformedError
    if own[b":method"] != b"POST":
        raise NotGrpcError(b"405")
    kind = own.get(b"content-type", b"")
    if kind != b"application/grpc" and kind.partition(b";")[0].rstrip() not in _TYPES:
        raise NotGrpcError(b"415")
    if own.get(b"te") != b"trailers":  # A proxy that does not know trailers would lose the status.
        raise NotGrpcError(b"400")


_TYPES = (b"application/grpc", b"application/grpc+proto")


def _timeout(text: bytes) -> float:
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise NotGrpcError(b"400")
    return int(match[1]) * _SECONDS[match[2]]
