"""Coming back to a task with a long log, whose events are a worker's and whose streams are the web process's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.alone import Alone, Bound, Place
from benchmarks.calls import JsonRpc
from benchmarks.claims import Outcome
from benchmarks.client import Load
from benchmarks.databases import MARATHON_AGENT
from benchmarks.events import PATIENCE, Arrival, EventReader, open_stream, task_of
from benchmarks.replies import WrongReply
from benchmarks.wire import Endpoint

PAST = 10_000
TIMES = 5
MOST_MS = 300
LOOK_AGAIN = 20  # events after which it is looked up whether one of them is new enough

_RESUMED = Bound(f"Resume after event 1 of {PAST:,}: first live event, slowest of {TIMES}", "ms", at_most=MOST_MS)
_JOINED = Bound(f"New stream of a task with {PAST:,} events: same", "ms", at_most=MOST_MS)


async def _resume(place: Place) -> Sequence[Outcome]:
    agent = place.targets.agent(MARATHON_AGENT)
    rpc = JsonRpc(agent)
    watcher = await open_stream(agent, rpc.begin(str(PAST))[0])
    try:
        await watcher.until(lambda: watcher.events and watcher.events[-1].seq > PAST)
        task_id = task_of(watcher.events[0])
        back = replace(agent, headers=(*agent.headers, ("Last-Event-ID", "1")))
        resumed = [await _first_live(place, watcher, back, task_id) for _ in range(TIMES)]
        joined = [await _first_live(place, watcher, agent, task_id) for _ in range(TIMES)]
        errors = (await Load(agent, lambda: rpc.cancel(task_id), PATIENCE, 1).run(1)).errors
    finally:
        watcher.close()
    return [
        _RESUMED.judge(max(resumed) * 1000, errors=errors),
        _JOINED.judge(max(joined) * 1000, errors=errors),
    ]


async def _first_live(place: Place, watcher: EventReader, endpoint: Endpoint, task_id: str) -> float:
    """Seconds from the request to the first event that the host took after it. Raises WrongReply for a gap."""
    reader = await open_stream(endpoint, JsonRpc(endpoint).subscribe(task_id)[0])
    known = watcher.events[-1].seq
    live: list[Arrival] = []
    try:
        while not live:
            known += LOOK_AGAIN
            await reader.until(lambda known=known: reader.events and reader.events[-1].seq > known)  # type: ignore[misc]
            moments = place.moments(task_id)
            live = [event for event in reader.events if moments[event.seq] >= reader.asked_at]
    finally:
        reader.close()
    first = reader.events[0].seq
    if [event.seq for event in reader.events] != list(range(first, first + len(reader.events))):
        raise WrongReply("a gap in the stream")
    return live[0].at - reader.asked_at


RESUME = [Alone("resume", (_RESUMED, _JOINED), _resume)]
