"""Live events: who waits for which task, and what they have not seen yet.

A topic stands for one task that somebody in this process follows. It keeps the newest events in memory once, however
many streams follow; a stream keeps only a cursor. Events come from the journal of this process right after their
commit, or from the log when another process notified; a stream that fell behind the topic's memory reads the log
itself, so a slow reader costs nobody else anything. What all topics keep together has a limit too, in bytes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import islice

from protocol.errors import UnavailableError
from tasks_app.live.interest import Interest
from tasks_app.live.topic import PAGE, Topic
from tasks_app.tables.record import Event
from tasks_app.tables.store import Page, Store

logger = logging.getLogger(__name__)

_REMEMBERED_SIZE = 16 * 1024 * 1024  # characters of their bodies that all topics keep together
_NEWS = Page(events=256, size=64 * 1024)  # what is read at a time of one of many tasks
_TASKS_AT_A_TIME = 256
_SAFETY_NET_SECONDS = 5.0  # a lost notification delays a stream by at most this
_WATCH_SECONDS = 0.25


class Follower:
    """One reader of one task's log. `cursor` is the seq of the last event that it was given.

    It has to be closed; `async with` does so. Thousands wait at a time, so waiting is one frame deep.
    """

    __slots__ = ("_hub", "_topic", "cursor")

    def __init__(self, hub: Hub, topic: Topic) -> None:
        self._hub = hub
        self._topic = topic
        self.cursor = 0

    async def __aenter__(self) -> Follower:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Read no more."""
        self._hub.leave(self._topic)

    @property
    def stopping(self) -> bool:
        """Whether the host stops: there will be no more events here, elsewhere there may."""
        return self._hub.ended

    @property
    def ended(self) -> bool:
        """Whether there will be no more events here: the host stops, or the task was deleted."""
        return self._hub.ended or self._topic.gone

    def begin(self, cursor: int, known: int = 0) -> None:
        """Start after `cursor`. The caller read the task after the follower was opened, and its log went to `cursor`
        or, if that is more, to `known`."""
        self.cursor = cursor
        self._topic.reach(max(cursor, known))
        if self._topic.announced > self._topic.last_seq:  # Somebody wrote while the caller was reading.
            self._hub.refresh_soon(self._topic.task_id)

    async def next(self, patience: float) -> list[Event]:
        """The next events in order, at least one; empty after `patience` seconds without any."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        topic = self._topic
        while topic.last_seq <= self.cursor:  # others may be woken for what this reader has read
            if loop.time() >= deadline or self.ended:
                return []
            waiter: asyncio.Future[None] = loop.create_future()
            topic.waiters.add(waiter)
            timer = loop.call_at(deadline, _expire, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                topic.waiters.discard(waiter)
        events = topic.after(self.cursor)
        if events is None:
            events = await self._read_log()
        if events:
            self.cursor = events[-1].seq
        return events

    async def _read_log(self) -> list[Event]:
        """What is beyond the topic's memory. A host that stops leaves that to the next one."""
        if self.ended:
            return []
        events = await self._hub.read_log(self._topic.task_id, self.cursor)
        if not events:  # It was there when somebody read the task.
            self._topic.gone = True
        return events


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Hub:
    """All topics of one process. `origin` is its name in notifications."""

    def __init__(self, store: Store, origin: str) -> None:
        self._store = store
        self._origin = origin
        self.ended = False
        self._topics: dict[str, Topic] = {}
        self._stale: set[str] = set()
        self._refreshing: asyncio.Task[None] | None = None
        self._safety_net: asyncio.Task[None] | None = None
        self._watchers: set[Watch] = set()
        self._published = 0  # characters of bodies, since the last look at how many are remembered
        self._waits = 0
        self._nobody_waits = asyncio.Event()
        self._nobody_waits.set()
        self._interest = Interest(store, origin, self._look)

    def start(self) -> asyncio.Task[None]:
        """Begin to look for notifications that were lost; gives the task that does."""
        self._safety_net = asyncio.create_task(self._look_now_and_then(), name="hub's safety net")
        return self._safety_net

    def end(self) -> None:
        """Let every reader go: the host stops."""
        self.ended = True
        for topic in self._topics.values():
            topic.wake()
        for watch in self._watchers:
            watch.changed.set()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, a caller waits for the end of a task: a host that stops gives it a moment."""
        self._waits += 1
        self._nobody_waits.clear()
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                self._nobody_waits.set()

    async def nobody_waits(self) -> None:
        """Return when no caller waits for the end of a task that runs elsewhere."""
        await self._nobody_waits.wait()

    async def stop(self) -> None:
        """Look for nothing any more."""
        tasks = [t for t in (self._safety_net, self._refreshing, self._interest.telling) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.end()

    def follow(self, task_id: str) -> Follower:
        """A follower of a task. Read the task after it is open and `begin` at its last_seq: nothing is missed."""
        topic = self._topics.get(task_id)
        if topic is None:
            topic = self._topics[task_id] = Topic(task_id)
        topic.followers += 1
        self._interest.want()
        return Follower(self, topic)

    def leave(self, topic: Topic) -> None:
        """One follower less."""
        topic.followers -= 1
        if not topic.followers:
            self._topics.pop(topic.task_id, None)

    async def read_log(self, task_id: str, after: int) -> list[Event]:
        """A page of a task's log, for who is behind what the topic remembers."""
        return await self._store.events_page(task_id, after, PAGE)

    def publish(self, task_id: str, events: list[Event]) -> None:
        """Events that this process has just committed."""
        topic = self._topics.get(task_id)
        if topic is not None:
            self._publish(topic, events)
        for watch in self._watchers:
            watch.add(task_id)

    def _publish(self, topic: Topic, events: list[Event]) -> None:
        topic.publish(events)
        self._published += sum(len(e.body) for e in events)
        if self._published > _REMEMBERED_SIZE:
            self._limit_memory()

    def _limit_memory(self) -> None:
        """See how much of what was published is still remembered. If it is much, who is behind reads the log."""
        self._published = sum(topic.size for topic in self._topics.values())
        if self._published > _REMEMBERED_SIZE // 2:
            for topic in self._topics.values():
                topic.forget()
            self._published = 0

    def notified(self, payload: str) -> None:
        """A notification `<origin> <task id>:<seq> …` of any process."""
        origin, *news = payload.split(" ")
        if origin == self._origin:
            return
        for item in news:
            task_id, _, seq = item.partition(":")
            topic = self._topics.get(task_id)
            if topic is not None and topic.last_seq < int(seq):
                topic.announced = max(topic.announced, int(seq))
                self.refresh_soon(task_id)
            for watch in self._watchers:
                watch.add(task_id)

    async def refresh_all(self) -> None:
        """Look for news of every topic, after notifications may have been missed."""
        self._interest.forget()
        self._look()

    def _look(self) -> None:
        if self._topics or self._watchers:
            self._interest.want()
        for task_id in self._topics:
            self.refresh_soon(task_id)

    def refresh_soon(self, task_id: str) -> None:
        """Read what is new of a task, together with what else is asked for."""
        self._stale.add(task_id)
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(), name="hub refresh")

    async def _refresh(self) -> None:
        while self._stale:
            chosen = list(islice(self._stale, _TASKS_AT_A_TIME))
            self._stale.difference_update(chosen)
            topics = [t for i in chosen if (t := self._topics.get(i)) is not None and t.last_seq >= 0]
            if not topics:
                continue
            try:
                found = await self._store.events_after([(t.task_id, t.last_seq) for t in topics], _NEWS)
            except UnavailableError as error:
                logger.warning("Events could not be read, the next look will: %s", type(error).__name__)
                return
            for topic in topics:
                news = found.get(topic.task_id, [])
                self._publish(topic, news)
                if len(news) == _NEWS.events or sum(len(e.body) for e in news) >= _NEWS.size:
                    self._stale.add(topic.task_id)  # There may be more.

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_SAFETY_NET_SECONDS)
            try:
                self._look()
                await self._end_deleted()
            except UnavailableError as error:
                logger.warning("Deleted tasks could not be looked for: %s", type(error).__name__)
            except Exception:
                logger.exception("The hub could not look for what it has missed; that is tried again")

    async def _end_deleted(self) -> None:
        """Let the readers of tasks go that are not there any more."""
        topics = [topic for topic in self._topics.values() if topic.last_seq >= 0]
        if topics:
            existing = await self._store.existing([topic.task_id for topic in topics])
            for topic in topics:
                if topic.task_id not in existing:
                    topic.gone = True
                    topic.wake()

    async def watch(self) -> AsyncIterator[set[str]]:
        """Ids of tasks that changed anywhere, coalesced to a few sets a second, until the host stops."""
        watch = Watch()
        self._watchers.add(watch)
        self._interest.want()
        try:
            while True:
                await watch.changed.wait()
                if self.ended:
                    return
                await asyncio.sleep(_WATCH_SECONDS)
                yield watch.take()
        finally:
            self._watchers.discard(watch)


class Watch:
    """Ids that changed since somebody looked."""

    __slots__ = ("changed", "ids")

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.changed = asyncio.Event()

    def add(self, task_id: str) -> None:
        """Note a changed task."""
        self.ids.add(task_id)
        self.changed.set()

    def take(self) -> set[str]:
        """What changed; forgets it."""
        ids, self.ids = self.ids, set()
        self.changed.clear()
        return ids
