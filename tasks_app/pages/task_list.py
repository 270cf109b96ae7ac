"""The list of tasks."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.models import Agent
from agents.public_url import base_url_of
from tasks_app.pages import catalog, counts, listing, states
from tasks_app.pages.access import staff_page
from tasks_app.pages.filters import Criteria, FilterForm

_MOST_OWNERS = 200


@dataclass(frozen=True, slots=True)
class Chip:
    """A state to filter by, with the number of tasks in it."""

    look: states.Look
    tasks: int
    chosen: bool


@require_safe
@staff_page
def task_list(request: HttpRequest) -> HttpResponse:
    """Tasks by last change. Filters as in `FilterForm`; `before` and `after` are cursors of the page."""
    form = FilterForm(request.GET)
    criteria = form.criteria() if form.is_valid() else Criteria()
    slow = False
    page = listing.Page([], total=None)
    if form.is_valid():
        before, after = (listing.Cursor.parse(request.GET.get(name, "")) for name in ("before", "after"))
        try:
            page = listing.read_page(criteria, before, after)
        except listing.SearchTooSlowError:
            slow = True
    context = {
        "form": form,
        "rows": page.rows,
        "total": page.total,
        "newer": _link(form.query, after=page.newer) if page.newer else "",
        "older": _link(form.query, before=page.older) if page.older else "",
        "newest": _link(form.query),
        "chips": _chips(criteria, form),
        "owners": counts.owners(_MOST_OWNERS),
        "slow": slow,
        "first_curl": None if page.rows or form.active else _first_curl(request),
        "page": "tasks",
    }
    return render(request, "tasks/list.html", context)


def _link(query: QueryDict, **cursor: listing.Cursor) -> str:
    """The query string of this list at another place."""
    link = query.copy()
    for name in ("before", "after"):
        link.pop(name, None)
    for name, place in cursor.items():
        link[name] = str(place)
    return f"?{link.urlencode()}"


def _chips(criteria: Criteria, form: FilterForm) -> list[Chip]:
    tasks = counts.by_state(criteria.agent_id, criteria.owner)
    chosen = set(form.query.getlist("state"))
    return [Chip(look, tasks.get(look.number, 0), look.key in chosen) for look in states.LOOKS]


def _first_curl(request: HttpRequest) -> str:
    """A call that a newcomer can paste, to an agent that is open if there is one; empty without any agent."""
    agent = Agent.objects.filter(enabled=True).order_by("-open", "slug").first()
    return catalog.curl(base_url_of(request), agent) if agent else ""
