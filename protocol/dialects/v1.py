"""Version 1.0: what the structs hold is what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Raw

from protocol import codec
from protocol.errors import Violation
from protocol.model import Wire

T = TypeVar("T", bound=Wire)


class V1:
    """The dialect of `A2A-Version: 1.0`."""

    version = "1.0"

    def read(self, kind: type[T], data: bytes | Raw | None, path: Mapping[str, str] | None = None) -> T:
        """See `protocol.codec.decode`."""
        return codec.decode(kind, data, path)

    def write(self, kind: type[Wire], body: bytes) -> bytes:
        """The body as it is."""
        return body

    def renamed(self, kind: type[Wire], violations: list[Violation]) -> list[Violation]:
        """The violations as they are."""
        return violations


V1_0 = V1()
