"""One copy of the host as a person starts it: `manage.py up` on a free port, in a new folder."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings

from a2a_host.services.processes import Service

PATIENCE = 90.0
"""Seconds that a start may take on a busy machine."""


def free_port() -> int:
    """A port that stays free: the kernel gives none below 32768 to connections or to servers that do not mind."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain for {what}"
        time.sleep(0.02)


def processes() -> dict[int, tuple[int, int]]:
    """pid → (pid of the parent, start in clock ticks) of all that run on this machine."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # It has just ended.
            continue
        if fields[0] not in "ZX":
            found[int(path.parent.name)] = (int(fields[1]), int(fields[19]))
    return found


def family(pid: int) -> dict[int, int]:
    """pid → start in clock ticks of a process and all that came from it."""
    running = processes()
    members = {pid: running[pid][1]}
    while True:
        more = {p: born for p, (parent, born) in running.items() if parent in members and p not in members}
        if not more:
            return members
        members |= more


def alive(members: dict[int, int]) -> dict[int, int]:
    """Those of a family that still run."""
    running = processes()
    return {pid: born for pid, born in members.items() if running.get(pid, (0, 0))[1] == born}


class Copy:
    """`manage.py up`, or another command that does the same, with nothing set but what is said here."""

    def __init__(self, data_dir: Path, command: list[str] | None = None, **environment: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.grpc_port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        ours = ("SECRET_KEY", "ENCRYPTION_KEYS", "DJANGO_SETTINGS_MODULE", "DATA_DIR")
        clean = {name: value for name, value in os.environ.items() if name not in ours}
        self.environment = clean | {"DATA_DIR": str(data_dir), "PORT": str(self.port)}
        self.environment |= {"GRPC_PORT": str(self.grpc_port)} | environment
        self._output = data_dir.with_name(f"{data_dir.name}.out")
        self._command = command or [sys.executable, "manage.py", "up"]
        self.start()

    def start(self) -> None:
        # Its parent is killed when the suite is interrupted, and ends nothing itself.
        service = Service("up", self._command, self._output, death_signal=signal.SIGTERM)
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                service.launched, cwd=settings.BASE_DIR, env=self.environment, stdout=output, stderr=output
            )

    @property
    def lines(self) -> list[str]:
        """What it has printed so far."""
        return self._output.read_text().splitlines()

    @property
    def credentials(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.data_dir / "credentials.json").read_text())
        return loaded

    def wait_ready(self) -> Copy:
        def ready() -> bool:
            assert self.process.poll() is None, [*self.lines, f"exit code {self.process.returncode}"]
            return bool(self.lines) and self.lines[-1].startswith("curl ")

        wait_until(ready, "the last line")
        return self

    def wait_end(self, patience: float = PATIENCE) -> int:
        """The exit code."""
        return self.process.wait(patience)

    def manage(self, *arguments: str) -> str:
        """What a management command prints in another shell with the same DATA_DIR."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=settings.BASE_DIR,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def pids(self) -> dict[str, int]:
        """Name → pid of its services."""
        return {trace["name"]: trace["pid"] for trace in json.loads((self.data_dir / "processes.json").read_text())}

    def close(self) -> None:
        """End it if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(15)
