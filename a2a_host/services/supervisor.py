"""Keeps services running: starts them, starts those again that die, and ends them all.

Plain and synchronous on purpose. It waits for SIGCHLD, so a death is seen at once, and the signals that ask for the end
raise StopRequested wherever the process is.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from a2a_host.services.claim import remember
from a2a_host.services.errors import ServiceError
from a2a_host.services.layout import Layout
from a2a_host.services.processes import Process, Service, trim_log

_FAST = 10.0  # seconds: who dies sooner than that after a start has died fast
_FAST_DEATHS = 5
_PAUSE = 0.5  # seconds after the first of them, twice as long after each further one
_TICK = 60.0  # seconds between looks at the size of the logs


class StopRequested(BaseException):
    """Ctrl-C, SIGTERM, or the terminal went away."""


@dataclass(slots=True)
class _Watched:
    """A service of the supervisor. `again_at` is when to start it again (monotonic seconds) while it is down."""

    process: Process
    fast_deaths: int = 0
    again_at: float | None = None

    def note_death(self) -> None:
        """Decide when it starts again: at once, then after 0.5, 1, 2, 4 s. Raises ServiceError when it is hopeless."""
        now = time.monotonic()
        self.fast_deaths = self.fast_deaths + 1 if now - self.process.started < _FAST else 0
        if self.fast_deaths >= _FAST_DEATHS:
            process = self.process
            raise ServiceError(
                f"{process.name} died {_FAST_DEATHS} times in a row: {process.last_words()} (see {process.service.log})"
            )
        self.again_at = now + (_PAUSE * 2 ** (self.fast_deaths - 1) if self.fast_deaths else 0)


class Supervisor:
    """The services of one copy, in the order of their start; they end in the opposite order.

    `grace` is how many seconds the host's processes give their runs when they are to end. `stop_requested` says that
    somebody has asked for the end.
    """

    def __init__(self, layout: Layout, say: Callable[[str], None], grace: float = 3.0) -> None:
        self._layout = layout
        self._grace = grace
        self._say = say
        self._watched: dict[str, _Watched] = {}
        self.stop_requested = False

    def listen(self) -> None:
        """Take the signals. SIGCHLD stays pending until it is waited for; a second request to stop does not wait."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._request_stop)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        self._heed_last_signal()
        self.stop_requested = True
        raise StopRequested

    def _heed_request(self) -> None:
        """The request again: where the signal came, Python may have had to drop it, as in a finalizer."""
        if self.stop_requested:
            raise StopRequested

    def _heed_last_signal(self) -> None:
        """From now on a signal ends this process at once, and then the kernel ends the children."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: os._exit(1))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def start(self, service: Service) -> Process:
        """Raises StopRequested."""
        self._heed_request()
        process = Process(service)
        self._watched[service.name] = _Watched(process)
        remember(self._layout, [watched.process for watched in self._watched.values()])
        return process

    def run(self) -> None:
        """Keep everything running. Ends by StopRequested, or by ServiceError when a service cannot be kept up."""
        while True:
            self._heed_request()
            self._wait()
            for watched in self._watched.values():
                self._look_after(watched)
                trim_log(watched.process.service.log)

    def check(self, timeout: float) -> None:
        """For the time of the start: wait `timeout` seconds. Raises ServiceError as soon as a service has ended."""
        self._heed_request()
        signal.sigtimedwait([signal.SIGCHLD], timeout)
        for watched in self._watched.values():
            process = watched.process
            if process.exit_code is not None:
                raise ServiceError(f"{process.name} did not start: {process.last_words()} (see {process.service.log})")

    def _wait(self) -> None:
        due = [watched.again_at for watched in self._watched.values() if watched.again_at is not None]
        timeout = max(0.0, min(due) - time.monotonic()) if due else _TICK
        signal.sigtimedwait([signal.SIGCHLD], timeout)

    def _look_after(self, watched: _Watched) -> None:
        process = watched.process
        if watched.again_at is None and process.exit_code is not None:
            watched.note_death()
            self._say(f"{process.name} ended ({process.ending}), it is started again")
        if watched.again_at is not None and watched.again_at <= time.monotonic():
            watched.process = Process(process.service)
            watched.again_at = None
            remember(self._layout, [w.process for w in self._watched.values()])

    def stop(self, names: list[str], patience: float) -> None:
        """Ask the named services to end, together; who has not ended after `patience` seconds is made to."""
        processes = [self._watched[name].process for name in names if name in self._watched]
        for process in processes:
            process.ask_to_stop()
        deadline = time.monotonic() + patience
        for process in processes:
            process.wait(deadline - time.monotonic())
            process.kill()
            del self._watched[process.name]

    def stop_all(self) -> None:
        """End all within 6.5 s beyond the grace: first those that use the database and the broker, then these."""
        self._heed_last_signal()
        below: list[str] = [name for name in ("valkey", "postgres") if name in self._watched]
        self.stop([name for name in self._watched if name not in below], self._grace + 3.0)
        self.stop(below, 3.5)
        self._layout.processes.unlink(missing_ok=True)
