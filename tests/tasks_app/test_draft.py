"""What an agent may say in which state, and what of it is kept (§4.1.3, §4.2.2)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET, Raw

from protocol import codec
from protocol.errors import InvalidAgentResponseError
from protocol.model import Artifact, Message, Part, Role
from protocol.states import TaskState
from protocol.timestamps import print_timestamp
from tasks_app.execution.draft import TaskDraft
from tasks_app.tables.record import Event, EventKind, TaskRecord, assemble, initial_status
from tests.tasks_app.world import chunk, say

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
TERMINAL = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)
INTERRUPTED = (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)
REPORTED = (TaskState.WORKING, *TERMINAL, *INTERRUPTED)
Speak = Callable[[TaskDraft, Message], None]
SPEAK = [
    pytest.param(lambda draft, message: draft.move(TaskState.WORKING, message), id="move"),
    pytest.param(lambda draft, message: draft.reply(message), id="reply"),
]
ALLOWED = {(old, new) for old in (TaskState.SUBMITTED, TaskState.WORKING, *INTERRUPTED) for new in REPORTED} | {
    (TaskState.SUBMITTED, TaskState.SUBMITTED)
}


def make_record(state: TaskState = TaskState.SUBMITTED, message: Message | None = None, **fields: Any) -> TaskRecord:
    """A stored task in a state, with what its agent said last."""
    status = initial_status(AT)
    if state is not TaskState.SUBMITTED or message:
        said = f',"message":{codec.encode(message).decode()}' if message else ""
        status = f'{{"state":"{state}"{said},"timestamp":"{print_timestamp(AT)}"}}'
    values = {"message_count": 1, "history": ['{"messageId":"m-1"}'], "last_seq": 3} | fields
    return TaskRecord("task-1", 1, "alice", "context-1", state, status, AT, AT, **values)


def snapshot(draft: TaskDraft) -> tuple[Any, ...]:
    """Everything a draft holds."""
    fields = (draft.state, draft.status, draft.status_at, draft.metadata, draft.last_seq, draft.message_count)
    return (*fields, list(draft.events), list(draft.messages))


def stored_chunk(artifact_id: str, seq: int, *, append: bool = False, last_chunk: bool = False) -> Event:
    body = f'{{"artifactId":"{artifact_id}","parts":[{{"text":"{seq}"}}]}}'
    return Event(seq, EventKind.ARTIFACT, body, AT, 1, None, None, artifact_id, append, last_chunk)


@pytest.mark.spec("4.1.3")
@pytest.mark.parametrize(("old", "new"), list(itertools.product(TaskState, TaskState)), ids=lambda s: s.name)
def test_every_move_between_states(old: TaskState, new: TaskState) -> None:
    draft = TaskDraft(make_record(old))
    before = snapshot(draft)
    if (old, new) in ALLOWED:
        draft.move(new, say("so it is"))
        assert draft.state is new
        assert [(e.seq, e.kind, e.state) for e in draft.events] == [(4, EventKind.STATUS, new)]
        return
    with pytest.raises(InvalidAgentResponseError) as refused:
        draft.move(new, say("so it is"))
    assert refused.value.message == f"A task that is {old} cannot become {new}."
    assert snapshot(draft) == before


def test_a_status_is_an_event_and_the_tasks_status() -> None:
    draft = TaskDraft(make_record())
    draft.move(TaskState.WORKING)
    (event,) = draft.events
    assert json.loads(event.body) == {"state": "TASK_STATE_WORKING", "timestamp": print_timestamp(draft.status_at)}
    assert draft.status == event.body
    assert (event.seq, event.attempt, event.created_at, event.metadata) == (4, 1, draft.status_at, None)
    assert draft.last_seq == 4


@pytest.mark.parametrize("state", [TaskState.WORKING, *INTERRUPTED])
def test_the_same_state_with_nothing_to_say_is_no_event(state: TaskState) -> None:
    draft = TaskDraft(make_record(state))
    before = snapshot(draft)
    draft.move(state)
    assert snapshot(draft) == before
    draft.move(state, say("still"))
    draft.move(state, metadata=Raw(b'{"k":1}'))
    assert [e.seq for e in draft.events] == [4, 5]


def test_a_message_of_the_agent_is_put_in_its_place() -> None:
    """Whatever ids and role the agent's code gave it."""
    draft = TaskDraft(make_record())
    message = Message(
        message_id="a-1", role=Role.USER, parts=[Part(text="hm")], task_id="another", context_id="another"
    )
    draft.move(TaskState.WORKING, message)
    assert json.loads(draft.status)["message"] == {
        "messageId": "a-1",
        "role": "ROLE_AGENT",
        "parts": [{"text": "hm"}],
        "taskId": "task-1",
        "contextId": "context-1",
    }
    assert (message.role, message.task_id) == (Role.USER, "another"), "the agent's own object is left alone"


