"""From bytes to checked structs and back.

request = decode(SendMessageRequest, body)  # ParseError, InvalidParamsError
body = encode(response)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, DecodeError, Raw

from protocol import protojson
from protocol.model import Part, Wire
from protocol.query import decode_query
from protocol.requests import SendMessageRequest
from protocol.rules import PLAIN, Plain
from protocol.stored_part import Held, start_of

__all__ = ["decode", "decode_query", "encode", "fingerprint", "load", "plain_text"]

T = TypeVar("T", bound=Wire)


def _written(value: object) -> str:
    """Content that is held as bytes, where somebody wants its base64 after all."""
    if not isinstance(value, Held):
        raise TypeError(f"{type(value).__name__} is no JSON")
    return value.base64


_encoder = msgspec.json.Encoder(enc_hook=_written)
_sorting_encoder = msgspec.json.Encoder(order="sorted")
_decoders: dict[type[Wire], msgspec.json.Decoder[Any]] = {}
_fast: dict[Any, tuple[msgspec.json.Decoder[Any], Plain]] = {
    kind: (msgspec.json.Decoder(kind), plain) for kind, plain in PLAIN.items()
}

# Beyond 2**53 doubles skip integers, so a float no longer says which integer was meant.
_EXACT_MAX = 2.0**53


def decode(kind: type[T], data: bytes | Raw | None, path: Mapping[str, str] | None = None) -> T:
    """The struct in received JSON, fully validated. No data at all, or null, reads as `{}`.

    `path` holds the values that came in the path of the URL, by JSON name; they win over the body.
    `Raw` fields of the result are views of `data`. Raises ParseError or InvalidParamsError, whose fields are relative
    to the struct: `message.parts[0]`.
    """
    plain = decode_plain(kind, data) if path is None else None
    return protojson.read(kind, data or b"", path) if plain is None else plain


def decode_plain(kind: type[T], data: bytes | Raw | None) -> T | None:
    """The struct if its JSON is in the usual spelling and fine as it stands; None says nothing of it."""
    if data is None or (fast := _fast.get(kind)) is None:
        return None
    decoder, plain = fast
    try:
        request: T = decoder.decode(data)
    except (DecodeError, RecursionError):
        return None  # The tolerant reader accepts it, or knows what is wrong.
    return request if plain(request, data) else None


def load(kind: type[T], stored: bytes | str) -> T:
    """The struct in JSON that `encode` made, without a second validation."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(stored)  # type: ignore[no-any-return]


def encode(value: Wire) -> bytes:
    """ProtoJSON of a struct, on one line, without fields that hold their default."""
    return _encoder.encode(value)


def plain_text(parts: Sequence[Part]) -> str:
    """What a person would search: the text parts, joined by newlines, without U+0000. Of texts that are kept in files
    it is how they begin."""
    texts = [
        text for part in parts if (text := part.text if isinstance(part.text, str) else start_of(part)) is not None
    ]
    return "\n".join(texts).replace("\0", "")


def fingerprint(request: SendMessageRequest) -> str:
    """SHA-256, in hex, of what a request says: the same for any spelling, white space or order of its members."""
    return hashlib.sha256(canonical_text(request)).hexdigest()


def canonical_text(request: SendMessageRequest) -> bytes:
    """The JSON that requests that say the same have in common."""
    text = _encoder.encode(request)
    if _has_json(request):
        text = _sorting_encoder.encode(_canonical(msgspec.json.decode(text)))
    return text


def _has_json(request: SendMessageRequest) -> bool:
    message = request.message
    if request.metadata is not UNSET or message.metadata is not UNSET:
        return True
    return any(part.data is not UNSET or part.metadata is not UNSET for part in message.parts)


def _canonical(value: Any) -> Any:
    """JSON with 1.0 and 1e0 written as 1: they are one number to every JSON reader."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT_MAX else value
    if isinstance(value, list):
        return [_canonical(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _canonical(inner) for key, inner in value.items()}
    return value
