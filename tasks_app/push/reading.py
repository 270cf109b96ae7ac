"""Finding what is to be sent. Many configs wait at the same moment, often for the same event: whatever is asked for
while a statement is under way is read in the next one, and the same page once.
"""

from __future__ import annotations

import asyncio

from protocol.dialects import task_rest
from protocol.dialects.v03 import V0_3
from protocol.model import Task
from protocol.states import TaskState
from tasks_app.push.notifications import Notification, notification, notifications, whole
from tasks_app.push.queue import Claim
from tasks_app.tables.record import Event
from tasks_app.tables.store import Page, Store

_PAGE = Page(50, 256 * 1024)
_AT_ONCE = 64  # tasks in one statement
_WHOLE_AT_ONCE = 3  # of those that are told with the task as it was: each one is some statements more

Place = tuple[str, int]
"""A task, and the seq after which its events are wanted."""


class Notifications:
    """The reader of one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wanted: dict[Place, asyncio.Future[list[Event]]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._whole = asyncio.Semaphore(_WHOLE_AT_ONCE)

    async def after(self, claim: Claim, seq: int) -> list[Notification]:
        """The first ones beyond `seq`, in order; empty if there is none. Raises UnavailableError."""
        events = await self._events((claim.task_id, seq))
        if claim.version not in (V0_3.version, task_rest.VERSION):
            return await notifications(self._store, claim, events)
        async with self._whole:
            return await notifications(self._store, claim, events)

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
        history_length = 0 if claim.version == task_rest.VERSION else None
        return notification(claim.version, 0, Task, record.render(history_length))

    async def whole(self, claim: Claim, found: Notification) -> Notification:
        """One that is to be sent now, with its files."""
        return await whole(self._store, claim, found)

    async def _events(self, place: Place) -> list[Event]:
        found = self._wanted.get(place)
        if found is None:
            found = self._wanted[place] = asyncio.get_running_loop().create_future()
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read(), name="events for webhooks")
        return await asyncio.shield(found)  # others wait for it, too

    async def _read(self) -> None:
        while self._wanted:
            batch = _one_of_each_task(self._wanted)
            asked = {place: self._wanted.pop(place) for place in batch}
            try:
                found = await self._store.events_after(batch, _PAGE)
            except Exception as error:
                for future in asked.values():
                    future.set_exception(error)
                continue
            for place, future in asked.items():
                future.set_result(found.get(place[0], []))


def _one_of_each_task(places: dict[Place, asyncio.Future[list[Event]]]) -> list[Place]:
    found: dict[str, Place] = {}
    for place in places:
        found.setdefault(place[0], place)
        if len(found) == _AT_ONCE:
            break
    return list(found.values())
