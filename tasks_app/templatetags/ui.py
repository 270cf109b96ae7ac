"""Small pieces of HTML that every page uses."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.interfaces import JSONRPC_WEBSOCKET
from tasks_app.pages import states

register = template.Library()

_UNITS = [(86400, "d"), (3600, "h"), (60, "min"), (1, "s")]


@register.simple_tag
def icon(name: str) -> SafeString:
    """A symbol of icons.svg: decoration, hidden from screen readers."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("icons.svg"), name)


@register.simple_tag
def badge(look: states.Look) -> SafeString:
    """A state as coloured badge with icon and text."""
    return format_html('<span class="badge state-{}">{}{}</span>', look.key, icon(look.icon), look.label)


@register.simple_tag
def state_badge(number: int) -> SafeString:
    """The badge of a state number."""
    return badge(states.BY_NUMBER[number])


@register.simple_tag
def when(at: datetime) -> SafeString:
    """How long ago, with the exact time on hover. Scripts keep it fresh."""
    exact = _exact(at)
    return format_html('<time datetime="{}" title="{} UTC" data-ago>{}</time>', _iso(at), exact, _ago(at))


@register.simple_tag
def exact(at: datetime) -> SafeString:
    """The exact time, in UTC with milliseconds."""
    return format_html('<time datetime="{}">{}</time>', _iso(at), _exact(at))


@register.simple_tag
def file_url(task_id: str, source: str) -> str:
    """Where the content of a part is downloaded; `source` is `<origin>/<index>`."""
    origin, _, index = source.partition("/")
    return reverse("task-file", args=[task_id, origin, int(index)])


@register.filter
def binding(name: str) -> str:
    """A protocol binding for people: the host's own has a URI for a name."""
    return {"JSONRPC": "JSON-RPC", "GRPC": "gRPC", JSONRPC_WEBSOCKET: "WebSocket"}.get(name, name)


@register.filter
def clock(at: datetime) -> str:
    """The time of day in UTC with milliseconds."""
    return _exact(at)[11:]


@register.filter
def duration(span: timedelta) -> str:
    """`320 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    seconds = max(span.total_seconds(), 0)
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    rest = int(seconds)
    index = next(i for i, (length, _) in enumerate(_UNITS) if rest >= length)
    (length, unit), (smaller, name) = _UNITS[index : index + 2]
    return f"{rest // length} {unit} {rest % length // smaller} {name}"


@register.filter
def thousands(number: int) -> str:
    """`12,345`."""
    return f"{number:,}"


@register.filter
def short_id(text: str) -> str:
    """The two ends of a long id: those of neighbours in time begin alike."""
    return text if len(text) <= 16 else f"{text[:8]}…{text[-5:]}"


@register.filter
def token(text: str) -> str:
    """An id as a part of an HTML id."""
    return re.sub(r"[^0-9A-Za-z_-]", lambda m: f"_{ord(m[0]):x}_", text)


def _ago(at: datetime) -> str:
    seconds = int((timezone.now() - at).total_seconds())
    if seconds < 5:
        return "just now"
    if seconds >= 30 * 86400:
        return at.astimezone(UTC).strftime("%Y-%m-%d")
    length, unit = next(u for u in _UNITS if seconds >= u[0])
    return f"{seconds // length} {unit} ago"


def _exact(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
