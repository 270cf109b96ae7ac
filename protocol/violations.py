"""Collects what is wrong with a request, so that a caller learns all of it at once."""

from __future__ import annotations

from typing import Final

from protocol.errors import InvalidParamsError, Violation

# Beyond these, a hostile request would only buy itself work.
VIOLATIONS_MAX = 20


class Invalid:
    """Stands for a value that could not be read."""


INVALID: Final = Invalid()


class Violations:
    """Violations found so far."""

    def __init__(self) -> None:
        self.items: list[Violation] = []

    def add(self, path: str, description: str) -> Invalid:
        """Note one. Raises InvalidParamsError when there are enough."""
        self.items.append(Violation(path, description))
        if len(self.items) >= VIOLATIONS_MAX:
            raise InvalidParamsError(self.items)
        return INVALID

    def finish(self) -> None:
        """Raises InvalidParamsError if there were any."""
        if self.items:
            raise InvalidParamsError(self.items)


def shown(text: str) -> str:
    """A received value, short enough for an error message."""
    return text if len(text) <= 40 else text[:37] + "..."
