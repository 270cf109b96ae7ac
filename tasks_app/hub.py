"""Live events: who waits for which task, and what they have not seen yet.

A topic stands for one task that somebody in this process follows. It keeps the newest events in memory once, however
many streams follow; a stream keeps only a cursor. Events come from the journal of this process right after their
commit, or from the log when another process notified; a stream that fell behind the topic's memory reads the log
itself, so a slow reader costs nobody else anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable

from protocol.errors import UnavailableError
from tasks_app.interest import Interest
from tasks_app.record import Event
from tasks_app.store import Store

logger = logging.getLogger(__name__)

_REMEMBERED = 256  # events a topic keeps
_PAGE = 256  # events a slow stream reads at a time
_SAFETY_NET_SECONDS = 5.0  # a lost notification delays a stream by at most this
_WATCH_SECONDS = 0.25


class Topic:
    """The newest events of one task and the streams that wait for more."""

    __slots__ = ("announced", "events", "followers", "last_seq", "task_id", "waiters")

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.last_seq = -1  # unknown until a follower has read the task
        self.announced = -1  # how far the log goes by notifications of others
        self.events: deque[Event] = deque(maxlen=_REMEMBERED)
        self.waiters: set[asyncio.Future[None]] = set()
        self.followers = 0

    def publish(self, events: Iterable[Event]) -> None:
        """Take in events and wake everybody. Events that are known already are passed over."""
        news = [e for e in events if e.seq > self.last_seq]
        if not news:
            return
        if self.events and news[0].seq != self.events[-1].seq + 1:
            self.events.clear()  # a gap: those behind it read the log
        self.events.extend(news)
        self.last_seq = news[-1].seq
        self.wake()

    def reach(self, seq: int) -> None:
        """The log goes to `seq`, as somebody has read: who is behind and hears of nothing reads the log."""
        if seq > self.last_seq:
            self.events.clear()
            self.last_seq = seq
            self.wake()

    def wake(self) -> None:
        """Let everybody look again."""
        waiters, self.waiters = self.waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def after(self, cursor: int) -> list[Event] | None:
        """Events beyond `cursor` from memory, or None if memory does not reach back that far."""
        if cursor >= self.last_seq:
            return []
        if not self.events or self.events[0].seq > cursor + 1:
            return None
        return [e for e in self.events if e.seq > cursor]


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
    def ended(self) -> bool:
        """Whether the host stops: there will be no more events here, elsewhere there may."""
        return self._hub.ended

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
            events = await self._hub.read_log(topic.task_id, self.cursor)
        if events:
            self.cursor = events[-1].seq
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
        self._interest = Interest(store, origin, self._look)

    async def start(self) -> None:
        """Begin to look for notifications that were lost."""
        self._safety_net = asyncio.create_task(self._look_now_and_then(), name="hub safety net")

    def end(self) -> None:
        """Let every reader go: the host stops."""
        self.ended = True
        for topic in self._topics.values():
            topic.wake()

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
        return await self._store.events_page(task_id, after, _PAGE)

    def publish(self, task_id: str, events: list[Event]) -> None:
        """Events that this process has just committed."""
        topic = self._topics.get(task_id)
        if topic is not None:
            topic.publish(events)
        for watch in self._watchers:
            watch.add(task_id)

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
            topics = [t for i in self._stale if (t := self._topics.get(i)) is not None and t.last_seq >= 0]
            self._stale.clear()
            if not topics:
                return
            try:
                found = await self._store.events_after([(t.task_id, t.last_seq) for t in topics])
            except UnavailableError as error:
                logger.warning("Events could not be read, the next look will: %s", type(error).__name__)
                return
            for topic in topics:
                topic.publish(found.get(topic.task_id, []))

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_SAFETY_NET_SECONDS)
            self._look()

    async def watch(self) -> AsyncIterator[set[str]]:
        """Ids of tasks that changed anywhere, coalesced to a few sets a second."""
        watch = Watch()
        self._watchers.add(watch)
        self._interest.want()
        try:
            while True:
                await watch.changed.wait()
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
