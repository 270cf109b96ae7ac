"""A host as people run it: real processes on a freshly migrated and seeded database of the suite's PostgreSQL.

A package that needs one has in its conftest.py:

    @pytest.fixture(scope="package")
    def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
        with Deployment(postgres, broker) as deployment:
            yield deployment

and then `deployment.start_web()`, whose `agent_url("echo")` answers when it returns, and `deployment.start_worker()`.
Every deployment has a database and a queue of its own, so several packages run side by side.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc
import psycopg
from django.conf import settings
from grpc_health.v1 import health_pb2, health_pb2_grpc
from psycopg import sql

from a2a_host.management.commands.up import host_services
from a2a_host.services.network import accepts, is_healthy, listen, reserve
from a2a_host.services.processes import Process, Service
from agents.keys import hash_key, shown_part

T = TypeVar("T")

HOST = "127.0.0.1"
PATIENCE = 30.0
"""Seconds that anything here may take on a busy machine."""
QUEUES = 64
"""Databases of the suite's Valkey: the first for tests without a deployment, the last for those of test_external.py."""

_queues = iter(range(1, QUEUES - 1))
_template: str | None = None


def wait_until(condition: Callable[[], T], what: str, patience: float = PATIENCE) -> T:
    """The first truthy value of `condition`. Raises AssertionError naming `what` after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain for {what}"
        time.sleep(0.01)
    return value


class Web:
    """A web process, started as `manage.py up` starts it, on a port that stays its own over restarts."""

    def __init__(self, service: Callable[[Any], Service]) -> None:
        self._listener = listen(HOST, 0)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://{HOST}:{self.port}"
        self._service = service
        self.process = self._start()

    def agent_url(self, slug: str) -> str:
        """Where an agent answers."""
        return f"{self.url}/agents/{slug}"

    def restart(self) -> None:
        """Start again after it was killed or stopped."""
        self.process.kill()
        self.process = self._start()

    def stop(self) -> None:
        """End it in an orderly way."""
        self.process.ask_to_stop()
        if not self.process.wait(8):
            self.process.kill()

    def close(self) -> None:
        """End it and give the port back."""
        self.stop()
        self._listener.close()

    def _start(self) -> Process:
        process = Process(self._service(self._listener))

        def answers() -> bool:
            assert process.exit_code is None, f"the web process did not start: {process.last_words()}"
            return is_healthy(HOST, self.port, timeout=1.0)

        wait_until(answers, "the web process")
        return process


class GrpcServer:
    """A gRPC process, started as `manage.py up` starts it, on a port that stays its own over restarts."""

    def __init__(self, service: Service, certificate: bytes | None) -> None:
        self._holder = reserve(HOST, 0)
        self.port: int = self._holder.getsockname()[1]
        self.address = f"{HOST}:{self.port}"
        self._certificate = certificate
        self._service = replace(service, environment=service.environment | {"GRPC_PORT": str(self.port)})
        self.process = self._start()

    def channel(self, *options: tuple[str, Any]) -> grpc.Channel:
        """A new channel to it."""
        if self._certificate is None:
            return grpc.insecure_channel(self.address, options)
        return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(self._certificate), options)

    def is_serving(self) -> bool:
        """Whether grpc.health.v1 says so."""
        with self.channel() as channel:
            try:
                answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def restart(self) -> None:
        """Start again after it was killed or stopped."""
        self.process.kill()
        self.process = self._start()

    def stop(self) -> None:
        """End it in an orderly way."""
        self.process.ask_to_stop()
        if not self.process.wait(8):
            self.process.kill()

    def close(self) -> None:
        """End it and give the port back."""
        self.stop()
        self._holder.close()

    def _start(self) -> Process:
        process = Process(self._service)

        def serves() -> bool:
            assert process.exit_code is None, f"the gRPC process did not start: {process.last_words()}"
            return accepts(HOST, self.port, timeout=1.0) and self.is_serving()

        wait_until(serves, "the gRPC process")
        return process


class Deployment:
    """One database and one queue, with the processes that were started on them. `api_key` is the seeded one."""

    def __init__(self, postgres: str, broker: str) -> None:
        self.api_key = "a2a_" + "seeded-by-the-suite-" * 2
        self.database_url = _copy_of_template(postgres, self.api_key)
        self.broker_url = f"{broker}?virtual_host={next(_queues)}"
        self._processes: list[Process] = []
        self._webs: list[Web] = []
        self.grpc_servers: list[GrpcServer] = []
        self._connection = psycopg.connect(self.database_url, autocommit=True)

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        servers = [*self._webs, *self.grpc_servers]
        for process in [*self._processes, *(server.process for server in servers)]:
            process.ask_to_stop()
        for server in servers:
            server.close()
        for process in self._processes:
            if not process.wait(8):
                process.kill()

    def start_web(self, **environment: str) -> Web:
        """A web process with more environment variables. It answers when this returns; it ends with the deployment."""
        name = f"web-{secrets.token_hex(3)}"
        web = Web(lambda listener: self._service(host_services(listener)[0], name, environment))
        self._webs.append(web)
        return web

    def start_grpc(self, certificate: bytes | None = None, **environment: str) -> GrpcServer:
        """A gRPC process with more environment variables; it serves when this returns and ends with the deployment.

        `certificate` is the one that the environment names, as PEM.
        """
        with listen(HOST, 0) as listener:
            service = self._service(host_services(listener)[2], f"grpc-{secrets.token_hex(3)}", environment)
        server = GrpcServer(service, certificate)
        self.grpc_servers.append(server)
        return server

    def start_worker(self, **environment: str) -> Process:
        """A Celery worker with beat, ready when this returns."""
        with listen(HOST, 0) as listener:
            service = self._service(host_services(listener)[1], f"worker-{secrets.token_hex(3)}", environment)
        schedule = settings.LAYOUT.beat_schedule
        own = [f"{schedule}-{service.name}" if part == str(schedule) else part for part in service.command]
        process = Process(replace(service, command=own))
        self._processes.append(process)

        def ready() -> bool:
            assert process.exit_code is None, f"the worker did not start: {process.last_words()}"
            return " ready." in service.log.read_text()

        wait_until(ready, "the worker")
        return process

    def run(self, *commands: Sequence[str]) -> list[str]:
        """The output of management commands, each a sequence of words, such as `("agent", "list")`."""
        return _run_commands(self._environment(), commands)

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of one statement on the database, committed at once."""
        cursor = self._connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def add_keys(self, keys: dict[str, str]) -> None:
        """Store API keys, owner by key. Running processes know them a moment later."""
        rows = [(owner, owner, shown_part(key), hash_key(key)) for key, owner in keys.items()]
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO agents_apikey (name, owner, groups, prefix, digest, enabled, created_at)"
                " VALUES (%s, %s, '[]', %s, %s, true, now())",
                rows,
            )

    def _environment(self) -> dict[str, str]:
        return {"DATABASE_URL": self.database_url, "BROKER_URL": self.broker_url}

    def _service(self, service: Service, name: str, environment: dict[str, str]) -> Service:
        return replace(
            service,
            name=name,
            log=service.log.with_name(f"{name}.log"),
            environment=service.environment | self._environment() | environment,
        )


def _copy_of_template(postgres: str, api_key: str) -> str:
    """A new database, migrated and seeded; its URL. The first one is made by commands, later ones copy it."""
    global _template
    with psycopg.connect(postgres, autocommit=True) as connection:
        if _template is None:
            _template = _new_database(connection)
            url = _url_of(postgres, _template)
            _run_commands({"DATABASE_URL": url}, [("migrate",), ("seed", "--api-key", api_key)])
        return _url_of(postgres, _new_database(connection, _template))


def _new_database(connection: psycopg.Connection, template: str = "template1") -> str:
    name = f"live_{secrets.token_hex(4)}"
    connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
    return name


def _url_of(postgres: str, database: str) -> str:
    return urlsplit(postgres)._replace(path=f"/{database}").geturl()


def _run_commands(environment: dict[str, str], commands: Sequence[Sequence[str]]) -> list[str]:
    """Raises AssertionError with the end of standard error when a command fails."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.support.commands", json.dumps(commands)],
        cwd=settings.BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outputs: list[str] = json.loads(done.stdout)
    return outputs
