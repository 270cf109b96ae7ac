"""Pages of the task list, newest change first, by keyset: a page costs the same at any depth and table size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Left
from django.db.utils import OperationalError

from tasks_app.models import Message, Task
from tasks_app.pages import counts
from tasks_app.pages.filters import Criteria

PAGE_SIZE = 50
_SUMMARY_CHARACTERS = 300
_MOST_GROUPS = 64
_SEARCH_MILLISECONDS = 5000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(r"([0-9]{1,17})_([0-9A-Za-z-]{1,36})")


class SearchTooSlowError(Exception):
    """The search would take longer than anybody should wait."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place between two tasks of the list: the change and id of the task beside it."""

    at: datetime
    id: str

    @classmethod
    def of(cls, task: Task) -> Cursor:
        """The place of a task."""
        return cls(task.status_at, task.id)

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """The cursor that `str` printed, None for anything else."""
        match = _CURSOR.fullmatch(text)
        return cls(_EPOCH + timedelta(microseconds=int(match[1])), match[2]) if match else None

    def __str__(self) -> str:
        return f"{(self.at - _EPOCH) // timedelta(microseconds=1)}_{self.id}"

    @property
    def older(self) -> Q:
        """Tasks after this place in the list."""
        # The first condition is implied; it lets the index be entered at the cursor.
        return Q(status_at__lte=self.at) & (Q(status_at__lt=self.at) | Q(id__lt=self.id))

    @property
    def newer(self) -> Q:
        """Tasks before this place in the list."""
        return Q(status_at__gte=self.at) & (Q(status_at__gt=self.at) | Q(id__gt=self.id))


@dataclass(frozen=True, slots=True)
class Row:
    """A task in the list, with the start of its first message from the caller."""

    task: Task
    summary: str


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and the cursors of its neighbours; None where the list ends. `total` is None where nobody knows."""

    rows: list[Row]
    newer: Cursor | None = None
    older: Cursor | None = None
    total: int | None = None


def read_page(criteria: Criteria, before: Cursor | None = None, after: Cursor | None = None) -> Page:
    """The page older than `before` or newer than `after`, else the newest one.

    Raises `SearchTooSlowError` when a search for text takes more than five seconds.
    """
    if after is not None:
        tasks = _read(criteria, after.newer, ascending=True)
        if len(tasks) > PAGE_SIZE:
            tasks = tasks[PAGE_SIZE - 1 :: -1]
            return Page(_rows(tasks), Cursor.of(tasks[0]), Cursor.of(tasks[-1]), _total(criteria))
    place = before.older if before else Q()  # fewer than a page are newer: the newest page shows them all
    tasks = _read(criteria, place)
    shown = tasks[:PAGE_SIZE]
    return Page(
        _rows(shown),
        newer=Cursor.of(shown[0]) if before and shown else None,
        older=Cursor.of(shown[-1]) if len(tasks) > PAGE_SIZE else None,
        total=_total(criteria),
    )


def _total(criteria: Criteria) -> int | None:
    if not criteria.countable:
        return None
    found = counts.matching(criteria.agent_id, criteria.owner, criteria.states).aggregate(n=Sum("tasks"))
    return found["n"] or 0


def _read(criteria: Criteria, place: Q, *, ascending: bool = False) -> list[Task]:
    """One task more than a page holds, which tells whether there is another page."""
    order = ("status_at", "id") if ascending else ("-status_at", "-id")
    tasks = _wanted(criteria).filter(place).order_by(*order)
    groups = _groups(criteria)
    if not groups:
        return []
    parts = [tasks.filter(**group)[: PAGE_SIZE + 1].values_list("id", "status_at") for group in groups]
    rows = _merge(parts, order)
    try:
        with transaction.atomic():
            if criteria.text:
                with connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL statement_timeout = {_SEARCH_MILLISECONDS}")
            ids = [task_id for task_id, _ in rows]
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") == "57014":  # query_canceled
            raise SearchTooSlowError from error
        raise
    found = Task.objects.filter(id__in=ids).select_related("agent").defer("request", "metadata", "status").in_bulk()
    return [found[task_id] for task_id in ids if task_id in found]


def _merge(
    parts: list[QuerySet[Task, tuple[str, datetime]]], order: tuple[str, str]
) -> QuerySet[Task, tuple[str, datetime]]:
    """The first rows of several lists: each part stops in its index after a page."""
    if len(parts) == 1:
        return parts[0]
    return parts[0].union(*parts[1:], all=True).order_by(*order)[: PAGE_SIZE + 1]


def _wanted(criteria: Criteria) -> QuerySet[Task]:
    tasks = Task.objects.all()
    if criteria.agent_id:
        tasks = tasks.filter(agent_id=criteria.agent_id)
    if criteria.owner:
        tasks = tasks.filter(owner=criteria.owner)
    if criteria.states:
        tasks = tasks.filter(state__in=criteria.states)
    if criteria.context_id:
        tasks = tasks.filter(context_id=criteria.context_id)
    if criteria.since:
        tasks = tasks.filter(status_at__gte=criteria.since)
    if criteria.until:
        tasks = tasks.filter(status_at__lte=criteria.until)
    if criteria.task_id:
        tasks = tasks.filter(id=criteria.task_id)
    elif criteria.text:
        said = Message.objects.filter(task=OuterRef("pk"), search__icontains=criteria.text)
        tasks = tasks.filter(Exists(said))
    return tasks


def _groups(criteria: Criteria) -> list[dict[str, object]]:
    """Conditions that cut the wanted tasks into ranges of an index: (agent, owner) and state, those that have tasks.

    One empty condition when no filter needs them or there are too many: the index `task_recent` is then read.
    """
    if criteria.task_id or not (criteria.agent_id or criteria.owner or criteria.states or criteria.context_id):
        return [{}]
    keys = ["agent_id", "owner", *(["state"] if criteria.states else [])]
    found = counts.matching(criteria.agent_id, criteria.owner, criteria.states).values(*keys).distinct()
    groups = list(found[: _MOST_GROUPS + 1])
    return [{}] if len(groups) > _MOST_GROUPS else [dict(group) for group in groups]


def _rows(tasks: list[Task]) -> list[Row]:
    texts = summaries([task.id for task in tasks])
    return [Row(task, texts.get(task.id, "")) for task in tasks]


def summaries(ids: list[str]) -> dict[str, str]:
    """The first line of the first message of each task, as far as it has text."""
    first = Message.objects.filter(task__in=ids, position=1).annotate(start=Left("search", _SUMMARY_CHARACTERS))
    return {task_id: _first_line(text) for task_id, text in first.values_list("task_id", "start")}


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
