"""What the fuzzer left in the database, against what it was told."""

from __future__ import annotations

from protocol.states import TaskState
from tests.support.deployment import Deployment, wait_until

_UNFINISHED = f"SELECT count(*) FROM tasks_app_task WHERE state <> {TaskState.COMPLETED.number}"
_FRAGMENTS = """SELECT
    (SELECT count(*) FROM tasks_app_task t WHERE (SELECT count(*) FROM tasks_app_message WHERE task_id = t.id) <> 1),
    (SELECT count(*) FROM tasks_app_message m WHERE NOT EXISTS (SELECT FROM tasks_app_task t WHERE t.id = m.task_id)),
    (SELECT count(*) FROM tasks_app_event e WHERE NOT EXISTS (SELECT FROM tasks_app_task t WHERE t.id = e.task_id)),
    (SELECT count(*) FROM tasks_app_receipt r WHERE NOT EXISTS (SELECT FROM tasks_app_task t WHERE t.id = r.task_id)),
    (SELECT count(*) FROM tasks_app_pushconfig)"""


class Ledger:
    """The ids of all tasks that replies told of since it was opened; what is stored must be exactly these."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._known = self._stored()

    def add(self, ids: set[str]) -> None:
        """Note tasks of a reply."""
        self._known |= ids

    def accept_unseen(self) -> None:
        """Take what is stored for what was told: after a request that no reply speaks of."""
        self._known |= self._stored()

    def settle(self) -> None:
        """Raises AssertionError for a task that no reply told of, and for a part of one."""
        assert self._stored() == self._known
        wait_until(lambda: self._deployment.query(_UNFINISHED)[0][0] == 0, "the end of all tasks")
        assert self._deployment.query(_FRAGMENTS) == [(0, 0, 0, 0, 0)]

    def _stored(self) -> set[str]:
        return {str(id) for (id,) in self._deployment.query("SELECT id FROM tasks_app_task")}