def test_history_keeps_the_message_of_a_status_that_is_replaced() -> None:
    draft = TaskDraft(make_record(TaskState.WORKING, say("first", "a-1")))
    draft.move(TaskState.WORKING, say("second", "a-2"))
    assert [(m.position, m.message_id, m.search, m.role) for m in draft.messages] == [(2, "a-1", "first", 2)]
    draft.move(TaskState.INPUT_REQUIRED, say("third", "a-3"))
    draft.move(TaskState.COMPLETED)
    assert [(m.position, m.message_id) for m in draft.messages] == [(2, "a-1"), (3, "a-2"), (4, "a-3")]
    assert draft.message_count == 4
    assert "message" not in json.loads(draft.status)


def test_the_last_status_message_is_in_the_status_only() -> None:
    draft = TaskDraft(make_record(TaskState.WORKING))
    draft.move(TaskState.COMPLETED, say("done", "a-1"))
    assert draft.messages == []
    assert json.loads(draft.status)["message"]["messageId"] == "a-1"


def test_metadata_of_statuses_is_merged_member_by_member() -> None:
    draft = TaskDraft(make_record(TaskState.WORKING, metadata='{"a":1.0,"b":{"x":1}}'))
    draft.move(TaskState.WORKING, metadata=Raw(b'{"b":12345678901234567890,"c":[]}'))
    assert draft.metadata == '{"a":1.0,"b":12345678901234567890,"c":[]}'
    assert draft.events[0].metadata == '{"b":12345678901234567890,"c":[]}'


@pytest.mark.spec("4.2.2")
@pytest.mark.parametrize("state", list(TaskState), ids=lambda s: s.name)
def test_artifacts_are_taken_until_the_end(state: TaskState) -> None:
    draft = TaskDraft(make_record(state))
    before = snapshot(draft)
    if state in (TaskState.SUBMITTED, TaskState.WORKING, *INTERRUPTED):
        draft.add_artifact(chunk("x"), False, False, UNSET)
        assert [(e.seq, e.kind, e.artifact_id, e.append, e.last_chunk) for e in draft.events] == [
            (4, EventKind.ARTIFACT, "result", False, False)
        ]
        assert draft.state is state, "an artifact is no status"
        return
    with pytest.raises(InvalidAgentResponseError) as refused:
        draft.add_artifact(chunk("x"), False, False, UNSET)
    assert refused.value.message == f"A task that is {state} takes no more artifacts."
    assert snapshot(draft) == before


def test_an_append_to_an_unknown_artifact_creates_it() -> None:
    draft = TaskDraft(make_record())
    draft.add_artifact(chunk("1", "x"), True, False, UNSET)
    draft.add_artifact(chunk("2", "x"), True, False, UNSET)
    draft.add_artifact(chunk("3", "y"), True, False, UNSET)
    assert [(e.artifact_id, e.append) for e in draft.events] == [("x", False), ("x", True), ("y", False)]


def test_an_append_to_a_stored_artifact_appends() -> None:
    draft = TaskDraft(make_record(chunks=[stored_chunk("x", 1)]))
    draft.add_artifact(chunk("2", "x"), True, False, UNSET)
    assert [(e.artifact_id, e.append) for e in draft.events] == [("x", True)]


