"""The filters of the task list, as they stand in the URL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

from agents.models import Agent
from tasks_app.pages import states

WITHIN = {
    "hour": ("Last hour", timedelta(hours=1)),
    "day": ("Last 24 hours", timedelta(days=1)),
    "week": ("Last 7 days", timedelta(days=7)),
    "month": ("Last 30 days", timedelta(days=30)),
}
_TASK_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MINUTES = "%Y-%m-%dT%H:%M"


@dataclass(frozen=True, slots=True)
class Criteria:
    """Which tasks are wanted. Empty members mean any; times are aware and bound the last change."""

    agent_id: int | None = None
    states: frozenset[int] = field(default_factory=frozenset)
    owner: str = ""
    context_id: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def task_id(self) -> str:
        """The task that `text` names, if it is a whole task id."""
        text = self.text.lower()
        return text if _TASK_ID.fullmatch(text) else ""

    @property
    def countable(self) -> bool:
        """Whether the counters know how many tasks match."""
        return not (self.context_id or self.text or self.since or self.until)


def _without_blanks(query: QueryDict) -> QueryDict:
    filled = QueryDict(mutable=True)
    for name, values in query.lists():
        if any(values):
            filled.setlist(name, [value for value in values if value])
    return filled


class FilterForm(forms.Form):
    """GET parameters of the task list. Times are UTC."""

    def __init__(self, query: QueryDict) -> None:
        self.query = _without_blanks(query)
        super().__init__(self.query)

    text = forms.CharField(required=False, max_length=200)
    agent = forms.ModelChoiceField(
        Agent.objects.all(), to_field_name="slug", required=False, empty_label="Any agent",
        error_messages={"invalid_choice": "There is no such agent."},
    )  # fmt: skip
    owner = forms.CharField(required=False, max_length=120)
    context = forms.CharField(required=False, max_length=255)
    state = forms.MultipleChoiceField(required=False, choices=[(look.key, look.label) for look in states.LOOKS])
    within = forms.ChoiceField(
        required=False, choices=[("", "Any time"), *((key, label) for key, (label, _) in WITHIN.items())]
    )
    since = forms.DateTimeField(required=False, widget=forms.DateTimeInput({"type": "datetime-local"}, format=_MINUTES))
    until = forms.DateTimeField(required=False, widget=forms.DateTimeInput({"type": "datetime-local"}, format=_MINUTES))

    def clean(self) -> dict[str, Any]:
        """Refuse a time range that ends before it starts."""
        data = super().clean() or self.cleaned_data
        since, until = data.get("since"), data.get("until")
        if since and until and since > until:
            self.add_error("until", "This is before the start of the range.")
        return data

    @property
    def active(self) -> int:
        """How many filters are set."""
        return sum(name in self.query for name in self.fields)

    def criteria(self) -> Criteria:
        """What the parameters ask for. The form must be valid."""
        data = self.cleaned_data
        since = data["since"]
        if data["within"]:
            start = timezone.now() - WITHIN[data["within"]][1]
            since = max(since, start) if since else start
        return Criteria(
            agent_id=data["agent"].pk if data["agent"] else None,
            states=frozenset(states.BY_KEY[key].number for key in data["state"]),
            owner=data["owner"],
            context_id=data["context"],
            text=data["text"],
            since=since,
            until=data["until"],
        )
