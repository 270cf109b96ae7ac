"""Callers who send without a pause and remember what they were told."""

from __future__ import annotations

import itertools
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any, Self

import httpx

from tests.durability.host import Host
from tests.support.deployment import wait_until
from tests.support.peers import envelope, message

WORK = (("steps", "steps 3 20"), ("steps-worker", "steps 2 10"), ("echo", "hello"))
"""Agents in the web process and in the worker, and what they are asked."""

Sent = tuple[str, dict[str, Any]]
"""An agent's slug and the parameters of a send."""


class Load:
    """A few threads that send with returnImmediately for as long as the block runs.

    `acknowledged` are the ids of tasks that a reply named; `unanswered` are sends whose connection broke, `refused`
    those that the host refused as long as its database was away.
    """

    def __init__(self, host: Host, threads: int = 4) -> None:
        self.acknowledged: list[str] = []
        self.unanswered: list[Sent] = []
        self.refused: list[Sent] = []
        self._host = host
        self._stop = Event()
        self._pool = ThreadPoolExecutor(threads)
        self._threads: list[Future[None]] = []
        self._count = threads

    def __enter__(self) -> Self:
        self._threads = [self._pool.submit(self._send_forever, number) for number in range(self._count)]
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for thread in self._threads:
            thread.result()

    def wait_for_more(self, number: int) -> None:
        """Return when so many more sends were acknowledged."""
        wanted = len(self.acknowledged) + number

        def enough() -> bool:
            for thread in self._threads:
                if thread.done():
                    thread.result()
            return len(self.acknowledged) >= wanted

        wait_until(enough, f"{number} more acknowledged sends")

    def _send_forever(self, number: int) -> None:
        for turn in itertools.count(number):
            if self._stop.is_set():
                return
            self._send(new_send(turn))

    def _send(self, sent: Sent) -> None:
        try:
            reply = send(self._host, sent)
        except httpx.TransportError:
            self.unanswered.append(sent)
            return
        if "result" in reply:
            self.acknowledged.append(reply["result"]["task"]["id"])
        else:
            assert reply["error"]["data"][0]["reason"] == "UNAVAILABLE", reply
            self.refused.append(sent)


def new_send(turn: int) -> Sent:
    """A new message for one of the agents, which take turns."""
    slug, text = WORK[turn % len(WORK)]
    return slug, {"message": message(text), "configuration": {"returnImmediately": True}}


def send(host: Host, sent: Sent) -> dict[str, Any]:
    """The JSON-RPC reply to a send. Raises httpx.TransportError."""
    slug, params = sent
    reply: dict[str, Any] = host.agent(slug).post(envelope("SendMessage", params)).json()
    return reply
