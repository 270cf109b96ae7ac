"""The host under test: `manage.py up` with everything embedded, a second web process on the same database, a receiver.

The supervisor of `manage.py up` starts again what dies; the second web process is looked after here, in the same way.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from a2a_host import web
from a2a_host.services.layout import Layout
from a2a_host.services.network import accepts, is_healthy, listen
from a2a_host.services.processes import Process, Service
from tests.chaos.load import World
from tests.services.copies import Copy, alive, family, processes
from tests.support.callers import make_client
from tests.support.deployment import HOST, wait_until
from tests.support.peers import JsonRpcPeer
from tests.support.receiver import Receiver

SECOND_WEB = "second web"
OWNER = "admin"
REPEATED = (
    ("steps-again", "--simulator", "steps"),
    ("steps-worker-again", "--simulator", "steps", "--execution", "worker"),
    ("hold-again", "--simulator", "hold"),
)
"""Agents whose runs are repeated when they are lost."""


class Site:
    """Started when made; `close` ends everything and removes its folder, unless `keep` is set meanwhile."""

    def __init__(self, **environment: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="a2a-chaos-"))
        self.folder.chmod(0o711)
        self.keep = False
        self.receiver = Receiver()
        self.client = make_client()
        self._layout = Layout(self.folder / "host")
        self._listener = listen(HOST, 0)
        self._second_port: int = self._listener.getsockname()[1]
        self._second: Process | None = None
        self.receiver.__enter__()
        self.copy = Copy(
            self.folder / "host", None, **{"OUTBOUND_ALLOW": HOST, "STORED_PART_BYTES": "1024"} | environment
        )
        try:
            self.copy.wait_ready()
            self.start_second_web()
            self._register_agents()
            self.wait_serving()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes and forget them."""
        if self._second is not None:
            self._second.kill()
        self.copy.close()
        self.receiver.__exit__()
        self.client.close()
        self._listener.close()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def files(self) -> Path:
        """The folder of big parts."""
        return self._layout.parts

    @property
    def lease_seconds(self) -> float:
        """How long a run may be silent before its process counts as dead."""
        return float(self.copy.environment.get("LEASE_SECONDS", settings.LEASE_SECONDS))

    @property
    def bound_seconds(self) -> float:
        """Within which every task of a process that died has ended or runs again, and some for a busy machine."""
        return 2 * self.lease_seconds + 15.0

    @property
    def urls(self) -> list[str]:
        """Of the web replicas."""
        return [self.copy.url, f"http://{HOST}:{self._second_port}"]

    def world(self) -> World:
        """The host as clients see it; for the event loop that runs."""
        key: str = self.copy.credentials["api_key"]
        return World(self.urls, f"{HOST}:{self.copy.grpc_port}", key, self.receiver.url(""))

    def start_second_web(self) -> None:
        """Start the second web process, again if it has ended."""
        if self._second is not None:
            self._second.kill()
        descriptor = self._listener.fileno()
        # The keys are those in the host's folder, whatever this process was given.
        environment = {"SECRET_KEY": "", "ENCRYPTION_KEYS": ""} | self.copy.environment
        environment |= {web.LISTENER: str(descriptor), "PYTHONUNBUFFERED": "1"}
        self._second = Process(
            Service(
                name=SECOND_WEB,
                command=[sys.executable, "-m", web.__name__],
                log=self._layout.logs / "second-web.log",
                environment=environment,
                pass_fds=(descriptor,),
                folder=settings.BASE_DIR,
            )
        )

    def kill_everything(self) -> None:
        """The supervisor with all that it looks after, and the second web process."""
        everybody = family(self.copy.process.pid)
        self.copy.process.kill()
        self.copy.process.wait()
        if self._second is not None:
            self._second.kill()
        wait_until(lambda: not alive(everybody), "the end of all processes")

    def stop_everything(self) -> None:
        """As by Ctrl-C, the second web process at the same time."""
        if self._second is not None:
            self._second.ask_to_stop()
        self.copy.close()
        if self._second is not None:
            wait_until(lambda: self._second is None or self._second.exit_code is not None, "the end of the second web")

    def start_everything(self) -> None:
        """Start all of it again; returns when it is ready."""
        self.copy.start()
        self.copy.wait_ready()
        self.start_second_web()

    def pid(self, name: str) -> int:
        """Of a process by its name in the logs; beat is the child of the worker."""
        if name == SECOND_WEB:
            assert self._second is not None
            return self._second.pid
        if name == "beat":
            return self._beat()
        return self.copy.pids()[name]

    def send(self, name: str, number: signal.Signals) -> int:
        """Send a signal to a process; returns its pid."""
        pid = self.pid(name)
        os.kill(pid, number)
        return pid

    def wait_for_end(self, pid: int) -> None:
        """Return when a process that was killed is gone."""
        wait_until(lambda: not processes().get(pid), f"the end of process {pid}")

    def wait_for_another(self, name: str, pid: int) -> None:
        """Return when a process that was ended has been started again."""
        if name == SECOND_WEB:
            assert self._second is not None
            wait_until(lambda: self._second is None or self._second.exit_code is not None, f"the end of {name}")
            self.start_second_web()
        else:
            wait_until(lambda: self.pid(name) != pid, f"another {name}", 60.0)

    def wait_serving(self) -> None:
        """Return when both replicas answer, gRPC does, and the worker completes what is sent now."""
        for port in (self.copy.port, self._second_port):
            wait_until(partial(is_healthy, HOST, port, timeout=1), f"the web process at {port}", 60.0)
            wait_until(partial(self._completes, port, "steps-again"), f"a task at {port}", 60.0)
        wait_until(partial(accepts, HOST, self.copy.grpc_port, timeout=1), "the gRPC process", 60.0)
        wait_until(partial(self._completes, self.copy.port, "steps-worker"), "a task in the worker", 60.0)

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of one statement, over a connection of its own."""
        with self.connect() as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def connect(self) -> psycopg.Connection:
        """A new connection to the database, in autocommit mode."""
        return psycopg.connect(self._layout.database_url, autocommit=True)

    def _register_agents(self) -> None:
        commands = [("agent", "register", *agent, "--max-retries", "5") for agent in REPEATED]
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.support.commands", json.dumps(commands)],
            cwd=settings.BASE_DIR,
            env=self.copy.environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def _beat(self) -> int:
        def child() -> int:
            worker = self.pid("worker")
            members = family(worker) if worker in processes() else {}
            return next((pid for pid in members if pid != worker), 0)

        return wait_until(child, "beat", 60.0)

    def _completes(self, port: int, slug: str) -> bool:
        headers = {"a2a-version": "1.0", "authorization": f"Bearer {self.copy.credentials['api_key']}"}
        try:
            task = JsonRpcPeer(self.client, port, slug, headers).say("steps 1 0")
        except Exception:
            return False
        return bool(task["status"]["state"] == "TASK_STATE_COMPLETED")
