"""Files out of messages and artifacts, sent so that a browser cannot be tricked into running them."""

from __future__ import annotations

import base64
import mimetypes
import re

import msgspec
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe
from msgspec import UNSET

from protocol.model import Artifact, Message, Part, TaskStatus
from tasks_app import models
from tasks_app.pages.access import staff_page
from tasks_app.pages.parts import plain_type
from tasks_app.record import EventKind

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_UNSAFE_NAME = re.compile(r"[\x00-\x1f\x7f/\\]+")
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
    content, media_type = _content(part)
    name = _UNSAFE_NAME.sub("_", part.filename).strip(". ") or _made_up_name(origin, index, media_type)
    return HttpResponse(
        content,
        content_type=media_type,
        headers={
            "Content-Disposition": content_disposition_header(as_attachment=True, filename=name) or "attachment",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "private, max-age=3600",  # what an event or a message holds never changes
        },
    )


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


def _content(part: Part) -> tuple[bytes, str]:
    media_type = plain_type(part.media_type)
    if not _MEDIA_TYPE.fullmatch(media_type):
        media_type = ""
    if part.raw is not UNSET:
        return base64.b64decode(part.raw), media_type or "application/octet-stream"
    if part.text is not UNSET:
        return part.text.encode(), f"{media_type or 'text/plain'}; charset=utf-8"
    if part.data is not UNSET:
        return bytes(part.data), "application/json"
    raise Http404("The part is a URL; the host holds no file.")


def _made_up_name(origin: str, index: int, media_type: str) -> str:
    return f"{origin}-{index + 1}{mimetypes.guess_extension(plain_type(media_type)) or '.bin'}"
