"""What has been reported of a task, so that a Task event can be told from what is new in it."""

from __future__ import annotations

from collections.abc import Iterator

from a2a.types import a2a_pb2 as pb
from google.protobuf.struct_pb2 import Struct
from msgspec import UNSET

from agents.runtimes.base import Run
from agents.runtimes.python.to_pb import write_artifact, write_struct
from protocol.states import TaskState


class Known:
    """The task as the caller knows it: what it was when the run began and what was reported since.

    Artifacts are known by a hash of each part, so that a long stream of chunks is not kept twice.
    """

    def __init__(self, run: Run) -> None:
        task = run.task
        self._state = task.status.state if task else TaskState.SUBMITTED
        self._metadata = (write_struct(task.metadata) if task else None) or Struct()
        self._messages = {run.message.message_id}
        self._earlier = {artifact.artifact_id: artifact for artifact in task.artifacts} if task else {}
        self._artifacts: dict[str, list[int]] = {}
        if task:
            self._messages.update(message.message_id for message in task.history)
            if task.status.message is not UNSET:
                self._messages.add(task.status.message.message_id)

    def add_status(self, state: TaskState, message_id: str, metadata: Struct | None) -> None:
        """Note a status that is reported; its metadata is merged into the task's, as the SDK does."""
        self._state = state
        self._messages.add(message_id)
        if metadata is not None:
            self._metadata.MergeFrom(metadata)

    def add_artifact(self, artifact: pb.Artifact, *, append: bool) -> None:
        """Note an artifact or chunk that is reported."""
        known = self._prints(artifact.artifact_id) if append else None
        if known is None:
            self._artifacts[artifact.artifact_id] = fingerprint(artifact)
            return
        known.extend(print_of(part) for part in artifact.parts)
        if artifact.HasField("metadata"):
            known[0] = 0  # merged by whoever stores it: no longer known

    def differs(self, artifact: pb.Artifact) -> bool:
        """Whether an artifact is new or not as it was reported."""
        return self._prints(artifact.artifact_id) != fingerprint(artifact)

    def new_messages(self, task: pb.Task) -> Iterator[pb.Message]:
        """The agent's messages in the history of a Task event that were not reported as its status."""
        for message in task.history:
            own = message.role == pb.Role.ROLE_AGENT and message.message_id != task.status.message.message_id
            if own and message.message_id not in self._messages:
                yield message

    def new_state(self, task: pb.Task) -> TaskState | None:
        """The state to report for a Task event, None when its status and metadata say nothing new.

        A task that is said to be submitted, or in no state, is as far as it was: executors start with such a Task
        whether the task is new or not.
        """
        stated = TaskState.from_number(task.status.state) if task.status.state in STATES else TaskState.UNSPECIFIED
        state = self._state if stated in (TaskState.UNSPECIFIED, TaskState.SUBMITTED) else stated
        if state is not self._state:
            return state
        says_more = self.new_status(task).HasField("message") or self.new_metadata(task)
        return state if says_more and not state.terminal else None

    def new_status(self, task: pb.Task) -> pb.TaskStatus:
        """The status of a Task event, without a message that was reported before."""
        status = pb.TaskStatus()
        if task.status.HasField("message") and task.status.message.message_id not in self._messages:
            status.message.CopyFrom(task.status.message)
        return status

    def new_metadata(self, task: pb.Task) -> bool:
        """Whether a Task event has metadata other than what is known."""
        return task.HasField("metadata") and task.metadata != self._metadata

    def _prints(self, artifact_id: str) -> list[int] | None:
        if artifact_id not in self._artifacts and artifact_id in self._earlier:
            self._artifacts[artifact_id] = fingerprint(write_artifact(self._earlier[artifact_id]))
        return self._artifacts.get(artifact_id)


STATES = frozenset(state.number for state in TaskState)


def fingerprint(artifact: pb.Artifact) -> list[int]:
    """A hash of everything but the parts, then one of each part. Good inside one process."""
    metadata = artifact.metadata.SerializeToString(deterministic=True)
    head = hash((artifact.name, artifact.description, metadata, *artifact.extensions))
    return [head, *(print_of(part) for part in artifact.parts)]


def print_of(part: pb.Part) -> int:
    """A hash of one part."""
    return hash(part.SerializeToString(deterministic=True))
