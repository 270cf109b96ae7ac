"""Delivering to webhooks: order, claims, cursors, retries. A real receiver; deliveries run in this process."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from agents.outbound.rules import OutboundRules
from agents.runtimes.base import Run, Updates
from protocol.model import AuthenticationInfo, TaskPushNotificationConfig
from protocol.requests import CreateTaskPushNotificationConfigRequest
from protocol.timestamps import now
from tasks_app import operations
from tasks_app.push.delivery import Deliverer
from tasks_app.push.queue import EVENT, Outcome, PushQueue, Room
from tasks_app.tables.store import Page
from tests.support.receiver import Receiver
from tests.tasks_app.webhooks import all_done, idle, row, steps, tell, wait_for_row
from tests.tasks_app.world import PATIENCE, World, ask, request, say, work


@pytest.mark.spec("4.3.3")
async def test_every_event_is_posted_in_order(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    entry = await world.add_agent(steps, push_notifications=True)
    authentication = AuthenticationInfo(scheme="Bearer", credentials="s3")
    task_id = await tell(world, entry, receiver.url("/order"), token="t", authentication=authentication)
    events = await world.hosts[0].store.events_page(task_id, 0, Page(100, 1_000_000))
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, len(events), len(events), False, False, 0, "")
    deliveries = receiver.deliveries("/order")
    record = await world.load(task_id)
    assert [d.body for d in deliveries] == [e.payload(task_id, record.context_id) for e in events]
    for one in deliveries:
        assert one.headers["content-type"] == "application/a2a+json"
        assert one.headers["authorization"] == "Bearer s3"
        assert one.headers["x-a2a-notification-token"] == "t"
    assert all(before.ended <= after.started for before, after in itertools.pairwise(deliveries))
    assert await world.query("SELECT push_due_at FROM tasks_app_task") == [(None,)]


async def test_nothing_is_posted_twice(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    entry = await world.add_agent(steps, push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/once"))
    await asyncio.gather(*(delivery.deliver([task_id]) for _ in range(5)))
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    await delivery.deliver([task_id])
    await delivery.sweep()
    await idle(delivery)
    bodies = [d.body for d in receiver.deliveries("/once")]
    assert len(bodies) == len(set(bodies)) == (await row(world, task_id))[0]


async def test_no_authorization_without_credentials(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    entry = await world.add_agent(push_notifications=True)
    scheme = AuthenticationInfo(scheme="Bearer")
    task_id = await tell(world, entry, receiver.url("/bare"), authentication=scheme)
    await delivery.deliver([task_id])
    (first, *_) = await asyncio.to_thread(receiver.wait, "/bare", 1)
    assert not {"authorization", "x-a2a-notification-token"} & set(first.headers)


async def test_a_refused_event_is_tried_again_before_the_next_one(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    receiver.answers["/flaky"] = lambda number: 500 if number < 2 else 200
    entry = await world.add_agent(steps, push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/flaky"))
    (_, last_seq, *_) = await all_done(world, task_id)
    for attempt in (1, 2):
        await delivery.deliver([task_id])
        await wait_for_row(world, task_id, 0, last_seq, True, False, attempt, "HTTP 500")
        await delivery.deliver([task_id])  # not due yet
        await idle(delivery)
        assert len(receiver.deliveries("/flaky")) == attempt
        ((due,),) = await world.query("SELECT due_at > now() FROM tasks_app_pushconfig")
        assert due
        await world.query("UPDATE tasks_app_pushconfig SET due_at = now()")
    await delivery.sweep()
    await wait_for_row(world, task_id, last_seq, last_seq, False, False, 0, "")
    first, second, *others = receiver.deliveries("/flaky")
    assert first.body == second.body == others[0].body
    assert len(others) == last_seq


@pytest.mark.parametrize(
    ("path", "answer", "error"),
    [("/moved", 307, "HTTP 307"), ("/absent", 404, "HTTP 404"), ("/teapot", 418, "HTTP 418")],
)
async def test_anything_but_2xx_is_a_failure(
    world: World, delivery: Deliverer, receiver: Receiver, path: str, answer: int, error: str
) -> None:
    receiver.answers[path] = lambda _: answer
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url(path))
    await delivery.deliver([task_id])
    (_, last_seq, *_) = await all_done(world, task_id)
    await wait_for_row(world, task_id, 0, last_seq, True, False, 1, error)


async def test_an_address_that_is_not_allowed_any_more_is_not_called(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/late"))
    strict = Deliverer(world.hosts[0].store, OutboundRules([]))
    await strict.deliver([task_id])
    error = "must not lead to a private, local or reserved address"
    await wait_for_row(world, task_id, 0, (await row(world, task_id))[1], True, False, 1, error)
    await strict.stop()
    assert receiver.deliveries("/late") == []


async def test_events_of_a_running_delivery_are_picked_up_by_it(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    """The receiver is slow; meanwhile the task goes on, and its bell finds the config taken."""
    entry = await world.add_agent(ask, push_notifications=True)
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(number: int) -> int:
        if number == 0:
            asyncio.run_coroutine_threadsafe(go.wait(), loop).result(PATIENCE)
        return 200

    receiver.answers["/slow"] = slow
    task_id = await tell(world, entry, receiver.url("/slow"))
    await delivery.deliver([task_id])
    await operations.send_message(world.call(entry), request(task_id=task_id))
    record = await world.load(task_id)
    await delivery.deliver([task_id])
    go.set()
    await wait_for_row(world, task_id, record.last_seq, record.last_seq, False, False, 0, "")
    states = [d.state for d in receiver.deliveries("/slow") if d.state]
    assert states == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]


async def test_what_a_dead_worker_held_is_taken_over_when_its_lease_is_over(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/inherited"))
    queue = PushQueue(world.hosts[0].store)
    (held,), _ = await queue.take([task_id], Room(10, 10))
    await delivery.sweep()
    await delivery.deliver([task_id])
    await idle(delivery)
    assert receiver.deliveries("/inherited") == []
    await world.query("UPDATE tasks_app_pushconfig SET lease_until = now() - interval '1 second'")
    await delivery.sweep()
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    # Who comes back from the dead moves nothing.
    before = await world.dump()
    for error in ("", "late"):
        late = Outcome(held, EVENT, held.cursor + 1, 1, now(), 5, None, error, "")
        assert await queue.store([late]) == [None]
    await queue.release([held])
    assert await world.dump() == before
    ledger = await world.query("SELECT error, next_at FROM tasks_app_delivery ORDER BY id DESC LIMIT 2")
    assert ledger == [("late", None), ("", None)]  # yet the requests were made


async def test_the_sweep_finds_what_nobody_rang_for(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/unheard"))
    await delivery.sweep()
    await idle(delivery)
    assert receiver.deliveries("/unheard") == []  # a bell may still come
    await world.query("UPDATE tasks_app_task SET push_due_at = push_due_at - interval '3 seconds'")
    await delivery.sweep()
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))


async def test_a_stopped_worker_gives_back_what_it_held(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    reached, go = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stuck(number: int) -> int:
        loop.call_soon_threadsafe(reached.set)
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result(PATIENCE)
        return 200

    receiver.answers["/stuck"] = stuck
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/stuck"))
    stopping = Deliverer(world.hosts[0].store, world.hosts[0].outbound)
    await stopping.deliver([task_id])
    async with asyncio.timeout(PATIENCE):
        await reached.wait()
    await stopping.stop()
    (_, last_seq, *_) = await row(world, task_id)
    assert await row(world, task_id) == (0, last_seq, True, False, 0, "")
    go.set()
    await delivery.sweep()
    await wait_for_row(world, task_id, last_seq, last_seq, False, False, 0, "")


@pytest.mark.spec("3.1.7")
async def test_a_config_made_later_begins_with_the_next_event(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    entry = await world.add_agent(ask, push_notifications=True)
    task_id = (await operations.send_message(world.call(entry), request())).record.id
    config = CreateTaskPushNotificationConfigRequest(task_id=task_id, url=receiver.url("/later"))
    await operations.create_push_config(world.call(entry), config)
    await delivery.deliver([task_id])
    await idle(delivery)
    assert receiver.deliveries("/later") == []
    await operations.send_message(world.call(entry), request(task_id=task_id))
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    assert receiver.deliveries("/later")[0].state == "TASK_STATE_WORKING"


@pytest.mark.spec("3.1.7")
async def test_a_new_address_gets_what_the_old_one_did_not_take(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    receiver.answers["/old"] = lambda _: 503
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/old"), id="c")
    await delivery.deliver([task_id])
    (_, last_seq, *_) = await all_done(world, task_id)
    await wait_for_row(world, task_id, 0, last_seq, True, False, 1, "HTTP 503")
    config = CreateTaskPushNotificationConfigRequest(task_id=task_id, id="c", url=receiver.url("/new"))
    await operations.create_push_config(world.call(entry), config)
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, last_seq, last_seq, False, False, 0, "")
    assert (len(receiver.deliveries("/old")), len(receiver.deliveries("/new"))) == (1, last_seq)


async def test_the_wrong_key_is_said_aloud_and_nothing_is_sent(
    world: World, delivery: Deliverer, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/sealed"), token="t")
    await world.query("UPDATE tasks_app_pushconfig SET token = 'gAAAA'")
    await delivery.deliver([task_id])
    error = "the stored credentials cannot be decrypted"
    await wait_for_row(world, task_id, 0, (await row(world, task_id))[1], True, False, 1, error)
    assert "was encrypted with a key that is not among those" in caplog.text
    assert receiver.deliveries("/sealed") == []


@pytest.mark.spec("3.1.1")
async def test_a_message_answer_is_posted_too(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    async def reply(run: Run, updates: Updates) -> None:
        await updates.reply(say("hello"))

    entry = await world.add_agent(reply, push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/message"))
    await delivery.deliver([task_id])
    (one,) = await asyncio.to_thread(receiver.wait, "/message", 1)
    assert list(one.json) == ["message"]
    call = world.call(entry)
    call.dialect = "GRPC/0.3"
    config = TaskPushNotificationConfig(url=receiver.url("/old-message"))
    old = (await operations.send_message(call, request(push_config=config))).record.id
    await delivery.deliver([old])
    (one,) = await asyncio.to_thread(receiver.wait, "/old-message", 1)
    assert one.headers["content-type"] == "application/json"
    assert (one.json["kind"], one.json["role"], one.json["parts"]) == (
        "message",
        "agent",
        [{"kind": "text", "text": "hello"}],
    )


async def test_version_0_3_is_told_with_the_whole_task(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    entry = await world.add_agent(steps, push_notifications=True)
    config = TaskPushNotificationConfig(url=receiver.url("/v03"))
    call = world.call(entry)
    call.dialect = "JSONRPC/0.3"
    task_id = (await operations.send_message(call, request(push_config=config))).record.id
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    tasks = receiver.deliveries("/v03")
    assert {d.headers["content-type"] for d in tasks} == {"application/json"}
    assert [(d.json["kind"], d.json["id"]) for d in tasks] == [("task", task_id)] * len(tasks)
    assert [d.json["status"]["state"] for d in tasks] == ["working", "working", "working", "completed"]
    assert [len(d.json.get("artifacts", [{"parts": []}])[0]["parts"]) for d in tasks] == [0, 1, 2, 2]


async def test_a_task_without_configs_rings_no_bell(
    world: World, delivery: Deliverer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[str] = []
    monkeypatch.setattr(world.hosts[0].doorbell, "ring_for_push", rung.append)
    entry = await world.add_agent(work, push_notifications=True)
    await operations.send_message(world.call(entry), request())
    assert rung == []
    told = await tell(world, entry, "http://127.0.0.1:1/")
    assert set(rung) == {told}