@pytest.mark.parametrize("append", [True, False])
@pytest.mark.parametrize("stored", [True, False])
def test_nothing_follows_the_last_chunk(append: bool, stored: bool) -> None:
    chunks = [stored_chunk("x", 1), stored_chunk("x", 2, append=True, last_chunk=True)] if stored else []
    draft = TaskDraft(make_record(chunks=chunks))
    if not stored:
        draft.add_artifact(chunk("only", "x"), False, True, UNSET)
    before = snapshot(draft)
    with pytest.raises(InvalidAgentResponseError) as refused:
        draft.add_artifact(chunk("more", "x"), append, False, UNSET)
    assert refused.value.message == "Artifact 'x' had its last chunk already."
    assert snapshot(draft) == before
    draft.add_artifact(chunk("another", "y"), append, False, UNSET)
    assert draft.events[-1].artifact_id == "y"


@pytest.mark.spec("4.1.7")
@pytest.mark.parametrize(
    ("artifact", "text"),
    [
        (Artifact(artifact_id="x", parts=[]), "Artifact 'x' has no parts."),
        (
            Artifact(artifact_id="", parts=[Part(text="x")]),
            "artifactId must have 1 to 255 characters and no U+0000.",
        ),
    ],
)
def test_an_artifact_needs_an_id_and_parts(artifact: Artifact, text: str) -> None:
    draft = TaskDraft(make_record())
    before = snapshot(draft)
    with pytest.raises(InvalidAgentResponseError) as refused:
        draft.add_artifact(artifact, False, False, UNSET)
    assert refused.value.message == text
    assert snapshot(draft) == before


@pytest.mark.parametrize("artifact_id", ["x" * 256, "nul \0"], ids=["too long", "U+0000"])
def test_an_artifact_id_that_the_database_cannot_hold_is_refused_at_once(artifact_id: str) -> None:
    """Not by the database later, where nobody could say what was wrong."""
    draft = TaskDraft(make_record())
    before = snapshot(draft)
    with pytest.raises(InvalidAgentResponseError):
        draft.add_artifact(chunk("x", artifact_id), False, False, UNSET)
    assert snapshot(draft) == before


@pytest.mark.parametrize("message_id", ["x" * 256, "nul \0"], ids=["too long", "U+0000"])
@pytest.mark.parametrize("speak", SPEAK)
def test_a_message_id_that_the_database_cannot_hold_is_refused_at_once(message_id: str, speak: Speak) -> None:
    draft = TaskDraft(make_record(message=say("before"), last_seq=0))
    before = snapshot(draft)
    with pytest.raises(InvalidAgentResponseError):
        speak(draft, say("hm", message_id))
    assert snapshot(draft) == before


@pytest.mark.parametrize("speak", SPEAK)
def test_a_message_needs_parts(speak: Speak) -> None:
    draft = TaskDraft(make_record(message=say("before"), last_seq=0))
    before = snapshot(draft)
    empty = Message(message_id="a-1", role=Role.AGENT, parts=[])
    with pytest.raises(InvalidAgentResponseError):
        speak(draft, empty)
    assert snapshot(draft) == before


@pytest.mark.spec("3.1.1")
def test_a_reply_is_the_whole_answer() -> None:
    draft = TaskDraft(make_record(last_seq=0))
    draft.reply(say("just this", "a-1"))
    (event,) = draft.events
    assert (event.seq, event.kind, event.state, draft.last_seq) == (1, EventKind.MESSAGE, None, 1)
    body = {"messageId": "a-1", "role": "ROLE_AGENT", "parts": [{"text": "just this"}], "contextId": "context-1"}
    assert json.loads(event.body) == body, "in its context, and of no task"
    assert draft.state is TaskState.UNSPECIFIED
    assert [(m.position, m.message_id, m.body) for m in draft.messages] == [(2, "a-1", event.body)]


@pytest.mark.parametrize(
    "earlier",
    [
        lambda d: d.move(TaskState.WORKING),
        lambda d: d.move(TaskState.SUBMITTED, say("taken")),
        lambda d: d.add_artifact(chunk("x"), False, False, UNSET),
        lambda d: d.reply(say("first")),
        lambda d: d.move(TaskState.COMPLETED),
    ],
    ids=["working", "submitted", "artifact", "reply", "completed"],
)
def test_a_reply_comes_alone(earlier: Any) -> None:
    draft = TaskDraft(make_record(last_seq=0))
    earlier(draft)
    before = snapshot(draft)
    with pytest.raises(InvalidAgentResponseError) as refused:
        draft.reply(say("second"))
    assert refused.value.message == "A Message is an answer only when it is the agent's only update."
    assert snapshot(draft) == before


