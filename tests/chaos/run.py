"""One run: load on a host, a fault a round, quiet, the audit."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from tests.chaos.auditor import Audit, audit
from tests.chaos.books import TERMINAL, Books, Stored, item_of
from tests.chaos.faults import Fault
from tests.chaos.jobs import HOLDING, JOBS, Letter, note, note_end, racing, send
from tests.chaos.load import BINDINGS, PATIENCE, Load, Person, World, do, run_all
from tests.chaos.reading import read_arrivals, read_stored
from tests.chaos.site import OWNER, Site
from tests.support.deployment import wait_until

_UNSETTLED = """SELECT count(*) FROM tasks_app_task WHERE state IN (1, 2)"""
_WAITING = """SELECT count(*) FROM tasks_app_pushconfig p JOIN tasks_app_task t ON t.id = p.task_id
    WHERE p.cursor < t.last_seq"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run consists of. `calm` is how many jobs have to be done before and after each fault."""

    seed: str
    faults: Sequence[Fault]
    races: int = 100
    duplicates: int = 1000
    cancels: int = 20
    clients: int = 12
    calm: int = 40
    reads: int = 200


@dataclass(slots=True)
class Result:
    """The audit, and how long each fault took until everything was served again."""

    audit: Audit
    recoveries: list[tuple[str, float]] = field(default_factory=list)
    jobs: int = 0


def run(site: Site, plan: Plan, say: Callable[[str], None]) -> Result:
    """The whole of it; `say` is told of each round."""
    books = Books()
    run_all(site.world, lambda world: _cancel_in_peace(world, books, plan))
    started = time.monotonic()
    run_all(site.world, lambda world: _race(world, books, plan))
    seconds = time.monotonic() - started
    say(f"{plan.races} races of cancel and completion, {plan.duplicates} times the same message: {seconds:.1f} s")
    result = Result(Audit())
    with Load(site.world, books, JOBS, plan.seed, plan.clients) as load:
        for number, fault in enumerate(plan.faults, start=1):
            _wait_for_jobs(load, plan.calm)
            started = time.monotonic()
            fault.strike(site)
            site.wait_serving()
            seconds = time.monotonic() - started
            _wait_for_jobs(load, plan.calm)
            result.recoveries.append((fault.name, seconds))
            say(f"{number:3} of {len(plan.faults)}  {fault.name:45} {seconds:5.1f} s  {load.done:6} jobs done")
        say("Finishing what was begun")
    result.jobs = load.done
    _settle(site)
    run_all(site.world, lambda world: _read(world, books, _stored(site), plan))
    result.audit = audit(books, _stored(site), read_arrivals(site.receiver))
    return result


def _wait_for_jobs(load: Load, number: int) -> None:
    wanted = load.done + number

    def enough() -> bool:
        load.check()
        return load.done >= wanted

    wait_until(enough, f"{number} more jobs of the load", 90.0)


async def _cancel_in_peace(world: World, books: Books, plan: Plan) -> None:
    """How long cancels take that have to reach running code, wherever it is."""
    for number in range(plan.cancels):
        agent = HOLDING[number % len(HOLDING)]
        client = world.client(agent, BINDINGS[number % len(BINDINGS)], number // len(BINDINGS))
        person = Person(world, books, f"{plan.seed}-cancel-{number}")
        task = await send(person, Letter(agent, "hold", None).configured(returnImmediately=True))
        async with asyncio.timeout(PATIENCE), aclosing(client.subscribe(task["id"], None)) as events:
            async for heard, _ in events:
                if heard.item.state == "WORKING":
                    break
        started = time.monotonic()
        note_end(person, await client.cancel(task["id"]))
        books.cancels.append((task["id"], time.monotonic() - started))


async def _race(world: World, books: Books, plan: Plan) -> None:
    """Cancels against completions, and one message that many send at once, on all replicas and in all bindings."""

    async def races(number: int) -> None:
        person = Person(world, books, f"{plan.seed}-race-{number}")
        for _ in range(plan.races // 10):
            person.draw()
            await do(person, racing)

    await asyncio.gather(*(races(number) for number in range(10)))
    letter = Letter("steps", "steps 2 300", ("chunk 1\n", "chunk 2\n")).configured(returnImmediately=True)
    places = asyncio.Semaphore(50)

    async def again(number: int) -> None:
        person = Person(world, books, f"{plan.seed}-again-{number}")
        client = world.client(letter.agent, BINDINGS[number % len(BINDINGS)], number // len(BINDINGS))
        async with places:
            note(person, letter, await person.persist("send", lambda: client.send(letter.params)))

    await asyncio.gather(*(again(number) for number in range(plan.duplicates)))


def _settle(site: Site) -> None:
    """Give the host the time that docs/guarantees.md names. What is not done then, the auditor finds."""
    for statement, patience in ((_UNSETTLED, site.bound_seconds), (_WAITING, 60.0)):
        deadline = time.monotonic() + patience
        while site.query(statement)[0][0] and time.monotonic() < deadline:
            time.sleep(0.1)


async def _read(world: World, books: Books, stored: Stored, plan: Plan) -> None:
    """Read some tasks as clients do, in all bindings and at all replicas, and note what they say."""
    dice = random.Random(plan.seed)
    tasks = [task for task in stored.tasks.values() if task.state in TERMINAL]
    for number, task in enumerate(dice.sample(tasks, min(plan.reads, len(tasks)))):
        client = world.client(task.agent, BINDINGS[number % len(BINDINGS)], number // len(BINDINGS))
        books.reads.append((task.id, item_of({"task": await client.get(task.id)})))


def _stored(site: Site) -> Stored:
    with site.connect() as connection:
        return read_stored(connection, OWNER, site.files)
