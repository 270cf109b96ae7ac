"""Media types as cards name them (RFC 9110 §8.3.1), compared as A2A means them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(\s*;\s*{_TOKEN}=({_TOKEN}|\"[^\"]*\"))*")


def is_media_type(text: str) -> bool:
    """Whether text is `type/subtype`, with parameters or wildcards or without."""
    return len(text) <= 255 and MEDIA_TYPE.fullmatch(text) is not None


def essence(media_type: str) -> str:
    """`Text/Plain; charset=utf-8` -> `text/plain`."""
    return media_type.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class MediaTypes:
    """A set of media types. Case and parameters do not count; `*/*` and `text/*` are wildcards."""

    exact: frozenset[str]
    everything: bool

    @classmethod
    def of(cls, modes: Iterable[str]) -> MediaTypes:
        """The set that a list of modes stands for."""
        exact = frozenset(essence(mode) for mode in modes)
        return cls(exact, "*/*" in exact)

    def __contains__(self, media_type: str) -> bool:
        if self.everything:
            return True
        wanted = essence(media_type)
        return wanted in self.exact or f"{wanted.partition('/')[0]}/*" in self.exact
