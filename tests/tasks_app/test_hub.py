"""The hub: whoever registers, reads and follows sees every event once, in order, however it came here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from math import inf

import psycopg
import pytest
import pytest_asyncio

from protocol.states import TaskState
from tasks_app.live import hub as hub_module
from tasks_app.live import topic as topic_module
from tasks_app.live.hub import Follower, Hub
from tasks_app.tables.record import Event
from tasks_app.tables.store import Page, Store
from tests.tasks_app.world import PATIENCE, World, soon
from tests.tasks_app.writes import Desk, change, creation, open_desk

OTHER = "worker-other"


class Log:
    """One task whose log grows by this process's journal, with a hub that hears only what the test lets it hear."""

    def __init__(self, world: World, store: Store, desk: Desk, task_id: str) -> None:
        self.store = store
        self.hub = Hub(store, "web-here")
        self.hub._interest._renew_at = inf  # It never looks by itself whether it missed something.
        self.task_id = task_id
        self.seq = 0
        self._desk = desk
        self._version = 1

    async def write(self, events: int = 1, state: TaskState = TaskState.WORKING) -> list[Event]:
        """Store more events; nobody is told."""
        seqs = range(self.seq + 1, self.seq + events + 1)
        update = change(self.task_id, self._version, state, seqs=list(seqs))
        assert await self._desk.submit(update) == [True]
        self._version += 1
        self.seq = seqs[-1]
        return update.events

    async def write_here(self, events: int = 1, state: TaskState = TaskState.WORKING) -> None:
        """Store more events, as the journal of this process does it."""
        self.hub.publish(self.task_id, await self.write(events, state))

    def notify(self, seq: int | None = None, origin: str = OTHER) -> None:
        """A notification that the log goes to `seq`, its end unless given."""
        self.hub.notified(f"{origin} unrelated:7 {self.task_id}:{self.seq if seq is None else seq} other:1")

    async def begin(self, follower: Follower) -> int:
        """Read the task, as the operations do after they opened a follower; its last seq."""
        record = await self.store.load(self.task_id)
        assert record is not None
        follower.begin(record.last_seq)
        return record.last_seq


@pytest_asyncio.fixture
async def log(world: World) -> AsyncIterator[Log]:
    agent = await world.add_agent()
    async with open_desk(world.dsn, OTHER) as desk:
        new = creation(agent.id)
        await desk.submit(new)
        log = Log(world, world.hosts[0].store, desk, new.task_id)
        yield log
        await log.hub.stop()


async def read(follower: Follower, until: int, patience: float = PATIENCE) -> list[int]:
    """The seqs that a follower is given up to `until`; fewer when nothing comes for `patience` seconds."""
    seqs: list[int] = []
    while not seqs or seqs[-1] < until:
        events = await follower.next(patience)
        if not events:
            break
        seqs += [e.seq for e in events]
    return seqs


