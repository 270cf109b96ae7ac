"""What a person at the host does with somebody's task: approve, refuse, give input, cancel.

An answer is a follow-up under the principal that the task belongs to; its message names who answered. The line of the
audit log is part of the change that takes the answer in, so neither is there without the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import Raw

from agents.entries import TEXT_PLAIN
from agents.registry import AgentEntry
from agents.runtimes.base import Answered, Caller
from protocol import codec
from protocol.errors import (
    InvalidParamsError,
    ParseError,
    RequestTooLargeError,
    TaskNotFoundError,
    UnsupportedOperationError,
    Violation,
)
from protocol.ids import new_id
from protocol.requests import SendMessageRequest
from protocol.states import TaskState
from tasks_app.execution.cancelling import cancel_record, load_task
from tasks_app.execution.host import Host
from tasks_app.execution.turn import turn_of
from tasks_app.journal import AuditLine
from tasks_app.operations.call import Call
from tasks_app.operations.sending import start_task
from tasks_app.tables.record import TaskRecord

_DIALECT = "HOST/1.0"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person says to a task of AUTH_REQUIRED."""

    approved: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """What a person says to a task of INPUT_REQUIRED: text, JSON, or both."""

    text: str = ""
    data: str = ""


async def answer_task(host: Host, task_id: str, attempt: int, by: str, answer: Decision | Input) -> TaskRecord:
    """Answer a waiting task as it was under `attempt`; gives the task as its next turn begins.

    `by` is the name of the person. Raises InvalidParamsError with the fields `text` and `data`, RequestTooLargeError,
    TaskNotFoundError, and UnsupportedOperationError for a task that does not wait for this, or that somebody else was
    first to answer.
    """
    record = await load_task(host, task_id)
    entry = host.registry.by_id(record.agent_id)
    if entry is None:
        raise TaskNotFoundError(task_id)
    if record.attempt == attempt:
        _check_state(record, answer)
    turn = turn_of(record)
    call = Call(
        host,
        entry,
        Caller(record.owner, authenticated=turn.authenticated),
        _DIALECT,
        requested=frozenset(turn.extensions),
        answered=Answered(by, answer.approved if isinstance(answer, Decision) else None),
        answers_attempt=attempt,
        audit=_line(by, entry.slug, answer),
    )
    return await start_task(call, _request(entry, record, by, answer))


async def cancel_any_task(host: Host, task_id: str) -> TaskRecord:
    """Cancel somebody's task. Raises TaskNotFoundError and TaskNotCancelableError."""
    return await cancel_record(host, await load_task(host, task_id))


def _line(by: str, slug: str, answer: Decision | Input) -> AuditLine:
    """Without what was typed."""
    if isinstance(answer, Input):
        given = [f"{len(answer.text)} characters of text"] if answer.text.strip() else []
        given += [f"{len(answer.data)} characters of data"] if answer.data.strip() else []
        return AuditLine(by, "task.input", slug, f"Gave {' and '.join(given)}.")
    action, word = ("task.approve", "Approved") if answer.approved else ("task.refuse", "Refused")
    return AuditLine(by, action, slug, f"{word}, with a note." if answer.note else f"{word}.")


def _check_state(record: TaskRecord, answer: Decision | Input) -> None:
    wanted = TaskState.AUTH_REQUIRED if isinstance(answer, Decision) else TaskState.INPUT_REQUIRED
    if record.state is not wanted:
        raise UnsupportedOperationError(
            f"The task is {record.state}, not {wanted}.", {"taskId": record.id, "state": str(record.state)}
        )


def _request(entry: AgentEntry, record: TaskRecord, by: str, answer: Decision | Input) -> SendMessageRequest:
    parts = _decision_parts(entry, by, answer) if isinstance(answer, Decision) else _input_parts(answer)
    message = {
        "messageId": new_id(),
        "role": "ROLE_USER",
        "taskId": record.id,
        "parts": parts,
        "metadata": {"answeredBy": by},
    }
    body = msgspec.json.encode({"message": message})
    if len(body) > entry.max_request_bytes:
        raise RequestTooLargeError(entry.max_request_bytes)
    try:
        return codec.decode(SendMessageRequest, body)
    except ParseError as error:
        raise InvalidParamsError([Violation("data", f"is refused: {error.message}")]) from None
    except InvalidParamsError as error:
        raise InvalidParamsError([Violation("data", v.description) for v in error.violations]) from None


def _decision_parts(entry: AgentEntry, by: str, decision: Decision) -> list[dict[str, object]]:
    """For people as text, if the agent takes any, and for code as data."""
    text = f"{'Approved' if decision.approved else 'Refused'} by {by}." + (decision.note and f"\n{decision.note}")
    data = {"approved": decision.approved, "by": by} | ({"note": decision.note} if decision.note else {})
    parts: list[dict[str, object]] = [{"text": text}] if entry.accepts(TEXT_PLAIN) else []
    return [*parts, {"data": data}]


def _input_parts(given: Input) -> list[dict[str, object]]:
    parts: list[dict[str, object]] = [{"text": given.text}] if given.text.strip() else []
    if given.data.strip():
        try:
            parts.append({"data": msgspec.json.decode(given.data, type=Raw)})
        except (msgspec.DecodeError, RecursionError):
            raise InvalidParamsError([Violation("data", "is not JSON")]) from None
    if not parts:
        raise InvalidParamsError([Violation("text", "is empty, and so is the data")])
    return parts
