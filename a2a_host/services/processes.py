"""One child process: how it is started, asked to end, and made to end."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from a2a_host.services.accounts import Account
from a2a_host.services.errors import ServiceError

_LAUNCHER = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py"))]
_LOG_LIMIT = 20 * 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Service:
    """What to start. `account` None is this process's own user; `needs` are paths that another user must reach.

    The kernel sends `death_signal` when this process is gone. `stop_signal` asks for an orderly end.
    """

    name: str
    command: list[str]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    account: Account | None = None
    needs: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    folder: Path = Path("/")

    @property
    def launched(self) -> list[str]:
        """The command line of the launcher that becomes the command."""
        options = ["--parent", str(os.getpid()), "--death-signal", str(int(self.death_signal))]
        if self.account is not None:
            options += ["--user", f"{self.account.uid}:{self.account.gid}"]
            options += [option for path in self.needs for option in ("--needs", path)]
        return [*_LAUNCHER, *options, *self.command]


class Process:
    """A service that was started. Start it from the main thread: the kernel watches the thread, not the process."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started = time.monotonic()
        service.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        trim_log(service.log)
        with service.log.open("ab") as log:
            self._log_start = log.tell()
            self._popen = subprocess.Popen(
                service.launched,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=service.folder,
                env=os.environ | service.environment,
                pass_fds=service.pass_fds,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def name(self) -> str:
        return self.service.name

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative is the signal that ended it. What it started ends with it."""
        if self._popen.returncode is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._kill_group()  # Before the pid is given back, so it is no other's.
            self._popen.wait()
        return self._popen.returncode

    @property
    def ending(self) -> str:
        """How it ended, for people."""
        code = self.exit_code or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def ask_to_stop(self) -> None:
        """Send the stop signal to the process itself, if it still runs."""
        if self.exit_code is None:
            os.kill(self.pid, self.service.stop_signal)

    def kill(self) -> None:
        """End it and everything that it started, now."""
        if self.exit_code is None:
            self._kill_group()
            self._popen.wait()

    def wait(self, timeout: float) -> bool:
        """Whether it ended within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.exit_code is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.exit_code is not None

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """The last line that it logged, or how it ended."""
        with self.service.log.open("rb") as file:
            file.seek(max(self._log_start, self.service.log.stat().st_size - 4096))
            lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else self.ending


def wheel_folder(package: str) -> Path:
    """Where a wheel's files are, without importing it: its own Python layer has effects that nobody asked for."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ServiceError(f"the package {package} is missing: pip install -r requirements.txt")
    return Path(spec.submodule_search_locations[0])


def trim_log(log: Path) -> None:
    """Keep a log from growing for ever: past 20 MiB it becomes `<log>.1` and starts again."""
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.with_name(f"{log.name}.1").write_bytes(log.read_bytes())
        os.truncate(log, 0)  # Its writers append, so they go on at the new end.
