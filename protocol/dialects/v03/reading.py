"""How the parameters of a method are read: through the reader of 1.0, with the fields and rules of 0.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import DecodeError, Raw, UnsetType

from protocol import protojson
from protocol.json_text import quotes
from protocol.model import Wire
from protocol.query import decode_query
from protocol.rules import plain_json
from protocol.violations import Violations

P = TypeVar("P", bound=Wire)

_encoder = msgspec.json.Encoder()


def no_rules(params: Any, out: Violations) -> None:
    """The check of parameters without rules across fields."""


class Reading(Generic[P]):
    """Parameters of one operation."""

    def __init__(
        self,
        params: type[P],
        convert: Callable[[P], Wire],
        check: Callable[[P, Violations], None] = no_rules,
        opaque: Callable[[P], list[Raw | UnsetType] | None] | None = None,
    ) -> None:
        """`convert` gives the 1.0 request of parameters that `check` has nothing against.

        `opaque` gives the JSON objects in strictly decoded parameters that hold all else as it must be, None if they
        need a second look; without it all do.
        """
        self.params = params
        self.check = check
        self._convert = convert
        self._opaque = opaque
        self._decoder = msgspec.json.Decoder(params)

    def read(self, data: bytes | Raw | None, given: Mapping[str, str] | None = None) -> Wire:
        """The 1.0 request in received JSON; `given` are values of the path, by 0.3 names.

        Raises ParseError, InvalidParamsError.
        """
        params = self._plain(data) if data is not None and given is None else None
        if params is None:
            params = protojson.read(self.params, data or b"", given, self.check)
        return self._convert(params)

    def read_query(self, pairs: Iterable[tuple[str, str]], given: Mapping[str, str]) -> Wire:
        """The 1.0 request in decoded query parameters and values of the path. Raises InvalidParamsError."""
        return self._convert(decode_query(self.params, pairs, given))

    def _plain(self, data: bytes | Raw) -> P | None:
        """The parameters if the tolerant reader would give equal ones, None if that is not sure."""
        if self._opaque is None:
            return None
        try:
            params = self._decoder.decode(data)
        except (DecodeError, RecursionError):
            return None
        text, objects = bytes(data), self._opaque(params)
        if objects is None or b"\\u0000" in text or not plain_json(objects, [], text):
            return None
        # As many strings as the parameters have: no member came twice.
        if quotes(_encoder.encode(params)) != quotes(text):
            return None
        out = Violations()
        self.check(params, out)
        out.finish()
        return params
