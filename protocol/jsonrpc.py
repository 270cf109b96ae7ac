"""The envelope of JSON-RPC 2.0 (§9.3)."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType, ValidationError

from protocol.errors import EnvelopeError, InvalidParamsError, ParseError
from protocol.json_text import DEPTH_MAX, TOO_DEEP, explain, too_deep

# An id comes back in every event of a stream, so a huge one would multiply.
ID_MAX_BYTES = 4096
_LARGE = 65536


class Envelope(Struct, gc=False):
    """A request. `id` is the JSON of the id byte for byte, None if there is none; `params` None if there are none.

    Without an id, and null is one, no reply is wanted (JSON-RPC 2.0 §4.1).

    The shape of `params` is left to `protocol.codec.decode`: an unknown method is told before wrong parameters.
    """

    id: Raw | None
    method: str
    params: Raw | None


class _Plain(Struct, gc=False):
    """The usual spelling. Unknown members are ignored."""

    jsonrpc: Literal["2.0"]
    method: Annotated[str, Meta(min_length=1)]
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


# Positive integers and strings without escapes need no second look.
_PLAIN_ID = re.compile(rb'"[ !#-\[\]-~]{0,255}"|[0-9]{1,255}|null')

_decoder = msgspec.json.Decoder(_Plain)
_members_decoder = msgspec.json.Decoder(dict[str, Raw])
_any_decoder = msgspec.json.Decoder(Raw)
_NOT_AN_OBJECT = "The request must be one object; batches are not supported."


def decode_envelope(body: bytes) -> Envelope:
    """The envelope of a request body.

    Raises ParseError for what is not JSON, EnvelopeError (with the id to reply with) for what is not a request.
    """
    try:
        plain = _decoder.decode(body)
    except (DecodeError, RecursionError):
        return _tolerant(body)
    id, params = plain.id, plain.params
    if id is UNSET or params is UNSET or not _PLAIN_ID.fullmatch(id):
        return _tolerant(body)
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:  # it may be nested too deeply, in a member that is ignored
        return _tolerant(body)
    if len(body) > _LARGE:
        id = id.copy()  # it outlives the request, of which it is a view
    return Envelope(id, plain.method, params)


def _tolerant(body: bytes) -> Envelope:
    """Accepts the rest, or finds the error and the id that goes with it."""
    members = _members(body)
    id = members.get("id")
    if id is not None and not _valid_id(bytes(id)):
        raise EnvelopeError("The id must be a string, an integer or null.")
    if _text(members.get("jsonrpc")) != "2.0":
        raise EnvelopeError('The member jsonrpc must be "2.0".', id)
    method = _text(members.get("method"))
    if not method:
        raise EnvelopeError("The method must be a non-empty string.", id)
    return Envelope(id, method, members.get("params"))


def _members(body: bytes) -> dict[str, Raw]:
    # The limit counts from the parameters.
    if too_deep(body, DEPTH_MAX + 1):
        raise ParseError(TOO_DEEP)
    try:
        body.decode()
        return _members_decoder.decode(_any_decoder.decode(body))
    except ValidationError:
        raise EnvelopeError(_NOT_AN_OBJECT) from None
    except (DecodeError, UnicodeDecodeError):
        return _members_with_surrogates(body)


def _members_with_surrogates(body: bytes) -> dict[str, Raw]:
    """The members of JSON that only has lone surrogates against it: they are the fault of a parameter, not of JSON."""
    fault = explain(body)
    if not isinstance(fault, InvalidParamsError):
        raise fault from None
    value: Any = json.loads(body)
    if not isinstance(value, dict):
        raise EnvelopeError(_NOT_AN_OBJECT) from None
    return {name: Raw(json.dumps(member).encode()) for name, member in value.items()}


def _valid_id(text: bytes) -> bool:
    if len(text) > ID_MAX_BYTES:
        return False
    if text.startswith(b'"'):
        return _text(Raw(text)) is not None
    return text == b"null" or text.removeprefix(b"-").isdigit()


def _text(raw: Raw | None) -> str | None:
    try:
        return None if raw is None else msgspec.json.decode(raw, type=str)
    except DecodeError:
        return None
