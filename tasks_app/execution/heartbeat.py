"""The heartbeat of a process: it keeps the leases of its runs, from a thread of its own.

Agent code may block the event loop of its process for longer than a lease; the process lives all the same.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.conf import settings

from tasks_app.execution.execution import Execution
from tasks_app.journal import leases

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = settings.LEASE_SECONDS / 5
BLIND_SECONDS = INTERVAL_SECONDS * 3
"""When a process and the database have not spoken for so long, others may have been unable to say that they live."""
_CONNECT_SECONDS = 3
_SILENCE_MS = int(settings.LEASE_SECONDS * 1000)  # of a database that a network has swallowed


@dataclass(slots=True)
class Pulse:
    """One heartbeat: the runs that it was for, each with its task's version then, and the ids of the tasks that the
    database still had under the attempts of these runs."""

    runs: Sequence[tuple[Execution, int]]
    kept: set[str]


def take_pulse(pulse: Pulse) -> None:
    """Fence the runs whose task has another attempt, or an end, as a heartbeat was told."""
    for execution, version in pulse.runs:
        if execution.record.id not in pulse.kept and execution.record.version == version and execution.lost:
            execution.fence()


class Heartbeat:
    """`runs` gives the runs of the process at any moment, from any thread; `heard` is called with each pulse, in the
    heartbeat's thread. `resumed_at`, in monotonic time, is when the process was last heard again after it was not."""

    def __init__(
        self,
        dsn: str,
        origin: str,
        role: str,
        runs: Callable[[], Sequence[Execution]],
        heard: Callable[[Pulse], Any],
    ) -> None:
        self._dsn = dsn
        self._origin = origin
        self._role = role
        self._runs = runs
        self._heard = heard
        self._stopping = threading.Event()
        self._connection: psycopg.Connection | None = None
        self._begun_at = 0.0
        self._heard_at = math.inf  # Until it begins nobody waits for it.
        self.resumed_at = 0.0
        self._thread = threading.Thread(target=self._beat_forever, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin with a first beat at once."""
        self._begun_at, self._heard_at = time.monotonic(), -math.inf
        self._thread.start()

    def stop(self) -> None:
        """End it: from now on the process counts as gone. Waits for the beat under way, for a moment."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=1)
        else:
            self._disconnect()

    @property
    def unheard(self) -> bool:
        """Whether the database has not taken a beat lately, though it may answer: one that is read-only or full takes
        those of others neither, and their leases are over while they live."""
        return time.monotonic() - self._heard_at > BLIND_SECONDS

    def _beat_forever(self) -> None:
        while True:
            try:
                self._heard(self.beat())
                self._note_the_time()
            except psycopg.Error as error:
                logger.warning("The heartbeat waits for the database: %s", type(error).__name__)
                self._disconnect()
            except Exception:  # Without heartbeats every run of the process would be taken for dead.
                logger.exception("A heartbeat failed; the next one comes")
                self._disconnect()
            if self._stopping.wait(INTERVAL_SECONDS):
                break
        self._leave()

    def _note_the_time(self) -> None:
        now = time.monotonic()
        if now - max(self._begun_at, self._heard_at) > BLIND_SECONDS:
            self.resumed_at = now
        self._heard_at = now

    def beat(self) -> Pulse:
        """Be heard once. Raises psycopg.Error."""
        runs = [(execution, execution.record.version) for execution in self._runs()]
        connection = self._connect()
        leases.be_heard(connection, self._origin, self._role, len(runs))
        held = [(execution.record.id, execution.record.attempt) for execution, _ in runs]
        return Pulse(runs, leases.extend(connection, held) if held else set())

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS, tcp_user_timeout=_SILENCE_MS
            )
        return self._connection

    def _leave(self) -> None:
        try:
            leases.say_goodbye(self._connect(), self._origin)
        except psycopg.Error as error:
            logger.warning("The database did not hear that the process ends: %s", type(error).__name__)
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
