"""The ledger of a webhook, giving up, and what people do by hand: in this process, against a real receiver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agents.outbound.listed import read_list
from agents.outbound.rules import OutboundRules
from agents.threads import in_thread
from protocol.model import AuthenticationInfo
from protocol.timestamps import now
from tasks_app import operations
from tasks_app.models import AuditEntry
from tasks_app.push import acts
from tasks_app.push.acts import Act, ActError
from tasks_app.push.delivery import Deliverer
from tasks_app.push.retries import LAST_RETRY_SECONDS, retry_after
from tests.support.receiver import Receiver, Reply
from tests.tasks_app.webhooks import all_done, idle, row, steps, tell, wait_for_row
from tests.tasks_app.world import World, ask, request

LEDGER = """SELECT kind, seq, attempt, status, error, response, next_at FROM tasks_app_delivery
    WHERE task_id = %s ORDER BY id"""
GONE = "The receiver says that the address is gone for good (HTTP 410)."
HEALTH = "failing_since, disabled_reason, disabled_at, paused_at, due_at"


async def ledger(world: World, task_id: str) -> list[tuple[Any, ...]]:
    """kind, seq, attempt, status, error, response of each attempt."""
    return [row[:6] for row in await world.query(LEDGER, [task_id])]


async def health(world: World, task_id: str) -> dict[str, Any]:
    """What the config of a task says of itself."""
    ((*values,),) = await world.query(f"SELECT {HEALTH} FROM tasks_app_pushconfig WHERE task_id = %s", [task_id])
    return dict(zip(HEALTH.split(", "), values, strict=True))


async def do(work: Callable[..., None], task_id: str, *args: int) -> None:
    """An act of a person on the config `c`."""
    await in_thread(lambda: work(Act(task_id, "c", "ada"), *args))


@pytest.mark.spec("4.3.3")
async def test_every_attempt_is_in_the_ledger(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    answers = [Reply(503, body=b"busy\r\n\x1b[31m \xff s3cr3t-of-ours t0k3n"), Reply(200, body="это\tok".encode())]
    receiver.answers["/ledger"] = lambda number: answers[min(number, 1)]
    entry = await world.add_agent(steps, push_notifications=True)
    secrets = AuthenticationInfo(scheme="Bearer", credentials="s3cr3t-of-ours")
    before = now()
    task_id = await tell(world, entry, receiver.url("/ledger"), id="c", token="t0k3n", authentication=secrets)
    await delivery.deliver([task_id])
    last_seq = (await all_done(world, task_id))[0]
    await wait_for_row(world, task_id, 0, last_seq, True, False, 1, "HTTP 503")
    assert await ledger(world, task_id) == [(1, 1, 1, 503, "HTTP 503", "busy \ufffd[31m \ufffd […] […]")]
    state = await health(world, task_id)
    ((at, duration, next_at),) = await world.query("SELECT at, duration_ms, next_at FROM tasks_app_delivery")
    assert before <= at == state["failing_since"] <= now()
    assert 0 <= duration < 20_000
    assert next_at == state["due_at"]
    await do(acts.retry_now, task_id)
    await delivery.sweep()
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    assert (await health(world, task_id))["failing_since"] is None
    rows = await ledger(world, task_id)
    assert rows[1:] == [(1, 1, 2, 200, "", "это ok"), *((1, n, 1, 200, "", "это ok") for n in range(2, last_seq + 1))]


async def test_a_gone_receiver_disables_at_once(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    receiver.answers["/gone"] = lambda _: 410
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/gone"), id="c")
    await delivery.deliver([task_id])
    last_seq = (await all_done(world, task_id))[0]
    await wait_for_row(world, task_id, 0, last_seq, False, False, 1, "HTTP 410")
    state = await health(world, task_id)
    assert state["disabled_reason"] == GONE
    assert state["disabled_at"] is not None
    await delivery.deliver([task_id])
    await delivery.sweep()
    await idle(delivery)
    assert len(receiver.deliveries("/gone")) == 1
    receiver.answers["/gone"] = lambda _: 200
    await do(acts.enable, task_id)
    await delivery.sweep()
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    assert {k: v for k, v in (await health(world, task_id)).items() if v} == {}
    with pytest.raises(ActError, match=r"^It is not disabled\.$"):
        await do(acts.enable, task_id)


async def test_a_day_of_retries(world: World, receiver: Receiver) -> None:
    """On a clock that jumps to whatever is due next: the real statements, the real receiver."""
    receiver.answers["/dead"] = lambda _: 500
    start = now()
    clock = [start]
    rules = OutboundRules(read_list(["127.0.0.1"]))
    world.hosts[0].outbound = rules
    delivery = Deliverer(world.hosts[0].store, rules, clock=lambda: clock[0])
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/dead"), id="c")
    gaps: list[timedelta] = []
    while True:
        await delivery.deliver([task_id])
        await idle(delivery)
        due = (await health(world, task_id))["due_at"]
        if due is None:
            break
        gaps.append(due - clock[0])
        clock[0] = due
    await delivery.stop()
    share = retry_after(1, f"{task_id} c").total_seconds()
    expected = _waits_of_a_day(share)
    assert len(gaps) == len(expected)
    for gap, wait in zip(gaps[:-1], expected[:-1], strict=True):
        assert abs(gap.total_seconds() - wait) < 0.01  # the share is known here to a microsecond only
    assert gaps[:-1] == sorted(gaps[:-1])  # the last one ends with the day
    assert clock[0] == start + timedelta(hours=24)
    attempts = len(gaps) + 1
    assert len(receiver.deliveries("/dead")) == attempts
    rows = await world.query(LEDGER, [task_id])
    assert [r[2] for r in rows] == list(range(1, attempts + 1))
    assert rows[-1][6] is None
    state = await health(world, task_id)
    assert (state["failing_since"], state["disabled_at"]) == (start, clock[0])
    assert state["disabled_reason"] == "No event could be delivered for 24 hours. The last error: HTTP 500"


def _waits_of_a_day(share: float) -> list[float]:
    """1 s, 2 s, 4 s … 1 h, 1 h, each times the config's share, until 24 h are over."""
    waits: list[float] = []
    while (left := 86400 - sum(waits)) > 0.001:
        waits.append(min(min(2.0 ** len(waits), LAST_RETRY_SECONDS) * share, left))
    return waits


