"""Where a stream goes on (docs/websocket.md): what `Last-Event-ID` is over HTTP is a parameter here."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

_NAME = b'"lastEventId"'


class _Resumption(msgspec.Struct, gc=False, rename="camel"):
    """One member of the parameters, whatever else they hold."""

    last_event_id: Any = UNSET


_decoder = msgspec.json.Decoder(_Resumption)


def named_event_id(params: Raw | None) -> Any:
    """The value of the parameter `lastEventId`; UNSET where there is none, as most clients have it."""
    if params is None or _NAME not in bytes(params):
        return UNSET
    try:
        return _decoder.decode(params).last_event_id
    except (msgspec.DecodeError, RecursionError):  # The binding says what is wrong with it.
        return UNSET
