"""`relay AGENT TEXT`: has another agent do the work."""

from __future__ import annotations

from agents.runtimes.base import Run, Updates
from agents.runtimes.errors import DelegationError
from agents.runtimes.simulators.common import Simulator, say
from protocol.ids import new_id
from protocol.model import Message, Part, Role, Task
from protocol.requests import SendMessageRequest
from protocol.states import TaskState

DEFAULT_AGENT = "echo"


class Relay(Simulator):
    """Delegates the text to the agent of the host that it names first, and ends as that task ends, with its artifacts.

    A task that cannot be delegated, or that ends without a result or with a question, FAILS this one.
    """

    repeatable = False
    summary = "Has another agent of the host do the work: `relay AGENT TEXT`."
    example = "relay echo hello"

    async def execute(self, run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        agent, text = plan(run.text)
        message = Message(message_id=new_id(), role=Role.USER, parts=[Part(text=text)])
        try:
            task = await run.delegations.send(run, agent, SendMessageRequest(message=message))
        except DelegationError as error:
            await updates.status(TaskState.FAILED, say(run, str(error)))
            return
        for artifact in task.artifacts:
            await updates.artifact(artifact, last_chunk=True)
        if task.status.state is TaskState.COMPLETED:
            await updates.status(TaskState.COMPLETED)
        else:
            await updates.status(TaskState.FAILED, say(run, outcome(agent, task)))


def plan(text: str) -> tuple[str, str]:
    """Agent and text of a command such as `relay echo hello` or `echo hello`."""
    words = text.split(maxsplit=1)
    if words and words[0].lower() == "relay":
        words = words[1].split(maxsplit=1) if len(words) > 1 else []
    return (words[0] if words else DEFAULT_AGENT), (words[1] if len(words) > 1 else "hello")


def outcome(agent: str, task: Task) -> str:
    """What became of a task that is not COMPLETED."""
    said = task.status.message
    texts = [part.text for part in said.parts if isinstance(part.text, str)] if isinstance(said, Message) else []
    return ": ".join([f"{agent} is {task.status.state.removeprefix('TASK_STATE_')}", *texts])