def test_shares_differ_and_stay_between_half_and_all() -> None:
    shares = [retry_after(1, f"task config-{number}").total_seconds() for number in range(200)]
    assert len(set(shares)) == 200
    assert 0.5 <= min(shares) < 0.55
    assert 0.95 < max(shares) <= 1.0


async def test_one_event_is_sent_again_out_of_order(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    entry = await world.add_agent(steps, push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/again"), id="c")
    await delivery.deliver([task_id])
    done = await all_done(world, task_id)
    await wait_for_row(world, task_id, *done)
    await do(acts.redeliver, task_id, 2)
    with pytest.raises(ActError, match=r"^That is about to be sent already\.$"):
        await do(acts.redeliver, task_id, 2)
    for seq in (0, done[0] + 1):
        with pytest.raises(ActError, match=f"^The task has no event {seq}\\.$"):
            await do(acts.redeliver, task_id, seq)
    await delivery.sweep()
    await wait_for_row(world, task_id, *done)
    *first, again = receiver.deliveries("/again")
    assert again.body == first[1].body
    assert again.headers["webhook-id"] == first[1].headers["webhook-id"] == f"{task_id}-2"
    assert again.headers["x-a2a-notification-purpose"] == "redelivery"
    assert "x-a2a-notification-purpose" not in first[1].headers
    assert (await ledger(world, task_id))[-1] == (2, 2, 1, 200, "", "")
    audit = await world.query("SELECT actor, action, agent, task_id, detail FROM tasks_app_auditentry")
    assert audit == [("ada", "webhook.redeliver", entry.slug, task_id, "Webhook c: Event 2 is sent again.")]


async def test_a_redelivery_that_fails_is_no_failure_of_the_webhook(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/refuses"), id="c")
    await delivery.deliver([task_id])
    done = await all_done(world, task_id)
    await wait_for_row(world, task_id, *done)
    receiver.answers["/refuses"] = lambda _: 500
    await do(acts.redeliver, task_id, 1)
    await delivery.sweep()
    await idle(delivery)
    assert await row(world, task_id) == done
    assert {k: v for k, v in (await health(world, task_id)).items() if v} == {}
    assert (await ledger(world, task_id))[-1] == (2, 1, 1, 500, "HTTP 500", "")


@pytest.mark.parametrize(("by_hand", "seq"), [(acts.redeliver, 1), (acts.send_test, 0)])
async def test_a_receiver_that_is_gone_when_a_person_has_something_sent_is_disabled_at_once(
    world: World, delivery: Deliverer, receiver: Receiver, by_hand: Callable[..., None], seq: int
) -> None:
    path = f"/left-{seq}"
    entry = await world.add_agent(ask, push_notifications=True)
    task_id = await tell(world, entry, receiver.url(path), id="c")
    await delivery.deliver([task_id])
    done = await all_done(world, task_id)
    await wait_for_row(world, task_id, *done)
    receiver.answers[path] = lambda _: 410
    await do(by_hand, task_id, *([seq] if seq else []))
    await delivery.sweep()
    await idle(delivery)
    state = await health(world, task_id)
    assert state.pop("disabled_reason") == GONE
    since = state.pop("disabled_at")
    assert since is not None
    assert {k: v for k, v in state.items() if v} == {}
    assert await row(world, task_id) == done
    line = (await world.query(LEDGER, [task_id]))[-1]
    assert line == (3 if seq == 0 else 2, seq, 1, 410, "HTTP 410", "", None)
    await operations.send_message(world.call(entry), request(task_id=task_id))
    before = len(receiver.deliveries(path))
    await delivery.deliver([task_id])
    await do(acts.send_test, task_id)  # still goes out, and is no new reason
    await delivery.sweep()
    await idle(delivery)
    assert len(receiver.deliveries(path)) == before + 1
    assert (await health(world, task_id))["disabled_at"] == since


@pytest.mark.parametrize("work", [acts.pause, acts.send_test])
async def test_an_act_without_its_line_in_the_audit_log_has_not_happened(
    world: World, delivery: Deliverer, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, work: Callable[..., None]
) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/unnoted"), id="c")
    before = await world.dump()

    def dies(**_: Any) -> None:
        raise RuntimeError("the process dies")

    monkeypatch.setattr(AuditEntry.objects, "create", dies)
    with pytest.raises(RuntimeError, match="the process dies"):
        await do(work, task_id)
    assert await world.dump() == before


async def test_everything_from_an_event_on_is_sent_again_in_order(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    entry = await world.add_agent(steps, push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/all"), id="c")
    await delivery.deliver([task_id])
    done = await all_done(world, task_id)
    await wait_for_row(world, task_id, *done)
    await do(acts.redeliver_from, task_id, 2)
    await delivery.sweep()
    await idle(delivery)
    await wait_for_row(world, task_id, *done)
    ids = [d.headers["webhook-id"].rpartition("-")[2] for d in receiver.deliveries("/all")]
    everything = [str(seq) for seq in range(1, done[0] + 1)]
    assert ids == everything + everything[1:]


async def test_a_paused_webhook_is_sent_nothing_but_what_is_asked_for(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    entry = await world.add_agent(ask, push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/paused"), id="c")
    await do(acts.pause, task_id)
    with pytest.raises(ActError, match=r"^It is paused already\.$"):
        await do(acts.pause, task_id)
    await delivery.deliver([task_id])
    await operations.send_message(world.call(entry), request(task_id=task_id))
    await delivery.deliver([task_id])
    await delivery.sweep()
    await idle(delivery)
    assert receiver.deliveries("/paused") == []
    await do(acts.send_test, task_id)
    await delivery.sweep()
    await idle(delivery)
    (test,) = receiver.deliveries("/paused")
    assert test.json["task"]["id"] == task_id
    assert test.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert test.headers["x-a2a-notification-purpose"] == "test"
    assert (await ledger(world, task_id)) == [(3, 0, 1, 200, "", "")]
    await do(acts.resume, task_id)
    await delivery.sweep()
    done = await all_done(world, task_id)
    await wait_for_row(world, task_id, *done)
    ids = [d.headers["webhook-id"].rpartition("-")[2] for d in receiver.deliveries("/paused")[1:]]
    assert ids == [str(seq) for seq in range(1, done[0] + 1)]


async def test_what_is_on_its_way_when_somebody_pauses_counts(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    reached, go = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stuck(number: int) -> int:
        loop.call_soon_threadsafe(reached.set)
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result(20)
        return 200

    receiver.answers["/on-its-way"] = stuck
    entry = await world.add_agent(steps, push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/on-its-way"), id="c")
    await delivery.deliver([task_id])
    await asyncio.wait_for(reached.wait(), 20)
    await do(acts.pause, task_id)
    go.set()
    await idle(delivery)
    last_seq = (await all_done(world, task_id))[0]
    assert await row(world, task_id) == (1, last_seq, False, False, 0, "")


async def test_a_test_in_the_words_of_other_versions(world: World, delivery: Deliverer, receiver: Receiver) -> None:
    entry = await world.add_agent(push_notifications=True)
    for version, path in (("0.3", "/test-03"), ("tasks", "/test-tasks")):
        task_id = await tell(world, entry, receiver.url(path), id="c")
        await world.query("UPDATE tasks_app_pushconfig SET version = %s, cursor = last_seq", [version])
        await do(acts.send_test, task_id)
        await do(acts.pause, task_id)
        await delivery.sweep()
        await idle(delivery)
        (one,) = receiver.deliveries(path)
        assert one.headers["content-type"] == "application/json"
        assert task_id in (one.json.get("id"), one.json.get("task", {}).get("id"))


async def test_a_claim_with_nothing_to_do_leaves_nothing_due(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/nothing"), id="c")
    await delivery.deliver([task_id])
    done = await all_done(world, task_id)
    await wait_for_row(world, task_id, *done)
    arrived = len(receiver.deliveries("/nothing"))
    await world.query("UPDATE tasks_app_pushconfig SET due_at = now()")
    await delivery.sweep()
    await idle(delivery)
    assert await row(world, task_id) == done
    await world.query("UPDATE tasks_app_pushconfig SET due_at = now(), cursor = 0, paused_at = now()")
    await delivery.sweep()
    await idle(delivery)
    assert await row(world, task_id) == (0, *done[1:])
    assert len(receiver.deliveries("/nothing")) == arrived
