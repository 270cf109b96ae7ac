"""Versions of the protocol as translations to and from its structs. Everything behind them speaks 1.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from msgspec import Raw

from protocol.errors import Violation
from protocol.model import Wire

T = TypeVar("T", bound=Wire)


class Dialect(Protocol):
    """How one version writes what the structs of `protocol.model` and `protocol.requests` hold. Stateless."""

    @property
    def version(self) -> str:
        """Major.Minor, such as `1.0` (§3.6)."""

    def read(self, kind: type[T], data: bytes | Raw | None, path: Mapping[str, str] | None = None) -> T:
        """The request in received JSON, as `protocol.codec.decode` does for 1.0.

        Raises ParseError, InvalidParamsError with the fields as this version names them.
        """

    def write(self, kind: type[Wire], body: bytes) -> bytes:
        """The JSON of a response of this version, from the 1.0 JSON of a `kind`."""

    def renamed(self, kind: type[Wire], violations: list[Violation]) -> list[Violation]:
        """What an operation has against a request of a `kind`, with the fields as this version names them."""
