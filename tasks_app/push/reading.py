"""Finding what is to be sent. Configs of one task mostly wait for the same event, which is then read once."""

from __future__ import annotations

import asyncio

from protocol.dialects import task_rest
from protocol.dialects.v03 import V0_3
from protocol.model import Task
from protocol.states import TaskState
from tasks_app.push.notifications import Notification, next_notifications
from tasks_app.push.queue import Claim
from tasks_app.store import Store

Key = tuple[str, str, int]


class Notifications:
    """The reader of one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading: dict[Key, asyncio.Task[list[Notification]]] = {}

    async def after(self, claim: Claim, seq: int) -> list[Notification]:
        """The first ones beyond `seq`, in order; empty if there is none."""
        key = (claim.task_id, claim.version, seq)
        reading = self._reading.get(key)
        if reading is None:
            reading = asyncio.create_task(next_notifications(self._store, claim, seq))
            self._reading[key] = reading
            reading.add_done_callback(lambda _: self._reading.pop(key))
        return await asyncio.shield(reading)  # others wait for it, too

    async def again(self, claim: Claim, seq: int) -> Notification | None:
        """That of one event, or for 0 a test: the task as it is now (§4.3.3 has room for it). None if it is gone."""
        if seq == 0:
            return await self._test(claim)
        found = await self.after(claim, seq - 1)
        return found[0] if found and found[0].seq == seq else None

    async def _test(self, claim: Claim) -> Notification | None:
        record = await self._store.load(claim.task_id)
        if record is None:
            return None
        if record.state is TaskState.UNSPECIFIED:  # There is no task, only the message that answered.
            return next(iter(await self.after(claim, 0)), None)
        if claim.version == V0_3.version:
            return Notification(0, "application/json", V0_3.write(Task, record.render()))
        if claim.version == task_rest.VERSION:
            return Notification(0, "application/json", task_rest.write_notification(record.render(0)))
        return Notification(0, "application/a2a+json", b'{"task":%b}' % record.render())
