"""What a process remembers of one task's log for those who follow it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice

from tasks_app.tables.record import Event
from tasks_app.tables.store import Page

REMEMBERED = 256
"""Events that a topic keeps at most."""
PAGE = Page(events=1024, size=256 * 1024)
"""What a stream is given at a time."""


class Topic:
    """The newest events of one task and the streams that wait for more. `size` is that of the events' bodies."""

    __slots__ = ("announced", "events", "followers", "gone", "last_seq", "size", "task_id", "waiters")

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.last_seq = -1  # unknown until a follower has read the task
        self.announced = -1  # how far the log goes by notifications of others
        self.gone = False  # the task was deleted
        self.events: deque[Event] = deque()
        self.size = 0
        self.waiters: set[asyncio.Future[None]] = set()
        self.followers = 0

    def publish(self, events: Iterable[Event]) -> None:
        """Take in events and wake everybody. Events that are known already are passed over."""
        news = [e for e in events if e.seq > self.last_seq]
        if not news:
            return
        if self.events and news[0].seq != self.events[-1].seq + 1:
            self.forget()  # a gap: those behind it read the log
        self.events.extend(news)
        self.size += sum(len(e.body) for e in news)
        while len(self.events) > REMEMBERED:
            self.size -= len(self.events.popleft().body)
        self.last_seq = news[-1].seq
        self.wake()

    def reach(self, seq: int) -> None:
        """The log goes to `seq`, as somebody has read: who is behind and hears of nothing reads the log."""
        if seq > self.last_seq:
            self.forget()
            self.last_seq = seq
            self.wake()

    def forget(self) -> None:
        """Keep no events: who is behind reads the log."""
        self.events.clear()
        self.size = 0

    def wake(self) -> None:
        """Let everybody look again."""
        waiters, self.waiters = self.waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def after(self, cursor: int) -> list[Event] | None:
        """The first events beyond `cursor` from memory, a page at most, or None if memory does not reach back that far.

        A slow stream holds on to what it was given, so that is as little as it would read of the log.
        """
        if cursor >= self.last_seq:
            return []
        if not self.events or self.events[0].seq > cursor + 1:
            return None
        page: list[Event] = []
        size = 0
        for event in islice(self.events, cursor + 1 - self.events[0].seq, None):
            page.append(event)
            size += len(event.body)
            if len(page) >= PAGE.events or size >= PAGE.size:
                break
        return page
