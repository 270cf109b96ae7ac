"""A whole host as people start it, in front of tests that kill parts of it, and the books that they keep.

`manage.py up` supervises PostgreSQL (fsync on), the web process and the worker; the broker is the test's own, so that
it can be away for as long as a test wants.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from a2a_host.services.accounts import service_account
from a2a_host.services.layout import Layout
from a2a_host.services.network import is_healthy
from a2a_host.services.processes import Process
from a2a_host.services.valkey import valkey_service, wait_for_valkey
from protocol.states import TaskState
from tests.services.copies import Copy
from tests.support.callers import make_client
from tests.support.deployment import wait_until
from tests.support.peers import JsonRpcPeer

BOUND = 15.0
"""Seconds after which a task whose process died is FAILED (docs/architecture.md)."""

_STATES = "SELECT id, state FROM tasks_app_task WHERE id = ANY(%s)"
_BOOKS = """SELECT t.id, count(e.seq) FILTER (WHERE e.kind = 1 AND e.body ~ %s),
    count(e.seq) = t.last_seq AND coalesce(max(e.seq), 0) = t.last_seq
    FROM tasks_app_task t LEFT JOIN tasks_app_event e ON e.task_id = t.id WHERE t.id = ANY(%s) GROUP BY t.id"""
_ENDING = '^{"state":"TASK_STATE_(COMPLETED|FAILED|CANCELED|REJECTED)"'


class Broker:
    """A Valkey that is started and stopped by hand. It keeps nothing when it stops."""

    def __init__(self, folder: Path) -> None:
        self._layout = Layout(folder)
        self.url = self._layout.broker_url
        self._process = self._start()

    def stop(self) -> None:
        """End it; returns when it is gone."""
        self._process.ask_to_stop()
        if not self._process.wait(5):
            self._process.kill()

    def start(self) -> None:
        """Start it again, empty."""
        self._process = self._start()

    def _start(self) -> Process:
        process = Process(valkey_service(self._layout, service_account(self._layout.postgres_data)))
        wait_for_valkey(self._layout, process)
        return process


class Host:
    """The running copy, its agents as a client sees them, and its processes as targets."""

    def __init__(self, folder: Path) -> None:
        self.broker = Broker(folder / "broker")
        self.copy = Copy(folder / "host", BROKER_URL=self.broker.url, OUTBOUND_ALLOW="127.0.0.1")
        self.client = make_client()
        self._database = Layout(folder / "host").database_url

    def close(self) -> None:
        """End everything."""
        self.client.close()
        self.copy.close()
        self.broker.stop()

    def agent(self, slug: str) -> JsonRpcPeer:
        """An agent, called with the key of `admin`."""
        headers = {"a2a-version": "1.0", "authorization": f"Bearer {self.copy.credentials['api_key']}"}
        return JsonRpcPeer(self.client, self.copy.port, slug, headers)

    def connect(self) -> psycopg.Connection:
        """A new connection to the database, in autocommit mode."""
        return psycopg.connect(self._database, autocommit=True)

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of one statement, over a connection of its own: the server may have been another one before."""
        with self.connect() as connection:
            return connection.execute(statement.encode(), parameters).fetchall()

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal, -9 unless said otherwise, to a supervised process; returns its pid."""
        pid = self.copy.pids()[name]
        os.kill(pid, number)
        return pid

    def wait_for_another(self, name: str, pid: int) -> None:
        """Return when the supervisor has started a process again."""
        wait_until(lambda: self.copy.pids().get(name, pid) != pid, f"another {name}")

    def wait_healthy(self) -> None:
        """Return when the web process answers."""
        wait_until(lambda: is_healthy("127.0.0.1", self.copy.port, timeout=1), "the web process")

    def wait_for_worker(self) -> None:
        """Return when the worker completes what is sent now."""
        assert self.agent("steps-worker").say("steps 1 0")["status"]["state"] == "TASK_STATE_COMPLETED"

    def states(self, ids: Sequence[str]) -> dict[str, TaskState]:
        """Of those tasks that are in the database."""
        return {task_id: TaskState.from_number(number) for task_id, number in self.query(_STATES, [list(ids)])}

    def wait_for_ends(self, ids: Sequence[str], patience: float) -> dict[str, TaskState]:
        """The states of tasks once all that are in the database have ended."""

        def ended() -> dict[str, TaskState] | None:
            states = self.states(ids)
            return states if all(state.terminal for state in states.values()) else None

        return wait_until(ended, "the ends of all tasks", patience) or {}

    def check_books(self, ids: Sequence[str]) -> None:
        """Every task is there, with exactly one terminal event and a log without gaps."""
        found = {task_id: tuple(book) for task_id, *book in self.query(_BOOKS, [_ENDING, list(ids)])}
        assert set(ids) - set(found) == set()
        assert {task_id: book for task_id, book in found.items() if book != (1, True)} == {}
