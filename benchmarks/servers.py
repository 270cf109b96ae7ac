"""Everything that a run starts and ends: PostgreSQL, Valkey, the reference, the host. All on loopback."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from a2a_host.services.accounts import service_account
from a2a_host.services.claim import claim, end_leftovers, remember
from a2a_host.services.layout import Layout
from a2a_host.services.network import accepts, listen
from a2a_host.services.postgres import postgres_service, wait_for_postgres
from a2a_host.services.processes import Process, Service
from a2a_host.services.valkey import valkey_service, wait_for_valkey
from benchmarks.databases import (
    EXECUTORS,
    HOST_DATABASE,
    REFERENCE_DATABASE,
    REFERENCE_MANY_DATABASE,
    ROOT,
    Databases,
)

_READY = 90.0  # seconds for a server to answer
_STOPPING = 15.0
_REQUIREMENTS = Path(__file__).with_name("reference-requirements.txt")
_MAKE_TABLE = "import asyncio; from benchmarks.reference import store; asyncio.run(store.initialize())"


class Servers:
    """Starts what a run needs below `folder`, and ends exactly that. Start it from the main thread."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._layout = Layout(folder / "services")
        self._host_layout = Layout(folder / "host")
        self._reference_python = folder / "reference" / "bin" / "python"
        self._running: list[Process] = []
        self._lock: IO[str] | None = None
        self.databases = Databases(self._layout, say)
        self.postgres_pid = 0
        self.reference_pid = 0
        self.reference_url = ""
        self.reference_many_url = ""
        self.host_url = ""
        self.host_grpc = ""
        self.receiver = listen("127.0.0.1", 0)  # for webhooks of the host

    def start(self) -> None:
        """Start all, seeded and answering. Raises ServiceError or RuntimeError, each with one line that says why."""
        self._lock = claim(self._layout)
        end_leftovers(self._layout)
        self._install_reference()
        self._start_services()
        self.databases.prepare_host()
        self.databases.prepare_reference(self._make_reference_table)
        self.reference_url, self.reference_pid = self._start_reference("reference", REFERENCE_DATABASE)
        self.reference_many_url, _ = self._start_reference("reference-many", REFERENCE_MANY_DATABASE)
        self._start_host()

    def stop(self) -> None:
        """End what was started, the newest first."""
        for process in reversed(self._running):
            process.ask_to_stop()
            process.wait(_STOPPING)
            process.kill()
        self._running.clear()
        self.receiver.close()
        if self._lock is not None:  # Without it the folder is another run's.
            self._layout.processes.unlink(missing_ok=True)
            self._lock.close()

    def host_pid(self, name: str) -> int:
        """Pid of the host's `web`, `worker` or `grpc` process."""
        traces = json.loads(self._host_layout.processes.read_text())
        return next(int(trace["pid"]) for trace in traces if trace["name"] == name)

    @property
    def api_key(self) -> str:
        """The key that `manage.py up` made."""
        return str(json.loads(self._host_layout.credentials.read_text())["api_key"])

    def reference_versions(self, names: tuple[str, ...]) -> dict[str, str]:
        """Versions of packages in the reference's environment."""
        code = "import sys, json, importlib.metadata as m; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
        shown = subprocess.run(
            [str(self._reference_python), "-c", code, *names], check=True, capture_output=True, text=True
        )
        versions: dict[str, str] = json.loads(shown.stdout)
        return versions

    def _run(self, service: Service) -> Process:
        process = Process(service)
        self._running.append(process)
        remember(self._layout, self._running)
        return process

    def _install_reference(self) -> None:
        """A virtual environment with the official SDK and its database store, made once."""
        stamp = self._folder / "reference" / "installed.txt"
        wanted = _REQUIREMENTS.read_text()
        with suppress(OSError):
            if stamp.read_text() == wanted:
                return
        self._say("Installing the reference into an environment of its own (once)")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self._folder / "reference")], check=True)
        pip = [str(self._reference_python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(_REQUIREMENTS)], check=True)
        stamp.write_text(wanted)

    def _start_services(self) -> None:
        account = service_account(self._layout.postgres_data)
        postgres = self._run(postgres_service(self._layout, account))
        valkey = self._run(valkey_service(self._layout, account))
        wait_for_postgres(self._layout, postgres)
        wait_for_valkey(self._layout, valkey)
        self.postgres_pid = postgres.pid
        if self.databases.settings()["fsync"] != "on":
            raise RuntimeError("fsync is off: what is measured would not be durable")

    def _reference_environment(self, url: str, port: int) -> dict[str, str]:
        dsn = url.replace("postgresql://", "postgresql+asyncpg://")
        return {"REFERENCE_DSN": dsn, "REFERENCE_PORT": str(port), "PYTHONPATH": str(ROOT)}

    def _make_reference_table(self, url: str) -> None:
        subprocess.run(
            [str(self._reference_python), "-c", _MAKE_TABLE],
            env=os.environ | self._reference_environment(url, 0),
            check=True,
        )

    def _start_reference(self, name: str, database: str) -> tuple[str, int]:
        """Its URL and pid."""
        port = _free_port()
        process = self._run(
            Service(
                name=name,
                command=[
                    *(str(self._reference_python), "-m", "uvicorn", "benchmarks.reference:app", "--workers", "1"),
                    *("--host", "127.0.0.1", "--port", str(port), "--loop", "uvloop", "--http", "httptools"),
                    *("--no-access-log", "--log-level", "warning"),
                ],
                log=self._folder / f"{name}.log",
                environment=self._reference_environment(self.databases.url(database), port),
            )
        )
        url = f"http://127.0.0.1:{port}"
        self._wait(process, lambda: _answers(f"{url}/.well-known/agent-card.json"))
        return url, process.pid

    def _start_host(self) -> None:
        """The host as everybody starts it, on the run's own PostgreSQL and Valkey."""
        port, grpc_port = _free_port(), _free_port()
        self.host_url, self.host_grpc = f"http://127.0.0.1:{port}", f"127.0.0.1:{grpc_port}"
        process = self._run(
            Service(
                name="host",
                command=[sys.executable, str(ROOT / "manage.py"), "up"],
                log=self._folder / "host.log",
                environment={
                    "DATA_DIR": str(self._host_layout.data_dir),
                    "DATABASE_URL": self.databases.url(HOST_DATABASE),
                    "BROKER_URL": self._layout.broker_url,
                    "HOST": "127.0.0.1",
                    "PORT": str(port),
                    "GRPC_PORT": str(grpc_port),
                    "AGENTS_DIR": str(EXECUTORS),
                    "OUTBOUND_ALLOW": f"127.0.0.1:{self.receiver.getsockname()[1]}",
                },
            )
        )
        self._wait(process, lambda: _answers(f"{self.host_url}/healthz"))
        self._wait(process, lambda: accepts("127.0.0.1", grpc_port, timeout=1.0))

    def _wait(self, process: Process, is_ready: Callable[[], bool]) -> None:
        """Return when `is_ready`."""
        deadline = time.monotonic() + _READY
        while not is_ready():
            if process.exit_code is not None:
                raise RuntimeError(f"the {process.name} did not start: {process.last_words()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the {process.name} did not answer within {_READY:.0f} s")
            time.sleep(0.05)


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=1)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with listen("127.0.0.1", 0) as listener:
        port: int = listener.getsockname()[1]
    return port