async def test_events_of_this_process_come_as_they_are_published(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        assert await log.begin(follower) == 0
        await log.write_here(2)
        assert await read(follower, 2) == [1, 2]
        await log.write_here()
        assert await read(follower, 3) == [3]


async def test_events_of_another_process_come_by_its_notification(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write(3)
        waiting = asyncio.create_task(read(follower, 3))
        log.notify()
        assert await soon(waiting) == [1, 2, 3]


async def test_what_was_there_before_is_not_repeated(log: Log) -> None:
    await log.write_here(5)
    async with log.hub.follow(log.task_id) as follower:
        assert await log.begin(follower) == 5
        await log.write_here()
        assert await read(follower, 6) == [6]


@pytest.mark.parametrize("by", ["publish", "notify"])
async def test_nothing_is_missed_between_reading_the_task_and_following_it(log: Log, by: str) -> None:
    """The event is stored and announced after the task was read and before the follower begins."""
    await log.write_here(2)
    async with log.hub.follow(log.task_id) as follower:
        record = await log.store.load(log.task_id)
        assert record is not None
        events = await log.write()
        if by == "publish":
            log.hub.publish(log.task_id, events)
        else:
            log.notify()
            await asyncio.sleep(0)
        follower.begin(record.last_seq)
        assert await read(follower, 3, patience=2.0) == [3]


async def test_a_notification_that_overtakes_the_log_is_harmless(log: Log) -> None:
    """A writer that lost announces a seq that was never stored."""
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        log.notify(seq=4)
        assert await read(follower, 1, patience=0.05) == []
        await log.write_here(2)
        assert await read(follower, 2) == [1, 2]


async def test_own_notifications_are_not_read_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write()
        log.notify(origin="web-here")
        assert await read(follower, 1, patience=0.05) == [], "the journal publishes them itself"


async def test_a_late_follower_does_not_hide_events_from_an_early_one(log: Log) -> None:
    """Both follow one task. The late one reads a newer state of it before its events were heard of here."""
    async with log.hub.follow(log.task_id) as early, log.hub.follow(log.task_id) as late:
        await log.begin(early)
        await log.write_here(2)
        assert await read(early, 2) == [1, 2]
        waiting = asyncio.create_task(read(early, 4))
        await asyncio.sleep(0)
        events = await log.write(2, TaskState.COMPLETED)
        assert await log.begin(late) == 4
        log.hub.publish(log.task_id, events)
        log.notify()
        assert await asyncio.wait_for(waiting, 3.0) == [3, 4]


async def test_a_late_follower_wakes_an_early_one_for_what_was_never_announced(log: Log) -> None:
    async with log.hub.follow(log.task_id) as early, log.hub.follow(log.task_id) as late:
        await log.begin(early)
        waiting = asyncio.create_task(read(early, 1))
        await asyncio.sleep(0)
        await log.write()
        await log.begin(late)
        assert await asyncio.wait_for(waiting, 3.0) == [1]


async def test_a_gap_in_what_is_heard_is_read_from_the_log(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write_here()
        await log.write(2)
        await log.write_here()
        assert await read(follower, 4) == [1, 2, 3, 4]


async def test_a_gap_before_the_first_event_is_read_from_the_log(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write(2)
        await log.write_here()
        assert await read(follower, 3) == [1, 2, 3]


async def test_events_heard_twice_are_given_once(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        events = await log.write(3)
        log.notify()
        log.hub.publish(log.task_id, events)
        log.hub.publish(log.task_id, events[:2])
        assert await read(follower, 3) == [1, 2, 3]
        assert await read(follower, 4, patience=0.05) == []


async def test_a_slow_follower_reads_the_log(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_module, "REMEMBERED", 8)
    monkeypatch.setattr(hub_module, "PAGE", Page(events=5, size=10_000))
    async with log.hub.follow(log.task_id) as slow, log.hub.follow(log.task_id) as fast:
        await log.begin(slow)
        await log.begin(fast)
        for _ in range(20):
            await log.write_here(2)
            assert await read(fast, log.seq) == [log.seq - 1, log.seq]
        sizes, seqs = [], []
        while len(seqs) < 40:
            events = await slow.next(PATIENCE)
            sizes.append(len(events))
            seqs += [e.seq for e in events]
        assert seqs == list(range(1, 41))
        assert max(sizes) <= 8, "a page of the log, or what is remembered"


async def test_a_topic_remembers_a_bounded_number_of_events(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write_here(1100)
        first = await follower.next(PATIENCE)
        assert [e.seq for e in first] == list(range(1, 1025)), "a page of the log: memory reaches back to 845"
        assert await read(follower, 1100) == list(range(1025, 1101))


async def test_big_events_come_in_small_pages(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """From memory and from the log alike: what a slow reader was given stays in memory as long as it does not read."""
    page = Page(events=256, size=100)  # the body of a status is longer than half of that
    monkeypatch.setattr(hub_module, "PAGE", page)
    monkeypatch.setattr(topic_module, "PAGE", page)
    async with log.hub.follow(log.task_id) as near, log.hub.follow(log.task_id) as far:
        await log.begin(near)
        await log.begin(far)
        await log.write_here(5)
        assert [e.seq for e in await near.next(PATIENCE)] == [1, 2]
        log.hub._topics[log.task_id].forget()
        assert [e.seq for e in await far.next(PATIENCE)] == [1, 2]
        assert await read(near, 5) == await read(far, 5) == [3, 4, 5]


async def test_news_of_another_process_come_page_by_page(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "_NEWS", Page(events=3, size=10_000))
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write(10)
        log.notify()
        assert await read(follower, 10, patience=2.0) == list(range(1, 11))
    assert log.hub._stale == set()


async def test_all_topics_together_remember_a_bounded_size(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "_REMEMBERED_SIZE", 1000)
    async with log.hub.follow(log.task_id) as slow, log.hub.follow(log.task_id) as fast:
        await log.begin(slow)
        await log.begin(fast)
        topic, most = log.hub._topics[log.task_id], 0
        for _ in range(40):
            await log.write_here()
            assert await read(fast, log.seq) == [log.seq]
            assert topic.size == sum(len(e.body) for e in topic.events)
            most = max(most, topic.size)
        assert 500 < most <= 1000
        assert await read(slow, 40) == list(range(1, 41))


async def test_readers_of_a_deleted_task_are_let_go(log: Log, monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    monkeypatch.setattr(hub_module, "_SAFETY_NET_SECONDS", 0.05)
    log.hub.start()
    async with log.hub.follow(log.task_id) as idle, log.hub.follow(log.task_id) as behind:
        await log.begin(idle)
        await log.begin(behind)
        await log.write_here(2)
        assert await read(idle, 2) == [1, 2]
        log.hub._topics[log.task_id].forget()
        waiting = asyncio.create_task(idle.next(PATIENCE))
        await asyncio.sleep(0)
        await world.query("DELETE FROM tasks_app_event")
        await world.query("DELETE FROM tasks_app_task")
        assert await soon(behind.next(PATIENCE)) == []
        assert await soon(waiting) == []
        assert (idle.ended, behind.ended, idle.stopping) == (True, True, False)


async def test_a_host_that_stops_lets_readers_and_watchers_go(log: Log) -> None:
    """Who is far behind is sent to the next host, at an event's end."""
    changes = log.hub.watch()
    async with log.hub.follow(log.task_id) as near, log.hub.follow(log.task_id) as far:
        await log.begin(near)
        await log.begin(far)
        await log.write_here(2)
        assert await read(near, 2) == [1, 2]
        waiting = asyncio.create_task(near.next(PATIENCE))
        await asyncio.sleep(0)
        log.hub._topics[log.task_id].forget()
        watching = asyncio.ensure_future(anext(changes, None))
        await asyncio.sleep(0)
        log.hub.end()
        assert (await soon(waiting), await soon(far.next(PATIENCE))) == ([], [])
        assert (near.stopping, far.stopping) == (True, True)
    assert await soon(watching) is None


async def test_callers_who_wait_are_waited_for(log: Log) -> None:
    await soon(log.hub.nobody_waits())
    with log.hub.waiting():
        with log.hub.waiting():
            pass
        waited = asyncio.create_task(log.hub.nobody_waits())
        await asyncio.sleep(0)
        assert not waited.done()
    await soon(waited)


async def test_a_lost_notification_is_made_up_for(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "_SAFETY_NET_SECONDS", 0.05)
    log.hub.start()
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write(2)
        assert await read(follower, 2) == [1, 2]


async def test_after_a_gap_in_listening_everything_is_looked_at(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        await log.write(2)
        await log.hub.refresh_all()
        assert await read(follower, 2) == [1, 2]


async def test_a_timeout_gives_nothing_and_loses_nothing(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        assert await follower.next(0.01) == []
        await log.write_here()
        assert await read(follower, 1) == [1]


async def test_a_cancelled_wait_leaves_nothing_behind(log: Log) -> None:
    async with log.hub.follow(log.task_id) as follower:
        await log.begin(follower)
        waiting = asyncio.create_task(follower.next(PATIENCE))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await log.write_here()
        assert await read(follower, 1) == [1]


async def test_a_topic_lives_as_long_as_its_followers(log: Log) -> None:
    async with log.hub.follow(log.task_id) as first:
        async with log.hub.follow(log.task_id):
            await log.begin(first)
        await log.write_here()
        assert await read(first, 1) == [1], "the other follower's end is not this one's"
    await log.write_here()
    async with log.hub.follow(log.task_id) as later:
        assert await log.begin(later) == 2
        assert await read(later, 3, patience=0.05) == []


async def test_every_follower_sees_the_whole_log_under_concurrent_writing(world: World, log: Log) -> None:
    """Followers come and go at any moment while two processes write and announcements come late, doubled or never."""
    total = 120
    writing = asyncio.Event()

    async def follow_from_somewhere() -> tuple[int, list[int]]:
        async with log.hub.follow(log.task_id) as follower:
            start = await log.begin(follower)
            return start, await read(follower, total) if start < total else []

    async def write_all() -> None:
        while log.seq < total:
            here = log.seq % 3 == 0
            events = await log.write(min(1 + log.seq % 4, total - log.seq))
            writing.set()
            if here:
                log.hub.publish(log.task_id, events)
            elif log.seq % 5 or log.seq == total:
                log.notify()

    writer = asyncio.create_task(write_all())
    followers = []
    while not writer.done():
        followers.append(asyncio.create_task(follow_from_somewhere()))
        await writing.wait()
        writing.clear()
        if log.seq >= total:
            break
    await soon(writer)
    for start, seqs in await soon(asyncio.gather(*followers)):
        assert seqs == list(range(start + 1, total + 1))


async def test_two_hosts_tell_each_other(world: World) -> None:
    """With real notifications: what one process stores, the followers in the other see, without the safety net."""
    other = await world.start_host("worker")
    agent = await world.add_agent()
    store, here = world.hosts[0].store, world.hosts[0].hub
    new = creation(agent.id)
    assert await soon(other.journal.submit(new))
    async with here.follow(new.task_id) as follower:
        record = await store.load(new.task_id)
        assert record is not None
        follower.begin(record.last_seq)
        for version in range(1, 6):
            assert await soon(other.journal.submit(change(new.task_id, version)))
            assert await read(follower, version, patience=3.0) == [version]


async def test_what_was_written_before_the_wish_to_hear_was_known_is_found(world: World, desk: Desk) -> None:
    """A statement that began before it tells nobody; the process looks for what that wrote, long before the safety
    net would."""
    agent = await world.add_agent()
    new = creation(agent.id)
    await desk.submit(new)
    here = world.hosts[0]
    async with here.hub.follow(new.task_id) as follower:
        record = await here.store.load(new.task_id)
        assert record is not None
        follower.begin(record.last_seq)
        update = change(new.task_id, 1)
        async with await psycopg.AsyncConnection.connect(world.dsn) as other:
            await other.execute(
                "INSERT INTO tasks_app_event (task_id, seq, kind, body, append, last_chunk, attempt, created_at)"
                " VALUES (%s, 1, 1, %s, false, false, 1, now())",
                [new.task_id, update.status],
            )
            wish = "SELECT origin FROM tasks_app_listening WHERE origin = %s"
            async with asyncio.timeout(PATIENCE):
                while not await world.query(wish, [here.origin]):
                    pass
        assert await read(follower, 1, patience=3.0) == [1]


async def test_a_process_without_followers_asks_for_nothing(world: World) -> None:
    assert await world.query("SELECT origin FROM tasks_app_listening WHERE origin = %s", [world.hosts[0].origin]) == []


async def test_watchers_get_the_ids_of_what_changed_anywhere(world: World, log: Log) -> None:
    changes = log.hub.watch()
    first = asyncio.create_task(anext(changes))
    await asyncio.sleep(0)
    log.hub.publish(log.task_id, [])
    log.hub.notified(f"{OTHER} a:1 b:2 a:3")
    log.hub.notified("web-here own:1")
    assert await soon(first) == {log.task_id, "a", "b"}
    second = asyncio.create_task(anext(changes))
    await asyncio.sleep(0)
    log.hub.notified(f"{OTHER} c:1")
    assert await soon(second) == {"c"}
    await changes.aclose()


async def test_many_followers_of_one_task_cost_one_reading(log: Log) -> None:
    """However many streams follow, the events of another process are read once."""
    reads: list[Sequence[tuple[str, int]]] = []
    original = log.store.events_after

    async def counted(cursors: Sequence[tuple[str, int]], page: Page) -> dict[str, list[Event]]:
        reads.append(cursors)
        return await original(cursors, page)

    log.store.events_after = counted  # type: ignore[method-assign]
    async with AsyncExitStack() as stack:
        followers = [await stack.enter_async_context(log.hub.follow(log.task_id)) for _ in range(50)]
        for follower in followers:
            await log.begin(follower)
        await log.write(2)
        log.notify()
        assert await soon(asyncio.gather(*(read(f, 2) for f in followers))) == [[1, 2]] * 50
    assert reads == [[(log.task_id, 0)]]
