"""Posting the events of tasks to their webhooks (§4.3.3): in order for each config, at least once, at nobody's cost.

It runs in the workers. A task and its callers never wait for it: it reads the log that the journal has written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from agents.outbound.client import OutboundClient
from agents.outbound.rules import OutboundError, OutboundRules
from agents.secrets import EncryptionError, decrypt
from protocol.errors import UnavailableError
from tasks_app.push.notifications import Notification, next_notifications
from tasks_app.push.queue import Claim, PushQueue
from tasks_app.store import Store

logger = logging.getLogger(__name__)

AT_ONCE = 500
"""Configs that a worker delivers to at the same time."""
_UNHEARD = timedelta(seconds=2)  # after which nobody is going to come for the events of a task


class Delivery:
    """The deliveries of one process and event loop."""

    def __init__(self, store: Store, rules: OutboundRules) -> None:
        self._store = store
        self._queue = PushQueue(store)
        self._client = OutboundClient(rules)
        self._running: set[asyncio.Task[None]] = set()

    async def deliver(self, task_ids: Sequence[str]) -> None:
        """Begin to deliver what waits for the configs of some tasks, unless somebody does already."""
        free = AT_ONCE - len(self._running)
        for claim in await self._queue.take(task_ids, free) if free > 0 else ():
            running = asyncio.create_task(self._run(claim), name=f"push {claim.task_id}")
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def sweep(self) -> None:
        """Deliver what nobody rang for, what is to be tried again, and what a dead process left."""
        free = AT_ONCE - len(self._running)
        task_ids = await self._queue.waiting(free, _UNHEARD) if free > 0 else []
        if task_ids:
            await self.deliver(task_ids)

    async def stop(self) -> None:
        """Break off what runs, for the next process to take up, and close the connections."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._client.aclose()

    async def _run(self, claim: Claim) -> None:
        try:
            await self._deliver(claim)
        except asyncio.CancelledError:
            await self._queue.release(claim)
            raise
        except UnavailableError as error:
            logger.warning("The webhook %s of task %s waits: %s", claim.config_id, claim.task_id, error.message)
        except Exception:
            logger.exception("The webhook %s of task %s could not be called", claim.config_id, claim.task_id)
            with suppress(UnavailableError):  # then the lease runs out
                await self._queue.failed(claim, "the host failed")

    async def _deliver(self, claim: Claim) -> None:
        """Post until the receiver has everything, refuses something, or somebody else delivers."""
        cursor = claim.cursor
        while notifications := await next_notifications(self._store, claim, cursor):
            for notification in notifications:
                error = await self._post(claim, notification)
                if error is not None:
                    await self._queue.failed(claim, error)
                    return
                cursor = notification.seq
                wanted = await self._queue.delivered(claim, cursor)
                if wanted is None or wanted <= cursor:
                    return
        await self._queue.failed(claim, "the events are gone")

    async def _post(self, claim: Claim, notification: Notification) -> str | None:
        """Send one event. Returns why it was not taken, None if it was."""
        try:
            headers = [("Content-Type", notification.content_type), *_secrets(claim)]
            reply = await self._client.post(claim.url, notification.body, headers)
        except OutboundError as error:
            return str(error)
        except EncryptionError as error:
            logger.error("The webhook %s of task %s: %s", claim.config_id, claim.task_id, error)
            return "the stored credentials cannot be decrypted"
        return None if reply.accepted else f"HTTP {reply.status}"


def _secrets(claim: Claim) -> list[tuple[str, str]]:
    """The headers by which the receiver knows the host. A scheme without credentials says nothing."""
    headers = []
    if claim.token:
        headers.append(("X-A2A-Notification-Token", decrypt(claim.token)))
    if claim.scheme and claim.credentials:
        headers.append(("Authorization", f"{claim.scheme} {decrypt(claim.credentials)}"))
    return headers
