"""What somebody types on the page of a waiting task."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.http import HttpRequest

from tasks_app.operations.answering import Decision, Input

NOTE_MAX = 2000  # characters


@dataclass(slots=True)
class AnswerForm:
    """The fields as they were sent, and what is wrong by field. `attempt` is the run whose question was on the page."""

    attempt: str
    verdict: str
    text: str = ""
    data: str = ""
    note: str = ""
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, request: HttpRequest) -> AnswerForm:
        """The form of a request."""

        def sent(name: str) -> str:
            return request.POST.get(name, "").replace("\r\n", "\n")  # as browsers send line breaks

        return cls(sent("attempt"), sent("verdict"), sent("text"), sent("data"), sent("note"))

    @property
    def answer(self) -> Decision | Input:
        """What is meant."""
        if self.verdict in ("approve", "refuse"):
            return Decision(self.verdict == "approve", self.note.strip())
        return Input(self.text, self.data)

    def check(self) -> None:
        """Note what can be said without the task."""
        if self.verdict not in ("approve", "refuse", "input") or not self.attempt.isdecimal() or len(self.attempt) > 9:
            self.errors["verdict"] = "The form was not sent whole. Load the page again."
        if len(self.note) > NOTE_MAX:
            self.errors["note"] = f"At most {NOTE_MAX} characters."
