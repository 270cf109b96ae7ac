"""Files out of messages and artifacts, sent so that a browser cannot be tricked into running them."""

from __future__ import annotations

import base64
import mimetypes
from typing import IO

import msgspec
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe
from msgspec import UNSET

from agents.media_types import essence
from protocol.model import Artifact, Message, Part, TaskStatus
from protocol.stored_part import StoredPart, stored_part
from tasks_app import models
from tasks_app.content import storage
from tasks_app.content.media import media_type_of, safe_name
from tasks_app.pages.access import staff_page
from tasks_app.tables.record import EventKind

_JSON = "application/json"
_EVENT_BODIES = {EventKind.STATUS: TaskStatus, EventKind.ARTIFACT: Artifact, EventKind.MESSAGE: Message}


@require_safe
@staff_page
def part_file(_request: HttpRequest, task_id: str, origin: str, index: int) -> HttpResponseBase:
    """The content of one part as a download.

    `origin` is `m<position>` of a message of the history or `e<seq>` of an event.
    """
    stored = _parts(task_id, origin[0], int(origin[1:]))
    if index >= len(stored):
        raise Http404("There is no such part.")
    part = stored[index]
    media_type = essence(part.media_type)
    in_file = stored_part(part)
    try:
        content, media_type = _stored(in_file, media_type) if in_file is not None else _content(part, media_type)
    except storage.StorageDownError as error:
        return HttpResponse(error.message, status=503, content_type="text/plain")
    name = safe_name(part.filename) or _made_up_name(origin, index, media_type)
    headers = {
        "Content-Disposition": content_disposition_header(as_attachment=True, filename=name) or "attachment",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "private, max-age=3600",  # what an event or a message holds never changes
    }
    if isinstance(content, bytes):
        return HttpResponse(content, content_type=media_type, headers=headers)
    return FileResponse(content, content_type=media_type, headers=headers)


def _parts(task_id: str, source: str, number: int) -> list[Part]:
    if source == "m":
        said = models.Message.objects.filter(task=task_id, position=number).first()
        if said is None:
            raise Http404("There is no such message.")
        return list(msgspec.json.decode(said.body, type=Message).parts)
    event = models.Event.objects.filter(task=task_id, seq=number).first()
    if event is None:
        raise Http404("There is no such event.")
    body = msgspec.json.decode(event.body, type=_EVENT_BODIES[EventKind(event.kind)])
    if isinstance(body, TaskStatus):
        return list(body.message.parts) if isinstance(body.message, Message) else []
    return list(body.parts)


def _content(part: Part, media_type: str) -> tuple[bytes, str]:
    if part.raw is not UNSET:
        return base64.b64decode(part.raw), media_type_of(media_type)
    if part.text is not UNSET:
        return part.text.encode(), _text_type(media_type)
    if part.data is not UNSET:
        return bytes(part.data), _JSON
    raise Http404("The part is a URL; the host holds no file.")


def _stored(part: StoredPart, media_type: str) -> tuple[IO[bytes], str]:
    kinds = {"raw": media_type_of(media_type), "text": _text_type(media_type), "data": _JSON}
    try:
        return storage.open_file(part.id), kinds[part.kind]
    except storage.FileGoneError:
        raise Http404("The file is not in the storage any more.") from None


def _text_type(media_type: str) -> str:
    return f"{media_type_of(media_type, 'text/plain')}; charset=utf-8"


def _made_up_name(origin: str, index: int, media_type: str) -> str:
    return f"{origin}-{index + 1}{mimetypes.guess_extension(essence(media_type)) or '.bin'}"
