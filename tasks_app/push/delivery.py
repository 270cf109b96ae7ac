"""Posting the events of tasks to their webhooks (§4.3.3): in order for each config, at least once, at nobody's cost.

It runs in the workers. A task and its callers never wait for it: it reads the log that the journal has written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from agents.outbound.rules import OutboundRules
from agents.signing import Signer
from protocol.errors import UnavailableError
from protocol.timestamps import now
from tasks_app.push.notifications import Notification
from tasks_app.push.outcomes import Outcomes
from tasks_app.push.places import NoPlaceError
from tasks_app.push.posting import Errand, Poster
from tasks_app.push.queue import AGAIN, EVENT, TEST, Claim, Next, Outcome, PushQueue, Room
from tasks_app.push.reading import Notifications
from tasks_app.tables.store import Store

logger = logging.getLogger(__name__)

AT_ONCE, FAILING_AT_ONCE = 2000, 300
"""Configs that a worker holds at the same time, and how many of them may have failed last time."""
_LOOK_SECONDS = 1.0  # what was rung for is there at once; this is for retries and lost bells
_UNHEARD = timedelta(seconds=2)  # after which nobody is going to come for the events of a task
_NO_PLACE = timedelta(seconds=5)
_TAKEN_AT_ONCE = 256  # tasks
_BUSY_SECONDS, _BUSY_TRIES = 0.02, 5  # while somebody else writes a task's row


def _no_key() -> Signer | None:
    return None


def _database_time() -> datetime | None:
    return None


class Deliverer:
    """The deliveries of one process and event loop.

    `signer` gives the key of the host that signs JWTs; `clock` says the time for tests, None for the database's.
    """

    def __init__(
        self,
        store: Store,
        rules: OutboundRules,
        signer: Callable[[], Signer | None] = _no_key,
        clock: Callable[[], datetime | None] = _database_time,
    ) -> None:
        self._queue = PushQueue(store, clock)
        self._outcomes = Outcomes(self._queue)
        self._notifications = Notifications(store)
        self._poster = Poster(rules, signer, clock)
        self._running: dict[asyncio.Task[None], Claim] = {}
        self._placeless: list[Claim] = []
        self._rung: dict[str, int] = {}
        self._taking: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Look from now on for what nobody rings for; gives the task that does."""
        self._looking = asyncio.create_task(self._look(), name="look for webhooks")
        return self._looking

    async def deliver(self, task_ids: Sequence[str]) -> None:
        """Begin to deliver what waits for the configs of some tasks, unless somebody does already. What is asked for
        while a statement is under way goes into the next one. Raises UnavailableError; then the sweep finds them."""
        await asyncio.shield(self._ring(dict.fromkeys(task_ids, _BUSY_TRIES)))

    async def sweep(self) -> None:
        """Deliver what nobody rang for, what is to be tried again, and what a dead process left."""
        room = self._room()
        if room.healthy:
            await self.deliver(await self._queue.waiting(room, _UNHEARD))

    async def stop(self) -> None:
        """Break off what runs, for the next process to take up, and close the connections."""
        if self._looking is not None:
            self._looking.cancel()
        if self._taking is not None:
            await asyncio.gather(self._taking, return_exceptions=True)
        held = dict(self._running)
        for running in held:
            running.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        with suppress(UnavailableError):  # then the leases run out
            await self._outcomes.stop()
            await self._queue.release([*held.values(), *self._placeless])
        await self._poster.aclose()

    def _ring(self, tries: dict[str, int]) -> asyncio.Task[None]:
        self._rung.update(tries)
        if self._taking is None or self._taking.done():
            self._taking = asyncio.create_task(self._take(), name="claim webhooks")
        return self._taking

    async def _take(self) -> None:
        try:
            while self._rung and (room := self._room()).healthy:
                tries = dict(list(self._rung.items())[:_TAKEN_AT_ONCE])
                for task_id in tries:
                    del self._rung[task_id]
                claims, busy = await self._queue.take(list(tries), room)
                for claim in claims:
                    self._start(claim)
                again = {task_id: tries[task_id] - 1 for task_id in busy if tries[task_id] > 1}
                if again:
                    asyncio.get_running_loop().call_later(_BUSY_SECONDS, self._ring, again)
        finally:
            self._rung.clear()  # of those that are left, the sweep finds some when there is room

    def _start(self, claim: Claim) -> None:
        running = asyncio.create_task(self._run(claim), name=f"push {claim.name}")
        self._running[running] = claim
        running.add_done_callback(self._running.pop)

    def _room(self) -> Room:
        failing = sum(claim.attempts > 0 for claim in self._running.values())
        healthy = max(0, AT_ONCE - len(self._running))
        return Room(healthy, max(0, min(healthy, FAILING_AT_ONCE - failing)))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                placeless, self._placeless = self._placeless, []
                await self._queue.release(placeless, _NO_PLACE)
                await self.sweep()
            except UnavailableError as error:
                logger.warning("Webhooks wait for the database: %s", error.message)
            except Exception:
                logger.exception("Webhooks could not be looked for; that is tried again")

    async def _run(self, claim: Claim) -> None:
        try:
            await self._serve(claim)
        except NoPlaceError:
            self._placeless.append(claim)
        except UnavailableError as error:
            logger.warning("The webhook %s waits: %s", claim.name, error.message)
        except Exception:
            logger.exception("The webhook %s could not be called", claim.name)
            with suppress(UnavailableError):  # then the lease runs out
                await self._outcomes.store(
                    _unsent(claim, EVENT, claim.cursor + 1, claim.attempts + 1, "the host failed")
                )

    async def _serve(self, claim: Claim) -> None:
        """Post until the receiver has everything, refuses something, or somebody else delivers."""
        if not claim.resend and claim.cursor >= claim.wanted:
            await self._queue.release([claim])  # What it was due for is done, or must not be sent any more.
            return
        left: Next | None = Next(claim.wanted, claim.resend)
        cursor, attempts = claim.cursor, claim.attempts
        found: list[Notification] = []
        while left is not None:
            if left.resend:
                left = await self._again(claim, left.resend[0])
            elif cursor < left.wanted:
                found = found or list(await self._notifications.after(claim, cursor))
                if not found:
                    await self._outcomes.store(_unsent(claim, EVENT, cursor + 1, attempts + 1, "the events are gone"))
                    return
                notification = await self._notifications.whole(claim, found.pop(0))
                outcome = await self._poster.post(Errand(claim, EVENT, attempts + 1, notification))
                left = await self._outcomes.store(outcome)
                if outcome.error:
                    return
                cursor, attempts = outcome.seq, 0
            else:
                return

    async def _again(self, claim: Claim, seq: int) -> Next | None:
        """Send what a person asked for, once, whatever comes of it."""
        kind = AGAIN if seq else TEST
        notification = await self._notifications.again(claim, seq)
        if notification is None:
            return await self._outcomes.store(_unsent(claim, kind, seq, 1, "the event is gone"))
        notification = await self._notifications.whole(claim, notification)
        return await self._outcomes.store(await self._poster.post(Errand(claim, kind, 1, notification)))


def _unsent(claim: Claim, kind: int, seq: int, attempt: int, error: str) -> Outcome:
    """For the ledger: there was nothing to send, or the host could not."""
    return Outcome(claim, kind, seq, attempt, now(), 0, None, error, "")
