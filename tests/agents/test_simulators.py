"""What each simulator does, exactly."""

from __future__ import annotations

import asyncio
import time

import pytest
from msgspec import Raw

from agents.runtimes.base import Answer, Answered, Run
from agents.runtimes.errors import DelegationError
from agents.runtimes.simulators import SIMULATORS
from agents.runtimes.simulators.common import numbers
from agents.runtimes.simulators.steps import plan
from protocol.model import Artifact, Part, Role, Task, TaskStatus
from protocol.requests import SendMessageRequest
from protocol.states import TaskState
from tests.agents.support import CONTEXT, TASK, Recorder, make_message, make_run, texts

WORKING, COMPLETED = (TaskState.WORKING,), (TaskState.COMPLETED,)


async def report(name: str, *parts: Part | str, task: Task | None = None) -> Recorder:
    updates = Recorder()
    await SIMULATORS[name]().execute(make_run(*parts, task=task), updates)
    return updates


def interrupted(state: TaskState) -> Task:
    return Task(id=TASK, context_id=CONTEXT, status=TaskStatus(state=state))


async def test_echo_returns_the_text() -> None:
    updates = await report("echo", "žluť 你好 😀", "and more")
    assert updates.calls == [WORKING, (f"{TASK}.echo", ["žluť 你好 😀\nand more"], False, True), COMPLETED]
    assert updates.artifacts[0].name == "echo"


def test_echo_never_gives_up_the_event_loop() -> None:
    coroutine = SIMULATORS["echo"]().execute(make_run("x"), Recorder())
    with pytest.raises(StopIteration):
        coroutine.send(None)  # type: ignore[attr-defined]


async def test_data_returns_the_parts_unchanged() -> None:
    parts = [Part(data=Raw(b'{"n":1,"f":1.0}')), Part(raw="+/8=", media_type="image/png"), Part(text="x")]
    updates = await report("data", *parts)
    assert updates.artifacts[0].parts == parts
    assert updates.calls == [WORKING, (f"{TASK}.data", ["x"], False, True), COMPLETED]


@pytest.mark.spec("4.2.2")
async def test_steps_streams_one_artifact() -> None:
    name = f"{TASK}.steps"
    assert (await report("steps", "steps 3 1")).calls == [
        WORKING,
        (name, ["chunk 1\n"], False, False),
        (name, ["chunk 2\n"], True, False),
        (name, ["chunk 3\n"], True, True),
        COMPLETED,
    ]


@pytest.mark.parametrize(("text", "chunks"), [("1 0", 1), ("steps 0", 0), ("STEPS 2 0", 2), (" steps  2  0.5 ", 2)])
async def test_steps_counts(text: str, chunks: int) -> None:
    assert len((await report("steps", text)).artifacts) == chunks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps 3 50", (3, 50)),
        ("3", (3, 200)),
        ("hello", (3, 200)),
        ("", (3, 200)),
        ("steps", (3, 200)),
        ("steps three", (3, 200)),
        ("steps -1", (3, 200)),
        ("steps nan", (3, 200)),
        ("steps 1e3", (3, 200)),
        ("steps " + "9" * 5000, (3, 200)),
    ],
)
def test_steps_plan(text: str, expected: tuple[int, float]) -> None:
    assert plan(text) == expected


@pytest.mark.parametrize("text", ["steps 10001", "steps 1 60001"])
async def test_steps_rejects_what_would_never_end(text: str) -> None:
    assert (await report("steps", text)).calls == [(TaskState.REJECTED, "At most 10000 steps, 60000 ms apart.")]


async def test_steps_waits_before_each_chunk() -> None:
    start = time.monotonic()
    await report("steps", "steps 3 30")
    assert time.monotonic() - start >= 0.09


async def test_hold_ends_with_its_time() -> None:
    assert (await report("hold", "hold 0.01")).calls == [WORKING, COMPLETED]
    assert (await report("hold", "0")).calls == [WORKING, COMPLETED]


@pytest.mark.parametrize("text", ["hold", "", "hold on"])
async def test_hold_works_until_it_is_cancelled(text: str) -> None:
    updates = Recorder()
    hold = SIMULATORS["hold"]()
    run = make_run(text)
    working = asyncio.create_task(hold.execute(run, updates))
    done, _ = await asyncio.wait({working}, timeout=0.05)
    assert not done
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    await hold.cancel(run, updates)
    assert updates.calls == [WORKING, (TaskState.CANCELED,)]


async def test_ask_asks_then_completes() -> None:
    first = await report("ask", "book a table")
    assert first.calls == [WORKING, (TaskState.INPUT_REQUIRED, "What should I know before I go on?")]
    question = first.messages[0]
    assert (question.role, question.task_id, question.context_id) == (Role.AGENT, TASK, CONTEXT)
    second = await report("ask", "for two", task=interrupted(TaskState.INPUT_REQUIRED))
    assert second.calls == [WORKING, (f"{TASK}.answer", ["for two"], False, True), COMPLETED]


