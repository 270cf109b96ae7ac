"""One call of a caller to an agent, as every operation gets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agents.keys import ANONYMOUS
from agents.models import Agent
from agents.registry import AgentEntry
from agents.runtimes.base import Answered, Caller
from protocol.errors import ExtensionSupportRequiredError, TaskNotFoundError
from tasks_app.execution.host import Host, may_see
from tasks_app.journal import AuditLine
from tasks_app.tables.record import TaskRecord
from tasks_app.tables.usage import Usage


@dataclass(slots=True)
class Call:
    """`dialect` names binding and version, such as `JSONRPC/1.0`. `resume_after` is the seq of Last-Event-ID.

    `requested` are the extensions that the request names, `requested_v03` those that it names as 0.3 does.
    `find_base_url` tells where the caller reached the host over HTTP, such as `https://api.example.com`.
    `parent_id` is the task whose agent calls, `deadline_at` the time by which that task has to have ended. `answered`
    is set for a person at the host who answers a task in the caller's place, as they saw it under `answers_attempt`;
    `audit` is what the audit log says of that.
    """

    host: Host
    entry: AgentEntry
    caller: Caller
    dialect: str
    requested: frozenset[str] = frozenset()
    requested_v03: frozenset[str] = frozenset()
    resume_after: int | None = None
    find_base_url: Callable[[], str] = str
    parent_id: str | None = None
    deadline_at: datetime | None = None
    answered: Answered | None = None
    answers_attempt: int | None = None
    audit: AuditLine | None = None

    @property
    def binding(self) -> str:
        """The binding of `dialect`."""
        return self.dialect.partition("/")[0]

    @property
    def usage(self) -> Usage:
        """The counters of this process."""
        return self.host.usage

    @property
    def usage_key(self) -> tuple[int, str, str]:
        """(agent id, dialect, caller): what tells this call's counters apart."""
        return self.entry.id, self.dialect, self.caller.owner

    @property
    def version(self) -> str:
        """The version of `dialect`."""
        return self.dialect.partition("/")[2]

    @property
    def extensions(self) -> frozenset[str]:
        """The extensions that are activated: those of the agent that the request names (§4.6.1)."""
        declared = self.entry.extension_uris
        if not declared:
            return declared
        requested = self.requested | self.requested_v03 if self.version == "0.3" else self.requested
        return declared & requested

    @property
    def runs_here(self) -> bool:
        """Whether a new run of the agent belongs in this process. Delegated to an agent of the web process, it stays in
        the process of the agent that delegates: no worker can ring for a web process."""
        execution = self.entry.execution
        return execution == self.host.role or (self.parent_id is not None and execution == Agent.Execution.WEB)

    def check_extensions(self) -> None:
        """Raises ExtensionSupportRequiredError unless the request names all that the agent requires (§3.3.4)."""
        required = self.entry.required_extensions
        if required and (missing := [uri for uri in required if uri not in self.extensions]):
            raise ExtensionSupportRequiredError(missing)

    @property
    def is_stranger(self) -> bool:
        """Whether the caller is anonymous and shares no history with other anonymous ones."""
        return self.caller.owner == ANONYMOUS and not self.entry.shared_history

    async def load_task(self, task_id: str, until: int | None = None) -> TaskRecord:
        """A task of this caller and agent, its artifacts as they were at event `until` if that is given.

        Raises TaskNotFoundError, the same for absent and for somebody else's.
        """
        store = self.host.store
        return self._seen(task_id, await (store.load(task_id) if until is None else store.load_until(task_id, until)))

    async def find_task(self, task_id: str) -> TaskRecord:
        """The same without its history and artifacts."""
        return self._seen(task_id, await self.host.store.load_row(task_id))

    def _seen(self, task_id: str, record: TaskRecord | None) -> TaskRecord:
        if record is None or not may_see(record, self.entry.id, self.caller.owner):
            raise TaskNotFoundError(task_id)
        return record

    async def load_accepted(self, task_id: str) -> TaskRecord:
        """A task that this call's message was accepted for, also when it was answered with a Message."""
        record = await self.host.store.load(task_id)
        if record is None:
            raise TaskNotFoundError(task_id)
        return record