@pytest.mark.parametrize("state", [TaskState.WORKING, *INTERRUPTED, *TERMINAL], ids=lambda s: s.name)
def test_a_follow_up_is_not_answered_with_a_reply(state: TaskState) -> None:
    draft = TaskDraft(make_record(state))
    with pytest.raises(InvalidAgentResponseError):
        draft.reply(say("x"))
    assert draft.events == []


def test_nothing_follows_a_reply() -> None:
    draft = TaskDraft(make_record(last_seq=0))
    draft.reply(say("x"))
    before = snapshot(draft)
    with pytest.raises(InvalidAgentResponseError):
        draft.move(TaskState.COMPLETED)
    with pytest.raises(InvalidAgentResponseError):
        draft.add_artifact(chunk("x"), False, False, UNSET)
    assert snapshot(draft) == before


def test_what_was_taken_counts_as_stored() -> None:
    draft = TaskDraft(make_record(TaskState.WORKING, say("one")))
    draft.move(TaskState.WORKING, say("two"))
    events, messages = draft.take()
    assert ([e.seq for e in events], len(messages)) == ([4], 1)
    assert draft.take() == ([], [])
    draft.move(TaskState.COMPLETED)
    events, messages = draft.take()
    assert ([e.seq for e in events], [m.position for m in messages]) == ([5], [3])


def test_a_repeated_run_replaces_what_the_lost_one_made_and_keeps_earlier_turns() -> None:
    """Turn 1 made `x` and `y`, attempts 2 and 3 of turn 2 appended to both, began `z` and closed it, and were lost."""
    made = [("x", 1), ("y", 1), ("x", 2), ("y", 3), ("z", 3)]
    chunks = [
        Event(
            seq, EventKind.ARTIFACT, f'{{"artifactId":"{name}","parts":[{{"text":"{seq}"}}]}}', AT, attempt,
            artifact_id=name, append=seq > 2, last_chunk=name == "z",
        )
        for seq, (name, attempt) in enumerate(made, 1)
    ]  # fmt: skip
    record = make_record(TaskState.WORKING, attempt=4, last_seq=5, chunks=chunks)
    draft = TaskDraft(record, repeated_from=2)
    for name, append in [("x", True), ("x", True), ("y", False), ("z", True), ("z", True)]:
        draft.add_artifact(chunk(f"{name}!", name), append, False, UNSET)
    said = [(e.artifact_id, e.append, [p["text"] for p in json.loads(e.body)["parts"]]) for e in draft.events]
    assert said == [
        ("x", False, ["1", "x!"]), ("x", True, ["x!"]), ("y", False, ["y!"]), ("z", False, ["z!"]), ("z", True, ["z!"]),
    ]  # fmt: skip
    whole = [json.loads(text) for text in assemble([*chunks, *draft.events])]
    assert {a["artifactId"]: [p["text"] for p in a["parts"]] for a in whole} == {
        "x": ["1", "x!", "x!"], "y": ["y!"], "z": ["z!", "z!"],
    }  # fmt: skip


def test_a_repeated_run_does_not_say_a_message_again() -> None:
    """Of `a-1` and `a-2` one is in the history, one is the status of the lost run still."""
    history = ['{"messageId":"m-1","role":"ROLE_USER"}', '{"messageId":"a-1","role":"ROLE_AGENT"}']
    record = make_record(TaskState.WORKING, say("2", "a-2"), attempt=2, history=history, message_count=2)
    draft = TaskDraft(record, repeated_from=1)
    for name in ("a-1", "a-2", "a-3", "a-4"):
        draft.move(TaskState.WORKING, say(name, name))
    assert [(m.position, m.message_id) for m in draft.messages] == [(3, "a-2"), (4, "a-3")]
