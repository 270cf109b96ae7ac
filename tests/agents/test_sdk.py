"""The same executors in the server of the a2a-sdk and behind our adapter end in the same task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import a2a_pb2 as pb

from agents.runtimes.base import Caller
from agents.runtimes.python.adapter import PythonRuntime
from agents.runtimes.python.to_pb import write_message
from protocol.model import Artifact, Task, TaskStatus
from protocol.states import TaskState
from tests.agents.executors import Greeter
from tests.agents.support import CONTEXT, TASK, Recorder, make_message, make_run, texts

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = (
    "Agents talk to other agents. Agents need a protocol when they talk. The weather is fine. "
    "A protocol lets agents talk without knowing each other!"
)

Outcome = tuple[str, list[tuple[str, str, list[str]]], list[str]]
"""State, artifacts as id, name and texts, and what the agent said."""


async def in_the_sdk(executor: AgentExecutor, *turns: str) -> Outcome:
    """Send messages to the SDK's own server; each after the first belongs to the task of the first."""
    card = pb.AgentCard(
        name="n",
        description="d",
        version="1",
        capabilities=pb.AgentCapabilities(),
        supported_interfaces=[
            pb.AgentInterface(url="http://e.test", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[pb.AgentSkill(id="s", name="n", description="d", tags=["t"])],
    )
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    task = pb.Task()
    for number, text in enumerate(turns):
        message = write_message(make_message(text, message_id=f"m-{number}"))
        message.task_id, message.context_id = task.id, task.context_id
        answer = await handler.on_message_send(pb.SendMessageRequest(message=message), ServerCallContext())
        assert isinstance(answer, pb.Task)
        task = answer
    await handler.aclose()
    return (
        pb.TaskState.Name(task.status.state),
        [(a.artifact_id, a.name, [part.text for part in a.parts]) for a in task.artifacts],
        [part.text for part in task.status.message.parts],
    )


async def in_the_host(executor: AgentExecutor, *turns: str) -> Outcome:
    """Run the turns behind the adapter, with a task put together from what was reported, as the host does."""
    task: Task | None = None
    updates = Recorder()
    for number, text in enumerate(turns):
        updates = Recorder()
        message = make_message(text, message_id=f"m-{number}")
        await PythonRuntime(executor).execute(make_run(message=message, task=task), updates)
        states = [call[0] for call in updates.calls if isinstance(call[0], TaskState)]
        task = Task(
            id=TASK,
            context_id=CONTEXT,
            status=TaskStatus(state=states[-1]),
            artifacts=merge(updates),
            history=[message],
        )
    assert task is not None
    said = texts(updates.messages[-1].parts) if len(updates.calls[-1]) == 2 else []
    return task.status.state.value, [(a.artifact_id, a.name, texts(a.parts)) for a in task.artifacts], said


def merge(updates: Recorder) -> list[Artifact]:
    """Artifacts from their chunks (§4.2.2)."""
    merged: dict[str, Artifact] = {}
    chunks = [call for call in updates.calls if len(call) == 4]
    for chunk, (artifact_id, _, append, _) in zip(updates.artifacts, chunks, strict=True):
        if append:
            merged[artifact_id].parts.extend(chunk.parts)
        else:
            merged[artifact_id] = chunk
    return list(merged.values())


@pytest.fixture
def summarizer(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AgentExecutor]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from summarizer import Summarizer  # type: ignore[import-not-found]

    made: Callable[[], AgentExecutor] = Summarizer
    return made


async def test_greeter() -> None:
    outcome = await in_the_host(Greeter(), "hi", "Alice")
    assert outcome == ("TASK_STATE_COMPLETED", [("greeting", "greeting", ["Hello, ", "Alice"])], [])
    assert await in_the_sdk(Greeter(), "hi", "Alice") == outcome


async def test_summarizer_in_one_turn(summarizer: Callable[[], AgentExecutor]) -> None:
    outcome = await in_the_host(summarizer(), TEXT)
    assert outcome == (
        "TASK_STATE_COMPLETED",
        [
            (
                "summary",
                "Summary",
                [
                    "- Agents talk to other agents.\n",
                    "- Agents need a protocol when they talk.\n",
                    "- A protocol lets agents talk without knowing each other!\n",
                ],
            )
        ],
        [],
    )
    assert await in_the_sdk(summarizer(), TEXT) == outcome


async def test_summarizer_asks_for_more(summarizer: Callable[[], AgentExecutor]) -> None:
    asked = ("TASK_STATE_INPUT_REQUIRED", [], ["Send me the text to summarize, 3 sentences or more."])
    assert await in_the_host(summarizer(), "Hello.") == asked
    assert await in_the_sdk(summarizer(), "Hello.") == asked
    text = "智能体互相协作。智能体需要协议。天气很好。协议让智能体协作。"
    outcome = await in_the_host(summarizer(), "Hello.", text)
    assert outcome[0] == "TASK_STATE_COMPLETED"
    assert len(outcome[1][0][2]) == 3
    assert await in_the_sdk(summarizer(), "Hello.", text) == outcome


async def test_summarizer_is_cancelled(summarizer: Callable[[], AgentExecutor]) -> None:
    updates = Recorder()
    await PythonRuntime(summarizer()).cancel(make_run("hi", caller=Caller("anonymous")), updates)
    assert updates.calls == [(TaskState.CANCELED,)]
