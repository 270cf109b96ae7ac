"""The event queue that an executor writes to: each event becomes calls of `Updates`."""

from __future__ import annotations

from a2a.server.events import EventQueue
from a2a.types import a2a_pb2 as pb
from msgspec import UNSET

from agents.runtimes.base import Run, Updates
from agents.runtimes.python.from_pb import read_artifact, read_message, read_state, read_struct
from agents.runtimes.python.known import Known
from protocol.errors import InvalidAgentResponseError
from protocol.states import TaskState

Event = pb.Message | pb.Task | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent


class UpdatesQueue(EventQueue):
    """Reports the events of one call of `execute` or `cancel`.

    An executor answers with one Message or works on a task, never both (§3.1.1). The host made the task before the
    run, so a Task event makes none: the first one is as a rule the task as submitted, which says nothing new; what a
    Task event does say that was not reported is reported as if it had come in single events.
    """

    def __init__(self, run: Run, updates: Updates, *, replied: bool | None = None) -> None:
        self._run = run
        self._updates = updates
        self._replied = replied
        self._known = Known(run)

    async def enqueue_event(self, event: Event) -> None:
        """Report an event. Raises InvalidAgentResponseError for one that is not this run's or not allowed now."""
        if isinstance(event, pb.Message):
            await self._reply(event)
            return
        if self._replied:
            raise InvalidAgentResponseError(f"The agent sent a {type(event).__name__} after its answer.")
        self._replied = False
        if isinstance(event, pb.TaskArtifactUpdateEvent):
            await self._artifact(event)
        elif isinstance(event, pb.TaskStatusUpdateEvent):
            await self._status(event)
        elif isinstance(event, pb.Task):
            await self._task(event)
        else:
            raise InvalidAgentResponseError(f"The agent sent a {type(event).__name__}, which is no event.")

    async def _reply(self, message: pb.Message) -> None:
        if self._replied is not None:
            raise InvalidAgentResponseError("The agent sent a message that is not its only event.")
        self._check_ids(message.task_id, message.context_id)
        self._replied = True
        await self._updates.reply(read_message(message, "", self._run.context_id))

    async def _status(self, event: pb.TaskStatusUpdateEvent) -> None:
        self._check_ids(event.task_id, event.context_id)
        await self._report_status(
            read_state(event.status.state), event.status, event if event.HasField("metadata") else None
        )

    async def _artifact(self, event: pb.TaskArtifactUpdateEvent) -> None:
        self._check_ids(event.task_id, event.context_id)
        self._known.add_artifact(event.artifact, append=event.append)
        await self._updates.artifact(
            read_artifact(event.artifact),
            append=event.append,
            last_chunk=event.last_chunk,
            metadata=read_struct(event.metadata) if event.HasField("metadata") else UNSET,
        )

    async def _task(self, task: pb.Task) -> None:
        """Report what is new in a task: what the agent said, artifacts, and last the status, which may end it."""
        self._check_ids(task.id, task.context_id)
        for message in self._known.new_messages(task):
            await self._report_status(TaskState.WORKING, pb.TaskStatus(message=message), None)
        for artifact in task.artifacts:
            if self._known.differs(artifact):
                self._known.add_artifact(artifact, append=False)
                await self._updates.artifact(read_artifact(artifact))
        state = self._known.new_state(task)
        if state is not None:
            metadata = task if self._known.new_metadata(task) else None
            await self._report_status(state, self._known.new_status(task), metadata)

    async def _report_status(
        self, state: TaskState, status: pb.TaskStatus, holder: pb.TaskStatusUpdateEvent | pb.Task | None
    ) -> None:
        """Report a status with the metadata of `holder`, if any."""
        run = self._run
        message = read_message(status.message, run.task_id, run.context_id) if status.HasField("message") else None
        self._known.add_status(state, message.message_id if message else "", holder.metadata if holder else None)
        await self._updates.status(state, message, UNSET if holder is None else read_struct(holder.metadata))

    def _check_ids(self, task_id: str, context_id: str) -> None:
        """An event may leave an id out; a wrong one belongs to another task."""
        if task_id and task_id != self._run.task_id:
            raise InvalidAgentResponseError("The agent sent an event of another task.")
        if context_id and context_id != self._run.context_id:
            raise InvalidAgentResponseError("The agent sent an event of another context.")