@pytest.mark.spec("7.6")
async def test_auth_asks_then_completes() -> None:
    first = await report("auth", "read my calendar")
    assert first.calls == [WORKING, (TaskState.AUTH_REQUIRED, "Authorize me, then send a message to go on.")]
    second = await report("auth", "ok", task=interrupted(TaskState.AUTH_REQUIRED))
    assert second.calls == [WORKING, (TaskState.COMPLETED, "Authorized.")]


@pytest.mark.spec("3.1.1")
async def test_direct_answers_with_a_message() -> None:
    updates = await report("direct", "hello")
    assert updates.calls == [("reply", "hello")]
    message = updates.messages[0]
    assert (message.role, message.context_id, message.task_id) == (Role.AGENT, CONTEXT, "")


@pytest.mark.parametrize(
    ("text", "chunks"),
    [("boom", 0), ("", 0), ("hello", 0), ("boom 2", 2), ("boom after 2", 2), ("2", 2), ("boom 0", 0)],
)
async def test_boom_raises(text: str, chunks: int) -> None:
    updates = Recorder()
    with pytest.raises(RuntimeError, match="boom, as asked"):
        await SIMULATORS["boom"]().execute(make_run(text), updates)
    expected = [(f"{TASK}.boom", [f"chunk {n + 1}\n"], n > 0, False) for n in range(chunks)]
    assert updates.calls == ([WORKING, *expected] if chunks else [])


async def test_reject_rejects() -> None:
    assert (await report("reject", "do it")).calls == [(TaskState.REJECTED, "I take no work.")]


@pytest.mark.parametrize(
    ("text", "state"), [("wait", TaskState.INPUT_REQUIRED), ("Wait AUTH please", TaskState.AUTH_REQUIRED)]
)
async def test_wait_waits_and_gives_the_answer_back(text: str, state: TaskState) -> None:
    updates = Recorder(answers=[Answer(make_message("for two"), Answered("ada", approved=True))])
    await SIMULATORS["wait"]().execute(make_run(text), updates)
    assert [call[0] for call in updates.calls] == [
        *(TaskState.WORKING, state, "answer", f"{TASK}.answer", TaskState.COMPLETED),
    ]
    assert updates.calls[3] == (f"{TASK}.answer", ["for two"], False, True)


async def test_wait_is_rejected_by_a_refusal() -> None:
    updates = Recorder(answers=[Answer(make_message("no"), Answered("ada", approved=False))])
    await SIMULATORS["wait"]().execute(make_run("wait auth"), updates)
    assert updates.calls[-1] == (TaskState.REJECTED, "ada refused.")


async def test_wait_takes_the_answer_of_a_run_that_is_gone() -> None:
    updates = await report("wait", "for two", task=interrupted(TaskState.INPUT_REQUIRED))
    assert updates.calls == [WORKING, (f"{TASK}.answer", ["for two"], False, True), COMPLETED]


@pytest.mark.parametrize(
    ("text", "agent", "sent"),
    [
        ("relay steps 2 10", "steps", "2 10"),
        ("Relay echo", "echo", "hello"),
        ("relay", "echo", "hello"),
        ("", "echo", "hello"),
        ("relay relay echo a b", "relay", "echo a b"),
        ("data x", "data", "x"),
    ],
)
async def test_relay_delegates(text: str, agent: str, sent: str) -> None:
    made = Made(Task(id="child", status=TaskStatus(state=TaskState.COMPLETED), artifacts=[text_artifact("x", "y")]))
    updates = Recorder()
    await SIMULATORS["relay"]().execute(make_run(text, delegations=made), updates)
    assert made.sent == [(agent, [sent])]
    assert updates.calls == [WORKING, ("x", ["y"], False, True), COMPLETED]


async def test_relay_fails_with_what_it_delegates() -> None:
    status = TaskStatus(state=TaskState.INPUT_REQUIRED, message=make_message("Which one?"))
    updates = Recorder()
    await SIMULATORS["relay"]().execute(
        make_run("relay ask", delegations=Made(Task(id="child", status=status))), updates
    )
    assert updates.calls == [WORKING, (TaskState.FAILED, "ask is INPUT_REQUIRED: Which one?")]
    updates = Recorder()
    error = DelegationError("Nothing was delegated to 'x'.", "AGENT_NOT_FOUND")
    await SIMULATORS["relay"]().execute(make_run("relay x", delegations=Made(error)), updates)
    assert updates.calls == [WORKING, (TaskState.FAILED, "Nothing was delegated to 'x'.")]


class Made:
    """Delegations that have their outcome already."""

    def __init__(self, outcome: Task | DelegationError) -> None:
        self.sent: list[tuple[str, list[str]]] = []
        self._outcome = outcome

    async def send(self, run: Run, agent: str, request: SendMessageRequest) -> Task:
        self.sent.append((agent, texts(request.message.parts)))
        if isinstance(self._outcome, DelegationError):
            raise self._outcome
        return self._outcome


def text_artifact(artifact_id: str, text: str) -> Artifact:
    return Artifact(artifact_id=artifact_id, parts=[Part(text=text)])


def test_numbers() -> None:
    assert numbers("", "a") == []
    assert numbers("a after 2 0.5", "a", "after") == [2, 0.5]
    assert numbers("after 2", "a", "after") == [2]
    assert numbers("a b", "a") is None
    assert numbers("٣", "a") is None
    assert numbers("x " * 100_000) is None
