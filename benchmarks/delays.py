"""How soon something that happens in one process is felt in another: runs that begin, events, cancels."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.alone import Alone, Bound, Place, milliseconds
from benchmarks.calls import JsonRpc, Known
from benchmarks.claims import Outcome
from benchmarks.client import Load
from benchmarks.databases import WORKER_AGENT
from benchmarks.events import PATIENCE, EventReader, open_stream, task_of
from benchmarks.grpc_load import start_over_grpc
from benchmarks.replies import WORKING, WrongReply

STARTS = 300
STREAMS = 3
CHUNKS = 100  # of each stream
PAUSE_MS = 20  # between two chunks
CANCELS = 50
HOLD_SECONDS = 600
_STEPS = f"steps {CHUNKS} {PAUSE_MS}"

_START_P50 = Bound("Start of a run in the Celery worker, from the message to the agent's first word, p50", "ms")
_START_P99 = Bound("Start of a run in the Celery worker, p99", "ms")
_WORKER_P50 = Bound("Event of the worker to a stream of the web process, beside its own events, p50", "ms", at_most=5)
_WORKER_P99 = Bound("Event of the worker to a stream of the web process, beside its own events, p99", "ms")
_WEB_P50 = Bound("Event of the gRPC process to a stream of the web process, same, p50", "ms", at_most=5)
_WEB_P99 = Bound("Event of the gRPC process to a stream of the web process, same, p99", "ms")
_CANCEL_P50 = Bound("CancelTask of code in the worker, p50", "ms")
_CANCEL_MOST = Bound(f"CancelTask of code in the worker, the slowest of {CANCELS}", "ms", at_most=1000)

_FIRST_WORDS = """SELECT extract(epoch FROM min(e.created_at) - t.created_at) FROM tasks_app_task t
    JOIN tasks_app_event e ON e.task_id = t.id WHERE t.id = ANY(%s) GROUP BY t.id"""


async def _starts(place: Place) -> Sequence[Outcome]:
    """One caller, so that no run waits for another one."""
    worker = place.targets.agent(WORKER_AGENT)
    rpc = JsonRpc(worker)
    sent: list[Known] = []
    load = Load(worker, lambda: rpc.send(sent.append), PATIENCE, STARTS)
    errors = (await load.run(1)).errors
    late = [float(row[0]) for row in place.rows(_FIRST_WORDS, [[task.id for task in sent]])]
    if len(late) != STARTS:
        raise WrongReply(f"{len(late)} runs of {STARTS}: {errors[:1]}")
    return [
        _START_P50.judge(milliseconds(late, 0.5), errors=errors),
        _START_P99.judge(milliseconds(late, 0.99), errors=errors),
    ]


async def _across(place: Place) -> Sequence[Outcome]:
    """The base is how late events are on a stream of the process that writes them: what their commit takes."""
    here, worker = place.targets.agent("steps"), place.targets.agent("steps-worker")
    itself: list[float] = []
    of_worker: list[float] = []
    of_grpc: list[float] = []
    for _ in range(STREAMS):
        itself += await _lateness(place, await open_stream(here, JsonRpc(here).begin(_STEPS)[0]))
        of_worker += await _lateness(place, await open_stream(worker, JsonRpc(worker).begin(_STEPS)[0]))
        task_id = await start_over_grpc(place.targets.grpc, "steps", _STEPS)
        of_grpc += await _lateness(place, await open_stream(here, JsonRpc(here).subscribe(task_id)[0]))
    return [
        bound.judge(milliseconds(late, share), milliseconds(itself, share))
        for bound, late, share in (
            (_WORKER_P50, of_worker, 0.5),
            (_WORKER_P99, of_worker, 0.99),
            (_WEB_P50, of_grpc, 0.5),
            (_WEB_P99, of_grpc, 0.99),
        )
    ]


async def _lateness(place: Place, reader: EventReader) -> list[float]:
    """Seconds from the moment at which the host took each event until it came over a stream, to the stream's end.

    Raises WrongReply for a gap.
    """
    await reader.until(lambda: reader.ended)
    first, *events = reader.events
    moments = place.moments(task_of(first))
    if [event.seq for event in events] != list(range(first.seq + 1, len(moments) + 1)):
        raise WrongReply(f"events {first.seq} to {len(moments)} came with gaps or in another order")
    if len(events) < CHUNKS * 0.9:
        raise WrongReply(f"only {len(events)} events came live")
    return [event.at - moments[event.seq] for event in events]


async def _cancels(place: Place) -> Sequence[Outcome]:
    """Of runs that are at work. The reply comes when the code has said that it has stopped."""
    hold = place.targets.agent("hold-worker")
    rpc = JsonRpc(hold)
    late: list[float] = []
    errors: list[str] = []
    for _ in range(CANCELS):
        reader = await open_stream(hold, rpc.begin(f"hold {HOLD_SECONDS}")[0])
        await reader.until(lambda reader=reader: any(WORKING in event.text.decode() for event in reader.events))  # type: ignore[misc]
        task_id = task_of(reader.events[0])
        done = await Load(hold, lambda task_id=task_id: rpc.cancel(task_id), PATIENCE, 1).run(1)  # type: ignore[misc]
        late += done.latencies
        errors += done.errors
        reader.close()
    return [
        _CANCEL_P50.judge(milliseconds(late, 0.5), errors=errors),
        _CANCEL_MOST.judge(milliseconds(late, 1), errors=errors),
    ]


DELAYS = [
    Alone("start", (_START_P50, _START_P99), _starts),
    Alone("across", (_WORKER_P50, _WORKER_P99, _WEB_P50, _WEB_P99), _across),
    Alone("cancel", (_CANCEL_P50, _CANCEL_MOST), _cancels),
]
