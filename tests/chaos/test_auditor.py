"""The auditor finds nothing in books that fit together, and in doctored ones the one thing that was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.auditor import CHECKS, audit
from tests.chaos.books import (
    MESSAGE,
    Ack,
    Arrival,
    Arrivals,
    Books,
    Heard,
    Item,
    Leg,
    Stored,
    StoredTask,
    Stream,
    item_of,
)

WORKING, COMPLETED = Item("status", "WORKING", "t1"), Item("status", "COMPLETED", "t4")
ONE = Item("artifact", artifact="a", texts=("1",))
TWO = Item("artifact", artifact="a", append=True, texts=("2",))
LOG = [WORKING, ONE, TWO, COMPLETED]
SUBMITTED = Item("task", "SUBMITTED", "t0")
AT_TWO = Item("task", "WORKING", "t1", texts=("1",))
AT_END = Item("task", "COMPLETED", "t4", texts=("1", "2"))


class World:
    """Books of one task with a webhook and three streams, a second one that waits, and a Message, which all fit."""

    def __init__(self) -> None:
        done = StoredTask("done", "steps", "COMPLETED", 4, list(enumerate(LOG, start=1)), {1, 2}, {1, 2})
        asked = StoredTask("asked", "ask", "INPUT_REQUIRED", 1, [(1, Item("status", "INPUT_REQUIRED", "t1"))])
        said = StoredTask("said", "direct", MESSAGE, 1, [(1, Item("message", MESSAGE))])
        counts = {("steps", "me", "COMPLETED"): 1, ("ask", "me", "INPUT_REQUIRED"): 1, ("direct", "me", MESSAGE): 1}
        self.done = done
        self.stored = Stored(
            tasks={task.id: task for task in (done, asked, said)},
            messages={"m1": ["done"], "m2": ["asked"], "m3": ["said"]},
            counted=dict(counts),
            counters=dict(counts),
        )
        broken = Leg("jsonrpc", None, [Heard(0, SUBMITTED), Heard(1, WORKING), Heard(2, ONE)])
        resumed = Leg("rest", 2, [Heard(2, AT_TWO), Heard(3, TWO), Heard(4, COMPLETED)])
        joined = Leg("grpc", None, [Heard(2, AT_TWO), Heard(3, TWO), Heard(4, COMPLETED)])
        self.broken, self.resumed, self.joined = broken, resumed, joined
        self.stream = Stream("done", [broken, resumed], ended=True)
        self.books = Books(
            acks=[Ack("steps", "m1", "done", ("1", "2")), Ack("steps", "m1", "done", ("1", "2"))],
            ends=[("done", "COMPLETED")],
            streams=[self.stream, Stream("done", [joined], ended=True), Stream("asked", [Leg("rest")], ended=True)],
            hooks={"/m1": "m1"},
            reads=[("done", AT_END)],
            cancels=[("done", 0.9)],
        )
        self.books.acks += [Ack("ask", "m2", "asked"), Ack("direct", "m3", "")]
        self.arrivals: Arrivals = {"/m1": [Arrival(item, True) for item in LOG]}

    def findings(self) -> set[str]:
        """The checks that found something."""
        return {name for name, check in audit(self.books, self.stored, self.arrivals).checks.items() if check.found}


def test_what_fits_together_is_clean() -> None:
    world = World()
    result = audit(world.books, world.stored, world.arrivals)
    assert result.clean
    assert {name: check.found for name, check in result.checks.items()} == {name: [] for name in CHECKS}
    unexpected = "replies that nobody expects"
    assert all(check.looked_at for name, check in result.checks.items() if name != unexpected)
    assert result.repeats == 0


def lose_the_message(world: World) -> None:
    del world.stored.messages["m3"]


def lose_the_task(world: World) -> None:
    """Of a message whose history entry is still there."""
    world.books.acks.append(Ack("steps", "m2", "gone"))
    world.stored.messages["m2"] = ["gone"]


def make_two_tasks(world: World) -> None:
    world.stored.messages["m2"] = ["asked", "other"]


def name_two_tasks(world: World) -> None:
    world.books.acks.append(Ack("steps", "m1", "asked"))


def name_another_task(world: World) -> None:
    world.stored.messages["m2"] = ["done"]


def tell_another_end(world: World) -> None:
    world.books.ends.append(("done", "CANCELED"))


def tell_an_end_too_early(world: World) -> None:
    world.books.ends.append(("asked", "FAILED"))


def read_too_little(world: World) -> None:
    world.books.reads.append(("done", replace(AT_END, texts=("1",))))


def read_another_time(world: World) -> None:
    world.books.reads.append(("done", replace(AT_END, timestamp="t9")))


def end_twice(world: World) -> None:
    world.done.log[2] = (3, COMPLETED)
    forget_streams_and_webhooks(world)
    world.books.acks = [ack for ack in world.books.acks if ack.task_id != "done"]
    world.books.reads.clear()


def never_end(world: World) -> None:
    world.done.state = "FAILED"
    world.books.ends.clear()
    world.stored.counted = world.stored.counters = {}


def stay_at_work(world: World) -> None:
    world.stored.tasks["asked"].state = "WORKING"


def lose_an_event(world: World) -> None:
    del world.stored.tasks["asked"].log[0]


def double_an_event(world: World) -> None:
    world.stored.tasks["asked"].log *= 2


def lose_a_run(world: World) -> None:
    world.done.recorded.remove(1)


def forget_streams_and_webhooks(world: World) -> None:
    world.books.streams.clear()
    world.books.hooks.clear()


def skip_in_a_stream(world: World) -> None:
    del world.resumed.heard[1]


def repeat_in_a_stream(world: World) -> None:
    world.broken.heard.append(Heard(2, ONE))


def repeat_under_another_id(world: World) -> None:
    world.broken.heard.append(Heard(3, ONE))


def skip_and_count_on(world: World) -> None:
    world.joined.heard[1:] = [Heard(3, COMPLETED)]


def resume_too_late(world: World) -> None:
    world.resumed.after = 1


def begin_with_another_task(world: World) -> None:
    world.resumed.heard[0] = Heard(2, replace(AT_TWO, texts=("1", "2")))


def hear_more_than_is_stored(world: World) -> None:
    world.joined.heard.append(Heard(5, COMPLETED))


def stream_a_lost_task(world: World) -> None:
    world.books.streams.append(Stream("gone", [Leg("grpc")], ended=True))


def never_tell_the_end(world: World) -> None:
    world.stream.ended = False


def miss_an_event(world: World) -> None:
    world.arrivals["/m1"].pop()


def refuse_an_event(world: World) -> None:
    world.arrivals["/m1"][-1] = Arrival(COMPLETED, taken=False)


def miss_the_webhook(world: World) -> None:
    world.arrivals.clear()


def swap_events(world: World) -> None:
    came = world.arrivals["/m1"]
    came[1], came[2] = came[2], came[1]


def repeat_an_old_event(world: World) -> None:
    world.arrivals["/m1"].append(Arrival(ONE, True))


def go_on_after_a_refusal(world: World) -> None:
    world.arrivals["/m1"].insert(0, Arrival(ONE, True))


def tell_what_never_was(world: World) -> None:
    world.arrivals["/m1"].append(Arrival(replace(COMPLETED, state="FAILED"), True))


def keep_a_webhook_waiting(world: World) -> None:
    world.stored.waiting_webhooks.append("done")


def lose_a_chunk(world: World) -> None:
    world.books.acks[0] = world.books.acks[1] = Ack("steps", "m1", "done", ("1", "2", "3"))


def double_a_chunk(world: World) -> None:
    world.books.acks[0] = world.books.acks[1] = Ack("steps", "m1", "done", ("1",))


def break_a_failed_artifact(world: World) -> None:
    """What a task that was not COMPLETED has is the beginning of what it was to make."""
    world.stored.tasks["asked"].log.append((2, TWO))
    world.stored.tasks["asked"].last_seq = 2
    world.books.acks.append(Ack("ask", "m2", "asked", ("1", "2")))


def count_one_too_many(world: World) -> None:
    world.stored.counters["steps", "me", "COMPLETED"] = 2


def count_what_is_gone(world: World) -> None:
    world.stored.counters["steps", "you", "FAILED"] = 1


def cancel_slowly(world: World) -> None:
    world.books.cancels.append(("done", 1.0))


def refuse_for_no_reason(world: World) -> None:
    world.books.unexpected.append("send: INTERNAL")


DOCTORED: dict[Callable[[World], None], set[str]] = {
    lose_the_message: {"acknowledged and lost"},
    lose_the_task: {"acknowledged and lost", "repeated sends that made a second task"},
    make_two_tasks: {"repeated sends that made a second task"},
    name_two_tasks: {"repeated sends that made a second task"},
    name_another_task: {"repeated sends that made a second task"},
    tell_another_end: {"ends that were told and are not so"},
    tell_an_end_too_early: {"ends that were told and are not so"},
    read_too_little: {"tasks that are read otherwise than their log"},
    read_another_time: {"tasks that are read otherwise than their log"},
    end_twice: {"tasks without exactly one end in their log"},
    never_end: {"tasks without exactly one end in their log"},
    stay_at_work: {"tasks neither ended nor waiting for somebody"},
    lose_an_event: {"logs with gaps or repeats"},
    double_an_event: {"logs with gaps or repeats"},
    lose_a_run: {"runs without a record"},
    skip_in_a_stream: {"streams with gaps or repeats"},
    repeat_in_a_stream: {"streams with gaps or repeats"},
    repeat_under_another_id: {"streams with gaps or repeats"},
    skip_and_count_on: {"streams with gaps or repeats"},
    resume_too_late: {"streams with gaps or repeats"},
    begin_with_another_task: {"streams with gaps or repeats"},
    hear_more_than_is_stored: {"streams with gaps or repeats"},
    stream_a_lost_task: {"streams with gaps or repeats"},
    never_tell_the_end: {"streams that never told of an end"},
    miss_an_event: {"webhooks with missing events"},
    refuse_an_event: {"webhooks with missing events"},
    miss_the_webhook: {"webhooks with missing events"},
    swap_events: {"webhooks out of order"},
    repeat_an_old_event: {"webhooks out of order"},
    go_on_after_a_refusal: {"webhooks out of order"},
    tell_what_never_was: {"webhooks out of order"},
    keep_a_webhook_waiting: {"webhooks that still wait"},
    lose_a_chunk: {"artifacts with doubled or missing chunks"},
    double_a_chunk: {"artifacts with doubled or missing chunks"},
    break_a_failed_artifact: {"artifacts with doubled or missing chunks"},
    count_one_too_many: {"counters that are not exact"},
    count_what_is_gone: {"counters that are not exact"},
    cancel_slowly: {"cancels that took a second"},
    refuse_for_no_reason: {"replies that nobody expects"},
}


@pytest.mark.parametrize("doctor", DOCTORED, ids=lambda doctor: doctor.__name__)
def test_doctored_books_are_found_out(doctor: Callable[[World], None]) -> None:
    world = World()
    doctor(world)
    assert world.findings() == DOCTORED[doctor]


def test_every_check_can_fail() -> None:
    assert set().union(*DOCTORED.values()) == set(CHECKS)


def test_a_webhook_may_be_told_again() -> None:
    """At least once: a refused event comes again, and one whose answer was not heard too, before the next one."""
    world = World()
    world.arrivals["/m1"][1:1] = [Arrival(ONE, False), Arrival(ONE, False), Arrival(ONE, True)]
    result = audit(world.books, world.stored, world.arrivals)
    assert result.clean
    assert result.repeats == 1


def test_a_repeated_run_may_say_the_same_again() -> None:
    """Then the log has equal events, and the webhook is told of each; one of them less is one too few."""
    world = World()
    twice = [WORKING, ONE, TWO, ONE, TWO, COMPLETED]
    world.done.log = list(enumerate(twice, start=1))
    world.done.last_seq = 6
    world.books.streams.clear()
    world.arrivals["/m1"] = [Arrival(item, True) for item in twice]
    assert world.findings() == set()
    del world.arrivals["/m1"][3:5]
    assert world.findings() == {"webhooks out of order"}
    world.arrivals["/m1"].pop()
    assert world.findings() == {"webhooks with missing events"}


@pytest.mark.parametrize(
    ("response", "item"),
    [
        ({"task": {"id": "x", "status": {"state": "TASK_STATE_SUBMITTED", "timestamp": "t0"}}}, SUBMITTED),
        (
            {
                "task": {
                    "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "t4"},
                    "artifacts": [{"artifactId": "a", "parts": [{"text": "1"}, {"text": "2"}]}],
                }
            },
            AT_END,
        ),
        ({"statusUpdate": {"status": {"state": "TASK_STATE_WORKING", "timestamp": "t1"}}}, WORKING),
        ({"artifactUpdate": {"artifact": {"artifactId": "a", "parts": [{"text": "1"}]}}}, ONE),
        ({"artifactUpdate": {"artifact": {"artifactId": "a", "parts": [{"text": "2"}]}, "append": True}}, TWO),
        ({"message": {"messageId": "r", "parts": []}}, Item("message", MESSAGE)),
    ],
)
def test_items_say_the_same_wherever_they_come_from(response: dict[str, Any], item: Item) -> None:
    assert item_of(response) == item
