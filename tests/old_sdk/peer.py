"""The last SDK of 0.3 beside the tests: an environment of its own, and a process that runs its client."""

from __future__ import annotations

import fcntl
import itertools
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.deployment import PATIENCE

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
REQUIREMENTS = HERE / "requirements.txt"
ENVIRONMENT = ROOT / f".venv-a2a-0.3-py{sys.version_info[0]}.{sys.version_info[1]}"


def old_python() -> Path:
    """The Python that has the old SDK; made on first use, which needs the network, and when its pins changed."""
    python, stamp = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed-requirements.txt"
    with REQUIREMENTS.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at a time would install into each other
        wanted = REQUIREMENTS.read_text()
        if not stamp.exists() or stamp.read_text() != wanted:
            _run(sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT))
            pip = (str(python), "-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check")
            _run(*pip, "--no-deps", "--no-compile", "-r", str(REQUIREMENTS))
            stamp.write_text(wanted)
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)} failed: {done.stderr[-2000:]}"


class OldSdkError(Exception):
    """The client raised. `name` is the class of its exception."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


class Running:
    """What one operation gives, as it comes."""

    def __init__(self) -> None:
        self.lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def next(self) -> dict[str, Any] | None:
        """The next result, None at the end. Raises OldSdkError."""
        line = self.lines.get(timeout=PATIENCE)
        if "error" in line:
            raise OldSdkError(line["error"], line["text"])
        event: dict[str, Any] | None = line.get("event")
        return event

    def rest(self) -> list[dict[str, Any]]:
        """All that are left."""
        return list(iter(self.next, None))


class OldSdk:
    """A caller with a key who uses one transport of the old client."""

    def __init__(self, base_url: str, transport: str, key: str) -> None:
        self.key = key
        command = [str(old_python()), str(HERE / "driver.py"), base_url, transport, key]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._numbers = itertools.count()
        self._running: dict[int, Running] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def start(self, op: str, slug: str, *, streaming: bool = False, **args: Any) -> Running:
        """Begin an operation of `driver.py`."""
        number = next(self._numbers)
        running = self._running[number] = Running()
        assert self._process.stdin is not None
        command = {"n": number, "op": op, "slug": slug, "args": args, "streaming": streaming}
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return running

    def call(self, op: str, slug: str, **args: Any) -> dict[str, Any]:
        """Do one that has one result. Raises OldSdkError."""
        (result,) = self.start(op, slug, **args).rest()
        return result

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                said = json.loads(line)
                self._running[said["n"]].lines.put(said)
