"""Two web processes and a worker with short leases, on one database: one is stopped, the others go on.

A lease is a second here, so a process that is silent counts as dead after 1.4 s, and runs have half a second when their
process is told to end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from a2a_host.services.processes import Process
from tests.support.callers import make_client
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.peers import JsonRpcPeer
from tests.support.receiver import Receiver

LEASE = 1.0
AGENTS = [
    ("steps-again", "--simulator", "steps", "--max-retries", "3"),
    ("hold-again", "--simulator", "hold", "--max-retries", "3"),
    ("worker-again", "--simulator", "hold", "--max-retries", "3", "--execution", "worker"),
    ("blocking", "--executor", "tests.recovery.executors.Blocking", "--execution", "worker"),
    ("saboteur", "--executor", "tests.recovery.executors.Saboteur"),
    ("worker-saboteur", "--executor", "tests.recovery.executors.Saboteur", "--execution", "worker"),
]


class Site:
    """The processes, and agents as a client sees them at one of the web processes."""

    def __init__(self, deployment: Deployment, client: httpx.Client, receiver: Receiver) -> None:
        self.deployment = deployment
        self.receiver = receiver
        self._client = client
        self._environment = {
            "LEASE_SECONDS": str(LEASE),
            "SHUTDOWN_GRACE_SECONDS": "0.5",
            "KEEP_ALIVE_SECONDS": "0.5",
            "OUTBOUND_ALLOW": f"127.0.0.1:{receiver.port}",
        }
        with ThreadPoolExecutor(1) as pool:  # A process dies with the thread that started it.
            registered = pool.submit(deployment.run, *(("agent", "register", *agent, "--open") for agent in AGENTS))
            self.first, self.second = self.start_web(), self.start_web()
            self.worker = self.start_worker()
            registered.result()
        for web in (self.first, self.second):
            card = f"{web.agent_url(AGENTS[-1][0])}/.well-known/agent-card.json"
            wait_until(lambda card=card: client.get(card).status_code == 200, "the agents")

    def start_web(self) -> Web:
        """One more web process."""
        return self.deployment.start_web(**self._environment)

    def start_worker(self) -> Process:
        """A worker, ready when this returns."""
        return self.deployment.start_worker(**self._environment)

    def agent(self, slug: str, web: Web) -> JsonRpcPeer:
        """An agent at a web process, called with a key."""
        headers = {"a2a-version": "1.0", "authorization": f"Bearer {self.deployment.api_key}"}
        return JsonRpcPeer(self._client, web.port, slug, headers)

    def task(self, task_id: str, columns: str) -> tuple[Any, ...]:
        """Columns of a task's row."""
        (row,) = self.deployment.query(f"SELECT {columns} FROM tasks_app_task WHERE id = %s", [task_id])
        return row

    def log(self, task_id: str) -> list[tuple[Any, ...]]:
        """A task's log: (seq, attempt, body)."""
        statement = "SELECT seq, attempt, body FROM tasks_app_event WHERE task_id = %s ORDER BY seq"
        return self.deployment.query(statement, [task_id])

    def origin(self, process: Process) -> str:
        """The name of a process in the database, once it is heard."""
        find = "SELECT origin FROM tasks_app_process WHERE origin LIKE %s"

        def found() -> str:
            rows = self.deployment.query(find, [f"%-{process.pid}-%"])
            return rows[0][0] if rows else ""

        return wait_until(found, "the process to be heard")

    def runs_of(self, process: Process) -> int:
        """How many runs a process had at its last heartbeat."""
        statement = "SELECT runs FROM tasks_app_process WHERE origin = %s"
        ((runs,),) = self.deployment.query(statement, [self.origin(process)])
        return int(runs)

    @contextmanager
    def frozen(self, web: Web) -> Iterator[None]:
        """Inside the block a web process does nothing at all, and then it goes on as if nothing had been."""
        os.kill(web.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(web.process.pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def site(postgres: str, broker: str) -> Iterator[Site]:
    with Deployment(postgres, broker) as deployment, make_client() as client, Receiver() as receiver:
        yield Site(deployment, client, receiver)
