"""The list of webhooks with their health, those of the newest tasks first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.db import connection, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.utils import OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.models import Agent
from tasks_app.models import Delivery, PushConfig
from tasks_app.pages import health
from tasks_app.pages.access import staff_page

PAGE_SIZE = 50
_SEARCH_MILLISECONDS = 5000
_CURSOR_SEPARATOR = " "  # no task id holds one


class FilterForm(forms.Form):
    """GET parameters of the list."""

    text = forms.CharField(required=False, max_length=300, label="Address, id of the webhook, or task id")
    agent = forms.ModelChoiceField(
        Agent.objects.all(), to_field_name="slug", required=False, empty_label="Any agent",
        error_messages={"invalid_choice": "There is no such agent."},
    )  # fmt: skip
    health = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((h.name, h.label) for h in health.FILTERS)], label="Health"
    )

    @property
    def active(self) -> bool:
        """Whether a filter is set."""
        return any(self.data.get(name) for name in self.fields)


@dataclass(frozen=True, slots=True)
class Chip:
    """A health to filter by, with the number of webhooks in it where that is known."""

    health: health.Health
    count: int | None
    link: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A webhook in the list: `waiting` events are still to be taken."""

    config: PushConfig
    health: health.Health
    waiting: int
    last_at: datetime | None
    last_status: str


@require_safe
@staff_page
def webhook_list(request: HttpRequest) -> HttpResponse:
    """Filters as in `FilterForm`; `after` is the cursor of the page."""
    form = FilterForm(request.GET)
    rows, slow = [], False
    if form.is_valid():
        try:
            rows = _read(form.cleaned_data, request.GET.get("after", ""))
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") != "57014":  # query_canceled
                raise
            slow = True
    older = (
        f"{rows[PAGE_SIZE - 1].task_id}{_CURSOR_SEPARATOR}{rows[PAGE_SIZE - 1].config_id}"[:300]
        if len(rows) > PAGE_SIZE
        else ""
    )
    context = {
        "form": form,
        "rows": [_row(row) for row in rows[:PAGE_SIZE]],
        "chips": _chips(request.GET),
        "older": _link(request.GET, after=older) if older else "",
        "newest": _link(request.GET, after="") if request.GET.get("after") else "",
        "slow": slow,
        "page": "webhooks",
    }
    return render(request, "webhooks/list.html", context)


def _read(wanted: dict[str, Any], after: str) -> list[PushConfig]:
    """One webhook more than a page holds, which tells whether there is another page."""
    last = Delivery.objects.filter(task=OuterRef("task_id"), config_id=OuterRef("config_id")).order_by("-id")
    rows: QuerySet[PushConfig] = PushConfig.objects.select_related("task__agent").defer("token", "credentials")
    rows = rows.filter(_criteria(wanted), _place(after)).order_by("-task_id", "-config_id")
    rows = rows.annotate(
        last_at=Subquery(last.values("at")[:1]),
        last_status=Subquery(last.values("status")[:1]),
        last_failure=Subquery(last.values("error")[:1]),
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {_SEARCH_MILLISECONDS}")
        return list(rows[: PAGE_SIZE + 1])


def _criteria(wanted: dict[str, Any]) -> Q:
    criteria = health.BY_NAME[wanted["health"]].rows if wanted["health"] else Q()
    if wanted["agent"]:
        criteria &= Q(task__agent=wanted["agent"])
    text = wanted["text"]
    if text:
        criteria &= Q(task_id=text.lower()) | Q(config_id=text) | Q(url__icontains=text)
    return criteria


def _place(after: str) -> Q:
    task_id, _, config_id = after.replace("\x00", "").partition(_CURSOR_SEPARATOR)
    if not task_id:
        return Q()
    # The first condition is implied; it lets the index be entered at the cursor.
    return Q(task_id__lte=task_id) & (Q(task_id__lt=task_id) | Q(config_id__lt=config_id))


def _row(config: PushConfig) -> Row:
    last: dict[str, Any] = vars(config)
    status = f"HTTP {last['last_status']}" if last["last_status"] else last["last_failure"] or ""
    waiting = max(0, config.task.last_seq - config.cursor)
    return Row(config, health.health_of(config), waiting, last["last_at"], status)


def _chips(query: QueryDict) -> list[Chip]:
    chosen = query.get("health", "")
    counts = {h.name: PushConfig.objects.filter(h.rows).count() for h in health.COUNTED}
    return [
        Chip(h, counts.get(h.name), _link(query, after="", health="" if chosen == h.name else h.name), chosen == h.name)
        for h in health.FILTERS
    ]


def _link(query: QueryDict, **changes: str) -> str:
    """The query string of this list with other parameters; empty ones are left out."""
    link = query.copy()
    for name, value in changes.items():
        link[name] = value
    for name in [name for name in link if not link[name]]:
        del link[name]
    return f"?{link.urlencode()}"
