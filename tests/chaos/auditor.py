"""Compares what clients were told with what is stored and with what webhooks got, and counts what does not fit.

Pure: it sees the books of the three parties and nothing else, so that a test can doctor them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.chaos.books import MESSAGE, TERMINAL, WAITING, Arrival, Arrivals, Books, Counter, Item, Leg, Stored, Stream
from tests.chaos.views import View, views

CANCEL_SECONDS = 1.0
"""Within which a cancel reaches the code, on a host that has nothing else to do."""


@dataclass(slots=True)
class Check:
    """One line of the table: how many were looked at, and what was wrong with whom."""

    looked_at: int = 0
    found: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Audit:
    """The findings by the name of the check, and webhook requests that came again, which at-least-once allows."""

    checks: dict[str, Check] = field(default_factory=dict)
    repeats: int = 0

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not any(check.found for check in self.checks.values())


class Evidence:
    """The books of a run, and the tasks' logs played back."""

    def __init__(self, books: Books, stored: Stored, arrivals: Arrivals) -> None:
        self.books = books
        self.stored = stored
        self.arrivals = arrivals
        self.views = {task.id: views(task) for task in stored.tasks.values()}
        self.makes = {ack.task_id: ack.makes for ack in books.acks if ack.makes is not None}


Finder = Callable[[Evidence], Iterator[str | None]]
"""Yields for each thing that it looks at what is wrong with it, None if nothing."""


def audit(books: Books, stored: Stored, arrivals: Arrivals) -> Audit:
    """All checks."""
    evidence = Evidence(books, stored, arrivals)
    result = Audit()
    for name, finder in CHECKS.items():
        check = result.checks[name] = Check()
        for finding in finder(evidence):
            check.looked_at += 1
            if finding is not None:
                check.found.append(finding)
    result.repeats = sum(_told(wanted, came).repeats for _, wanted, came in _webhooks(evidence))
    return result


def _lost(evidence: Evidence) -> Iterator[str | None]:
    for ack in evidence.books.acks:
        tasks = evidence.stored.messages.get(ack.message_id, [])
        if not tasks:
            yield f"message {ack.message_id} to {ack.agent} was acknowledged and is not stored"
        elif ack.task_id and ack.task_id not in evidence.stored.tasks:
            yield f"task {ack.task_id} of {ack.agent} was acknowledged and is not stored"
        else:
            yield None


def _made_twice(evidence: Evidence) -> Iterator[str | None]:
    told: dict[str, set[str]] = {}
    for ack in evidence.books.acks:
        told.setdefault(ack.message_id, set()).add(ack.task_id)
    for message_id, tasks in told.items():
        stored = evidence.stored.messages.get(message_id, [])
        if len(tasks) > 1 or len(stored) > 1:
            yield f"message {message_id} has the tasks {sorted(tasks)} in replies, {stored} in the database"
        elif stored and "" not in tasks and set(stored) != tasks:
            yield f"message {message_id} was acknowledged for {sorted(tasks)} and is stored for {stored}"
        else:
            yield None


def _told_otherwise(evidence: Evidence) -> Iterator[str | None]:
    for task_id, state in evidence.books.ends:
        task = evidence.stored.tasks.get(task_id)
        stored = task.state if task else "missing"
        yield None if stored == state else f"task {task_id} was told to be {state} and is {stored}"


def _read_otherwise(evidence: Evidence) -> Iterator[str | None]:
    for task_id, item in evidence.books.reads:
        told = evidence.views.get(task_id, [View()])[-1]
        yield None if told.shows(item) else f"task {task_id} is read as {item}, its log says {told}"


def _ends(evidence: Evidence) -> Iterator[str | None]:
    for task in evidence.stored.tasks.values():
        ends = [(seq, item.state) for seq, item in task.log if item.kind == "status" and item.state in TERMINAL]
        wanted = int(task.state in TERMINAL)
        if len(ends) != wanted or (ends and ends[0] != (task.last_seq, task.state)):
            yield f"task {task.id} is {task.state} at {task.last_seq}, its log has the ends {ends}"
        else:
            yield None


def _unfinished(evidence: Evidence) -> Iterator[str | None]:
    for task in evidence.stored.tasks.values():
        settled = task.state in TERMINAL | WAITING | {MESSAGE}
        yield None if settled else f"task {task.id} of {task.agent} is still {task.state}"


def _holes(evidence: Evidence) -> Iterator[str | None]:
    for task in evidence.stored.tasks.values():
        seqs = [seq for seq, _ in task.log]
        whole = seqs == list(range(1, task.last_seq + 1))
        yield None if whole else f"the log of task {task.id} has the seqs {seqs}, its row says {task.last_seq}"


def _unrecorded(evidence: Evidence) -> Iterator[str | None]:
    for task in evidence.stored.tasks.values():
        missing = sorted(task.made - task.recorded)
        yield f"the runs {missing} of task {task.id} made artifacts and are not recorded" if missing else None


def _stream_gaps(evidence: Evidence) -> Iterator[str | None]:
    for stream in evidence.books.streams:
        for leg in stream.legs:
            yield _leg(evidence, stream, leg)


