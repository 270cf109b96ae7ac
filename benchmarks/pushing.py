"""Webhooks: how many deliveries a second, to one config and to a hundred, and how late they are while all is well."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from benchmarks.alone import Alone, Bound, Place, milliseconds
from benchmarks.calls import JsonRpc, Known
from benchmarks.claims import Outcome
from benchmarks.client import Load
from benchmarks.receiver import PATIENCE, Notification, Receiver
from benchmarks.replies import COMPLETED, WrongReply

ONE_STEPS = 500  # chunks of the task whose config is alone
HUNDRED = 100
HUNDRED_STEPS = 20  # chunks of each of a hundred tasks
HEALTHY = 200  # tasks whose notifications are looked at one after the other

_ONE = Bound("Webhook deliveries, one config", "deliveries/s", at_least=100)
_HUNDRED = Bound("Webhook deliveries, 100 configs", "deliveries/s", at_least=300)
_P50 = Bound("Webhook delay from the event to its receiver, p50", "ms", at_most=50)
_P99 = Bound("Webhook delay from the event to its receiver, p99", "ms")

_paths = (f"/{number}" for number in itertools.count())


async def _rates(place: Place) -> Sequence[Outcome]:
    async with Receiver(place.receiver) as receiver:
        return [
            _ONE.judge(await _rate(place, receiver, 1, ONE_STEPS)),
            _HUNDRED.judge(await _rate(place, receiver, HUNDRED, HUNDRED_STEPS)),
        ]


async def _rate(place: Place, receiver: Receiver, configs: int, steps: int) -> float:
    """Deliveries per second, from the first to the last, to so many tasks' webhooks. Raises WrongReply."""
    steps_agent = place.targets.agent("steps")
    rpc = JsonRpc(steps_agent)
    paths = list(itertools.islice(_paths, configs))
    waiting = iter(paths)
    load = Load(steps_agent, lambda: rpc.start(f"steps {steps} 0", receiver.url(next(waiting))), PATIENCE, configs)
    errors = (await load.run(min(configs, 16))).errors
    if errors:
        raise WrongReply(errors[0])
    await receiver.until(lambda: all(_has_ended(receiver.notifications[path]) for path in paths))
    for path in paths:
        _check_chunks(receiver.notifications[path], steps)
    arrivals = sorted(one.at for path in paths for one in receiver.notifications[path])
    return (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])


def _has_ended(notifications: Sequence[Notification]) -> bool:
    return bool(notifications) and notifications[-1].state == COMPLETED


def _check_chunks(notifications: Sequence[Notification], steps: int) -> None:
    """Every chunk has come once, in order. Raises WrongReply."""
    said = [part["text"] for one in notifications if one.state is None for part in one.update["artifact"]["parts"]]
    if said != [f"chunk {number}\n" for number in range(1, steps + 1)]:
        raise WrongReply(f"{len(said)} chunks of {steps} came, or in another order")


async def _delays(place: Place) -> Sequence[Outcome]:
    """Tasks one after the other, so that no notification waits for those of another task."""
    late: list[float] = []
    async with Receiver(place.receiver) as receiver:
        for path in itertools.islice(_paths, HEALTHY):
            late += await _lateness(place, receiver, path)
    return [_P50.judge(milliseconds(late, 0.5)), _P99.judge(milliseconds(late, 0.99))]


async def _lateness(place: Place, receiver: Receiver, path: str) -> list[float]:
    """Seconds from the moment at which the host took each event of an echo until it came. Raises WrongReply."""
    echo = place.targets.agent("echo")
    rpc = JsonRpc(echo)
    sent: list[Known] = []
    load = Load(echo, lambda: rpc.send(sent.append, receiver.url(path)), PATIENCE, 1)
    if errors := (await load.run(1)).errors:
        raise WrongReply(errors[0])
    await receiver.until(lambda: _has_ended(receiver.notifications[path]))
    moments, arrived = place.moments(sent[0].id), receiver.notifications[path]
    if len(arrived) != len(moments):
        raise WrongReply(f"{len(arrived)} notifications of {len(moments)} events")
    return [one.at - moments[seq] for seq, one in enumerate(arrived, start=1)]


PUSH = [Alone("push", (_ONE, _HUNDRED), _rates), Alone("push", (_P50, _P99), _delays)]
