"""Clients as they should be: whatever breaks, they come back with what they know, and notice gaps and repetitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Event as Flag
from typing import Any, Self

from tests.cases.reading import CHUNKS, TERMINAL, assemble, state, texts
from tests.proxy.conftest import Site
from tests.support.deployment import wait_until
from tests.support.events import Event
from tests.support.peers import Peer, message
from tests.support.refusals import Refused

BINDINGS = ("jsonrpc", "rest")
_PAUSE_SECONDS = 0.1  # between two jobs of a client: processes have to start beside the load


@dataclass
class Books:
    """What clients were told: ids of tasks by how they ended, how often a client had to come back, and complaints."""

    ended: dict[str, str] = field(default_factory=dict)
    resumed: int = 0
    sent_again: int = 0
    read: int = 0
    complaints: list[str] = field(default_factory=list)


class Load:
    """Clients in threads for as long as the block runs: streams of both kinds of agents, sends that wait, follow-ups,
    and readers. What is open at the end of the block is seen to its end."""

    def __init__(self, site: Site) -> None:
        self.books = Books()
        self._site = site
        self._stop = Flag()
        jobs = [*[self._stream] * 6, self._send, self._send, self._talk, self._read]
        self._pool = ThreadPoolExecutor(len(jobs))
        self._jobs = jobs
        self._threads: list[Future[None]] = []

    def __enter__(self) -> Self:
        self._threads = [self._pool.submit(self._repeat, job, n) for n, job in enumerate(self._jobs)]
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for thread in self._threads:
            thread.result()

    def wait_for_more(self, number: int) -> None:
        """Return when so many more tasks have ended, and the reader has read as often."""
        wanted, reads = len(self.books.ended) + number, self.books.read + number

        def enough() -> bool:
            for thread in self._threads:
                if thread.done():
                    thread.result()
            return len(self.books.ended) >= wanted and self.books.read >= reads

        wait_until(enough, f"{number} more tasks")

    def _repeat(self, job: Callable[[int], None], number: int) -> None:
        for turn in itertools.count(number):
            job(turn)
            if self._stop.wait(_PAUSE_SECONDS):
                return

    def _stream(self, turn: int) -> None:
        """One message, streamed; half of the clients come back with the message, half with the task."""
        slug, chunks, pause = (("steps", 10, 30), ("steps-worker", 30, 100))[turn % 2]
        peer = self._site.at(slug, BINDINGS[turn // 2 % 2])
        given = {"message": message(f"steps {chunks} {pause}")}
        heard = self._listen(partial(peer.stream, given))
        while not heard or heard[-1].state not in TERMINAL:
            self.books.resumed += 1
            again = peer.with_headers(last_event_id=str(heard[-1].id)) if heard else peer
            if heard and turn % 4 < 2:
                heard += self._subscribed(again, heard)
            else:
                heard += self._continued(heard, self._listen(partial(again.stream, given)))
        self._check(heard, chunks)

    def _subscribed(self, peer: Peer, heard: list[Event]) -> list[Event]:
        """What a subscription brings. A task that has ended cannot be subscribed to: it is read instead."""
        task = heard[0].response["task"]["id"]
        try:
            return self._continued(heard, self._listen(partial(peer.subscribe, task)))
        except Refused as refusal:
            if refusal.reason != "UNSUPPORTED_OPERATION":
                raise
            return [Event(heard[-1].id, {"task": peer.get(task)}, b"")]

    def _continued(self, heard: list[Event], more: list[Event]) -> list[Event]:
        """What is new in a stream that was resumed, whose Task says nothing but what was heard before."""
        if heard and more and (more[0].id, assemble(more[:1])) != (heard[-1].id, assemble(heard)):
            self.books.complaints.append(f"{more[0]} does not continue {heard[-1]}")
        return more[1:] if heard else more

    def _listen(self, open_stream: Callable[[], Any]) -> list[Event]:
        """All that a stream tells until it ends; nothing if the host just stops."""
        try:
            with open_stream() as stream:
                events: list[Event] = stream.rest()
                return events
        except Refused as refusal:
            if refusal.reason != "UNAVAILABLE":
                raise
            return []

    def _check(self, heard: list[Event], number: int) -> None:
        """`number` is that of the chunks of a whole task."""
        task = heard[0].response["task"]["id"]
        ids = [event.id for event in heard if event.kind != "task"]
        last = heard[-1].state or ""
        self.books.ended[task] = last
        chunks = assemble(heard)
        if ids != list(range(heard[0].id + 1, heard[0].id + 1 + len(ids))):
            self.books.complaints.append(f"{task}: events {ids}")
        if chunks != CHUNKS[: len(chunks)] or (last == "COMPLETED" and len(chunks) != number):
            self.books.complaints.append(f"{task}: {last} with {chunks}")

    def _send(self, turn: int) -> None:
        """One message, sent until its task is shown settled."""
        slug = ("echo", "worker-echo", "steps", "steps-worker")[turn % 4]
        task = self._insist(self._site.at(slug, BINDINGS[turn // 4 % 2]), {"message": message("steps 3 20")})
        self.books.ended[task["id"]] = state(task)

    def _talk(self, turn: int) -> None:
        """Two turns: a question comes back, and its answer is sent."""
        ask = self._site.at("ask", BINDINGS[turn % 2])
        asked = self._insist(ask, {"message": message("hi")})
        if state(asked) == "INPUT_REQUIRED":
            answered = self._insist(ask, {"message": message("the answer", taskId=asked["id"])})
            if answered["id"] != asked["id"] or texts(answered["artifacts"]) != [["the answer"]]:
                self.books.complaints.append(f"{asked['id']} was answered with {answered}")
            asked = answered
        self.books.ended[asked["id"]] = state(asked)

    def _insist(self, peer: Peer, given: dict[str, Any]) -> dict[str, Any]:
        while True:
            try:
                task: dict[str, Any] = peer.send(given)["task"]
                return task
            except Refused as refusal:
                if refusal.reason != "UNAVAILABLE":
                    raise
                self.books.sent_again += 1

    def _read(self, turn: int) -> None:
        """Reading never fails, whatever stops."""
        peer = self._site.at("steps", BINDINGS[turn % 2])
        for task in peer.list(pageSize=3)["tasks"]:
            peer.get(task["id"])
        self.books.read += 1
