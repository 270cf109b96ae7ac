"""GET /files/{id}: the content of a big part for whoever has its signed URL."""

from __future__ import annotations

import re
from functools import partial
from typing import IO, Any, NamedTuple
from urllib.parse import parse_qs

from django.utils.http import content_disposition_header

from a2a_host.bindings.errors import codes_of, error_headers
from a2a_host.bindings.http import CORS, Headers, respond, respond_preflight
from protocol.errors import A2AError, MethodNotAllowedError
from tasks_app.content import storage
from tasks_app.content.links import is_valid
from tasks_app.content.media import media_type_of, safe_name
from tasks_app.content.threads import in_thread
from tasks_app.processes.process import get_host
from tasks_app.tables.store import Store

_FIND = "SELECT id, size, digest, media_type, filename FROM tasks_app_storedpart WHERE id = %s"
_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})")
_TEXT = b"text/plain; charset=utf-8"
# Whatever the file is, a browser that shows it runs nothing of it.
_GUARDS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, max-age=600"),
    (b"accept-ranges", b"bytes"),
    *CORS,
]


class _File(NamedTuple):
    id: str
    size: int
    digest: str
    media_type: str
    filename: str


async def serve_file(scope: Any, receive: Any, send: Any) -> None:
    """ASGI application. A URL that is wrong or expired and a file that is gone look the same: 404."""
    if scope["method"] == "OPTIONS":
        await respond_preflight(send)
        return
    try:
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowedError(("GET", "HEAD", "OPTIONS"))
        file = await _find(scope, (await get_host()).store)
        await (_send(file, scope, send) if file is not None else _refuse(send))
    except storage.FileGoneError:
        await _refuse(send)
    except A2AError as error:
        await respond(send, codes_of(error).http, f"{error.message}\n".encode(), _TEXT, error_headers(error))


async def _refuse(send: Any) -> None:
    await respond(send, 404, b"There is no such file, or the link has expired.\n", _TEXT)


async def _find(scope: Any, store: Store) -> _File | None:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    expires, signature = query.get("expires", [""])[0], query.get("signature", [""])[0]
    part_id = scope["url_route"]["kwargs"]["id"]
    if not is_valid(part_id, expires, signature):
        return None
    rows = await store.query(_FIND, [part_id])
    return _File(*rows[0]) if rows else None


async def _send(file: _File, scope: Any, send: Any) -> None:
    headers = dict(scope["headers"])
    etag = b'"%b"' % file.digest.encode()
    start, end, status = _span(headers.get(b"range", b"").decode("latin-1"), file.size)
    if headers.get(b"if-range", etag) != etag:
        start, end, status = 0, file.size, 200
    if headers.get(b"if-none-match") == etag:
        start, end, status = 0, 0, 304
    out: Headers = [*_headers(file), (b"etag", etag)]
    if status in (206, 416):
        span = f"{start}-{end - 1}" if status == 206 else "*"
        out.append((b"content-range", f"bytes {span}/{file.size}".encode()))
    if status != 304:
        out.append((b"content-length", str(end - start).encode()))
    opened = None
    if end > start and scope["method"] == "GET":
        opened = await in_thread(lambda: storage.open_file(file.id))  # what is wrong with it is said before the status
    await send({"type": "http.response.start", "status": status, "headers": out, "trailers": False})
    if opened is not None:
        await _send_span(opened, start, end, send)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _headers(file: _File) -> Headers:
    media_type = media_type_of(file.media_type)
    name = safe_name(file.filename) or file.id
    disposition = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    charset = "; charset=utf-8" if media_type.startswith("text/") else ""
    return [
        (b"content-type", f"{media_type}{charset}".encode()),
        (b"content-disposition", disposition.encode("latin-1")),
        *_GUARDS,
    ]


async def _send_span(opened: IO[bytes], start: int, end: int, send: Any) -> None:
    try:
        await in_thread(lambda: opened.seek(start))
        left = end - start
        while left and (piece := await in_thread(partial(opened.read, min(left, storage.CHUNK)))):
            left -= len(piece)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        opened.close()


def _span(header: str, size: int) -> tuple[int, int, int]:
    """(start, end, status) of the one range that a request asks for (RFC 9110 §14.2); all of it if it names none that
    is understood."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or match[0] == "bytes=-":
        return 0, size, 200
    first, last = match[1], match[2]
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return 0, size, 200
    return (start, end, 206) if start < end else (0, 0, 416)