def _leg(evidence: Evidence, stream: Stream, leg: Leg) -> str | None:
    known = evidence.views.get(stream.task_id)
    if known is None or not leg.heard:
        return None if known else f"a stream of task {stream.task_id}, which is not stored"
    start = leg.heard[0].seq
    if leg.after is not None and start != leg.after:
        return f"a {leg.binding} stream of {stream.task_id} resumed after {leg.after} begins at {start}"
    begins = start < len(known) and known[start].shows(leg.heard[0].item)
    wanted = evidence.stored.tasks[stream.task_id].log[start : start + len(leg.heard) - 1]
    if begins and [(heard.seq, heard.item) for heard in leg.heard[1:]] == wanted:
        return None
    told = [(heard.seq, heard.item.kind, heard.item.state or heard.item.texts) for heard in leg.heard]
    return f"a {leg.binding} stream of {stream.task_id} does not follow its log: {told}"


def _endless(evidence: Evidence) -> Iterator[str | None]:
    for stream in evidence.books.streams:
        yield None if stream.ended else f"a stream of {stream.task_id} never told of an end"


def _webhooks(evidence: Evidence) -> Iterator[tuple[str, list[Item], list[Arrival]]]:
    """(whose, what it has to be told, what came) of each webhook of a task that is stored."""
    for path, message_id in evidence.books.hooks.items():
        for task_id in evidence.stored.messages.get(message_id, []):
            if (task := evidence.stored.tasks.get(task_id)) is not None:
                yield f"the webhook of task {task_id}", [i for _, i in task.log], evidence.arrivals.get(path, [])


@dataclass(slots=True)
class _Told:
    """How far a webhook was told in order, how many events came again before the next one, and what came amiss.

    Lost runs and their repetitions make equal events, so places count, not what an event says.
    """

    reached: int = -1
    repeats: int = 0
    amiss: list[Item] = field(default_factory=list)


def _told(wanted: list[Item], came: list[Arrival]) -> _Told:
    told = _Told()
    for arrival in came:
        if wanted[told.reached + 1 : told.reached + 2] == [arrival.item]:
            told.reached += arrival.taken
        elif told.reached >= 0 and wanted[told.reached] == arrival.item:
            told.repeats += arrival.taken
        else:
            told.amiss.append(arrival.item)
    return told


def _webhooks_missing(evidence: Evidence) -> Iterator[str | None]:
    for whose, wanted, came in _webhooks(evidence):
        told = _told(wanted, came)
        taken = {arrival.item for arrival in came if arrival.taken} if told.amiss else set()
        missing = [item for item in wanted[told.reached + 1 :] if item not in taken]
        yield f"{whose} was never told of {missing}" if missing else None


def _webhooks_disordered(evidence: Evidence) -> Iterator[str | None]:
    """An event may come again before the next one does; it never comes before an earlier one, nor after a later one."""
    for whose, wanted, came in _webhooks(evidence):
        told = _told(wanted, came)
        yield f"{whose} was told of {told.amiss} out of its turn" if told.amiss else None


def _waiting_webhooks(evidence: Evidence) -> Iterator[str | None]:
    waiting = set(evidence.stored.waiting_webhooks)
    for task_id in evidence.stored.tasks:
        yield f"events of task {task_id} still wait for its webhook" if task_id in waiting else None


def _artifacts(evidence: Evidence) -> Iterator[str | None]:
    for task_id, makes in evidence.makes.items():
        if (task := evidence.stored.tasks.get(task_id)) is None or makes is None:
            continue
        texts = evidence.views[task_id][-1].texts
        wanted = makes if task.state == "COMPLETED" else makes[: len(texts)]
        yield None if texts == wanted else f"the {task.state} task {task_id} has {texts} instead of {wanted}"


def _counters(evidence: Evidence) -> Iterator[str | None]:
    counted, counters = evidence.stored.counted, evidence.stored.counters
    for key in sorted(counted.keys() | counters.keys()):
        there, said = _of(counted, key), _of(counters, key)
        yield None if there == said else f"{'/'.join(key)}: the counter says {said}, there are {there}"


def _of(counts: Counter, key: tuple[str, str, str]) -> int:
    return counts.get(key, 0)


def _slow_cancels(evidence: Evidence) -> Iterator[str | None]:
    for task_id, seconds in evidence.books.cancels:
        yield f"the cancel of task {task_id} took {seconds:.1f} s" if seconds >= CANCEL_SECONDS else None


def _unexpected(evidence: Evidence) -> Iterator[str | None]:
    yield from evidence.books.unexpected


CHECKS: dict[str, Finder] = {
    "acknowledged and lost": _lost,
    "repeated sends that made a second task": _made_twice,
    "ends that were told and are not so": _told_otherwise,
    "tasks that are read otherwise than their log": _read_otherwise,
    "tasks without exactly one end in their log": _ends,
    "tasks neither ended nor waiting for somebody": _unfinished,
    "logs with gaps or repeats": _holes,
    "runs without a record": _unrecorded,
    "streams with gaps or repeats": _stream_gaps,
    "streams that never told of an end": _endless,
    "webhooks with missing events": _webhooks_missing,
    "webhooks out of order": _webhooks_disordered,
    "webhooks that still wait": _waiting_webhooks,
    "artifacts with doubled or missing chunks": _artifacts,
    "counters that are not exact": _counters,
    "cancels that took a second": _slow_cancels,
    "replies that nobody expects": _unexpected,
}
