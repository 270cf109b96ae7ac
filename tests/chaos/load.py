"""Clients who use the host in every way at once, and write down what they are told.

Each client does one job after the other. A job that meets a dead or deaf host goes on at another replica with the same
messageId, as the documentation says, until it has its answer; only then is it done. The jobs are in `jobs.py`.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
import httpx

from tests.chaos.books import Books
from tests.chaos.clients import (
    SECONDS,
    Away,
    Broken,
    Client,
    GrpcClient,
    JsonRpcClient,
    Refused,
    RestClient,
    WebSocketClient,
)

T = TypeVar("T")

PATIENCE = 90.0
"""Seconds after which a client no longer believes in an answer: that is a finding."""
_PAUSE = 0.2


class World:
    """Where clients find the host: web replicas and the gRPC server, and the receiver of their webhooks."""

    def __init__(self, webs: Sequence[str], grpc_address: str, key: str, hook_url: str) -> None:
        self.webs = list(webs)
        self.hook_url = hook_url
        self._headers = {"a2a-version": "1.0", "authorization": f"Bearer {key}"}
        limits = httpx.Limits(max_connections=500, max_keepalive_connections=100)
        self._http = httpx.AsyncClient(trust_env=False, verify=False, timeout=2 * SECONDS, limits=limits)
        backoff = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]
        self._channel = grpc.aio.insecure_channel(grpc_address, backoff)

    async def aclose(self) -> None:
        """Hang up."""
        await self._http.aclose()
        await self._channel.close()

    def client(self, agent: str, binding: str, replica: int) -> Client:
        """An agent as somebody sees it through a binding and one of the replicas. gRPC has one."""
        if binding == "grpc":
            return GrpcClient(self._channel, agent, self._headers)
        url = f"{self.webs[replica % len(self.webs)]}/agents/{agent}"
        if binding == "websocket":
            return WebSocketClient(url, self._headers)
        kind = JsonRpcClient if binding == "jsonrpc" else RestClient
        return kind(self._http, url, self._headers)


BINDINGS = ("jsonrpc", "rest", "grpc", "websocket")


class Person:
    """One client: its own dice, its binding and replica of the moment, and the books that all share."""

    def __init__(self, world: World, books: Books, seed: str) -> None:
        self.world = world
        self.books = books
        self.dice = random.Random(seed)
        self.binding = ""
        self._replica = 0
        self.draw()

    def draw(self) -> None:
        """Another binding and replica, for the next job."""
        self.binding = self.dice.choice(BINDINGS)
        self._replica = self.dice.randrange(100)

    def at(self, agent: str) -> Client:
        """The agent, where this client is now."""
        return self.world.client(agent, self.binding, self._replica)

    def elsewhere(self, agent: str, replica: int) -> Client:
        """The agent at a replica of choice, in the HTTP binding that is not this client's."""
        return self.world.client(agent, "rest" if self.binding == "jsonrpc" else "jsonrpc", replica)

    def move(self) -> None:
        """To another replica."""
        self._replica += 1

    async def persist(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call that is safe to repeat, however often it takes. Raises Refused, or TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await call()
                except (Broken, Away):
                    self.move()
                    await asyncio.sleep(_PAUSE)


Job = Callable[[Person], Awaitable[None]]


class Load:
    """Clients on an event loop of their own, for as long as the block runs; then they finish what they began."""

    def __init__(self, world: Callable[[], World], books: Books, jobs: Sequence[Job], seed: str, clients: int) -> None:
        self._make_world = world
        self._books = books
        self._jobs = jobs
        self._seed = seed
        self._clients = clients
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="load")
        self._failure: BaseException | None = None
        self.done = 0

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raises what ended the load early: a mistake of the load itself."""
        if self._failure is not None:
            raise self._failure

    async def _main(self) -> None:
        world = self._make_world()
        try:
            await asyncio.gather(*(self._live(world, number) for number in range(self._clients)))
        except BaseException as error:
            self._failure = error
        finally:
            await world.aclose()

    async def _live(self, world: World, number: int) -> None:
        person = Person(world, self._books, f"{self._seed}-{number}")
        while not self._stopping.is_set():
            person.draw()
            job = person.dice.choice(self._jobs)
            await do(person, job)
            self.done += 1
            await asyncio.sleep(person.dice.uniform(0, 0.1))


async def do(person: Person, job: Job) -> None:
    """One job. A refusal that it does not expect, and no answer at all, are findings."""
    name = getattr(job, "__name__", "job")
    try:
        await job(person)
    except Refused as refusal:
        person.books.unexpected.append(f"{name} over {person.binding}: {refusal}")
    except TimeoutError:
        person.books.unexpected.append(f"{name} over {person.binding}: no answer in {PATIENCE:.0f} s")


def run_all(make_world: Callable[[], World], work: Callable[[World], Awaitable[Any]]) -> Any:
    """Do something with a world of its own, and return what it returns."""

    async def main() -> Any:
        world = make_world()
        try:
            return await work(world)
        finally:
            await world.aclose()

    return asyncio.run(main())
