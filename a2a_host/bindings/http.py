"""Bytes in and out of an ASGI connection, with the headers that every A2A reply carries."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable

from agents.media_types import essence
from protocol.errors import RequestTooLargeError, UnsupportedMediaTypeError

Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"
A2A_JSON = b"application/a2a+json"
_JSON_OR_NOTHING = frozenset(("", JSON.decode(), A2A_JSON.decode()))

STRANGER_BYTES = 64 * 1024
"""What is read at most of a request that is going to be refused for want of a key."""

# Any origin may call: authentication is by header, never by a cookie that a browser adds by itself.
CORS: Headers = [
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"a2a-extensions, a2a-version, etag, retry-after, www-authenticate, x-a2a-extensions",
    ),
]
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"accept, authorization, content-type, a2a-version, a2a-extensions, if-none-match, last-event-id, "
        b"x-a2a-extensions, x-api-key",
    ),
    (b"access-control-max-age", b"86400"),
    (b"content-length", b"0"),
]


class ClientGone(Exception):
    """The caller closed the connection before the request was complete."""


async def read_body(receive: ASGIReceiveCallable, limit: int, declared: int | None) -> bytes:
    """The request body. Raises RequestTooLargeError beyond `limit` bytes, without reading on, and ClientGone."""
    if declared is not None and declared > limit:
        raise RequestTooLargeError(limit)
    message: Any = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise RequestTooLargeError(limit)
        return body
    return await _read_rest(receive, message, limit)


async def _read_rest(receive: ASGIReceiveCallable, message: Any, limit: int) -> bytes:
    body = BytesIO()  # grows in place: a big body is in memory once
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone
        body.write(message.get("body", b""))
        if body.tell() > limit:
            raise RequestTooLargeError(limit)
        if not message.get("more_body", False):
            return body.getvalue()
        message = await receive()


def check_json_type(content_type: str) -> None:
    """Raises UnsupportedMediaTypeError unless the request is JSON by its Content-Type, or says nothing of it."""
    if essence(content_type) not in _JSON_OR_NOTHING:
        raise UnsupportedMediaTypeError(content_type[:100])


def answer_type(accept: str, content_type: str) -> bytes:
    """The media type of a JSON reply to a request with these headers, empty when it has none (§11.1).

    What the caller asks for; without a wish, the name that it gave to its own body; otherwise application/a2a+json.
    Never nothing: an error has to reach callers whatever they accept.
    """
    accept = accept.lower()
    if "a2a+json" in accept:
        return A2A_JSON
    if "application/json" in accept and not ("*/*" in accept or "application/*" in accept):
        return JSON
    return JSON if essence(content_type) == JSON.decode() else A2A_JSON


async def respond(
    send: ASGISendCallable, status: int, body: bytes, content_type: bytes, extra: Headers | None = None
) -> None:
    """Send a whole response."""
    headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode()), *CORS]
    if extra:
        headers += extra
    await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def respond_empty(send: ASGISendCallable, status: int, extra: Headers | None = None) -> None:
    """Send a response without a body."""
    await send({"type": "http.response.start", "status": status, "headers": [*CORS, *(extra or [])], "trailers": False})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def respond_preflight(send: ASGISendCallable) -> None:
    """Answer a CORS preflight."""
    await respond_empty(send, 204, _PREFLIGHT)
