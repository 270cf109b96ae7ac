"""One call of a caller to an agent, as every operation gets it."""

from __future__ import annotations

from dataclasses import dataclass

from agents.keys import ANONYMOUS
from agents.registry import AgentEntry
from agents.runtimes.base import Caller
from protocol.errors import TaskNotFoundError
from tasks_app.host import Host, may_see
from tasks_app.record import TaskRecord


@dataclass(slots=True)
class Call:
    """`dialect` names binding and version, such as `JSONRPC/1.0`. `resume_after` is the seq of Last-Event-ID."""

    host: Host
    entry: AgentEntry
    caller: Caller
    dialect: str
    extensions: frozenset[str] = frozenset()
    resume_after: int | None = None

    @property
    def binding(self) -> str:
        """The binding of `dialect`."""
        return self.dialect.partition("/")[0]

    @property
    def is_stranger(self) -> bool:
        """Whether the caller is anonymous and shares no history with other anonymous ones."""
        return self.caller.owner == ANONYMOUS and not self.entry.shared_history

    async def load_task(self, task_id: str) -> TaskRecord:
        """A task of this caller and agent. Raises TaskNotFoundError, the same for absent and for somebody else's."""
        record = await self.host.store.load(task_id)
        if record is None or not may_see(record, self.entry.id, self.caller.owner):
            raise TaskNotFoundError(task_id)
        return record

    async def load_accepted(self, task_id: str) -> TaskRecord:
        """A task that this call's message was accepted for, also when it was answered with a Message."""
        record = await self.host.store.load(task_id)
        if record is None:
            raise TaskNotFoundError(task_id)
        return record
