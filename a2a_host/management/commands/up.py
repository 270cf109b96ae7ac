"""`manage.py up`: the whole host, from an empty folder to Ready, until it is told to end."""

from __future__ import annotations

import os
import shlex
import socket
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from a2a_host import grpc_server, web
from a2a_host.services.accounts import service_account
from a2a_host.services.claim import claim, end_leftovers
from a2a_host.services.errors import ServiceError
from a2a_host.services.external import check_broker, check_database
from a2a_host.services.files import Credentials, ensure_encryption_key, ensure_secret_key
from a2a_host.services.network import accepts, is_healthy, is_loopback, listen, local_address, reserve
from a2a_host.services.processes import Service
from a2a_host.services.supervisor import StopRequested, Supervisor

_READY = 60.0  # seconds for the web process to answer


class Command(BaseCommand):
    help = "Start everything: PostgreSQL, Valkey (unless DATABASE_URL, BROKER_URL name others), web process and worker."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        supervisor = Supervisor(settings.LAYOUT, self.say, settings.SHUTDOWN_GRACE_SECONDS)
        supervisor.listen()
        try:
            lock = claim(settings.LAYOUT)
        except (ServiceError, OSError) as error:
            sys.exit(f"a2a-host: {error}")
        problem: Exception | None = None
        with lock:
            try:
                self._run(supervisor)
            except StopRequested:
                self.say("Stopping")
            except Exception as error:
                if supervisor.stop_requested:  # Code that the signal came in has made another error of it.
                    self.say("Stopping")
                elif isinstance(error, ServiceError | OSError):
                    problem = error
                else:
                    raise
            finally:
                supervisor.stop_all()
        if problem is not None:
            sys.exit(f"a2a-host: {problem}")

    def say(self, line: str) -> None:
        """Print a line of progress."""
        try:
            print(line, flush=True)
        except OSError:  # The terminal is gone; that is no reason to stop.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115

    def _run(self, supervisor: Supervisor) -> None:
        started = time.monotonic()
        for name in end_leftovers(settings.LAYOUT):
            self.say(f"Ended {name} of an earlier run")
        with listen(settings.HOST, settings.PORT) as listener, _reserved_for_grpc():
            self._start_services(supervisor)
            credentials = self._prepare()
            for service in host_services(listener):
                supervisor.start(service)
            self.say("Starting the host's processes")
            self._wait_until_ready(supervisor)
            self.say(f"Logs are in {_shown(settings.LAYOUT.logs)}. Started in {time.monotonic() - started:.1f} s.")
            self._print_ready(credentials)
            supervisor.run()

    def _start_services(self, supervisor: Supervisor) -> None:
        """PostgreSQL and Valkey, side by side; they are not even imported when others are used."""
        from a2a_host.services.postgres import postgres_service, wait_for_postgres
        from a2a_host.services.valkey import valkey_service, wait_for_valkey

        layout = settings.LAYOUT
        if not settings.EMBEDDED_DATABASE:
            self.say("Using the PostgreSQL of DATABASE_URL")
            check_database(settings.DATABASE_URL)
        if not settings.EMBEDDED_BROKER:
            self.say("Using the broker of BROKER_URL")
            check_broker(settings.BROKER_URL)
        account = service_account(layout.postgres_data)
        if settings.EMBEDDED_BROKER:
            self.say("Starting Valkey")
            valkey = supervisor.start(valkey_service(layout, account))
        if settings.EMBEDDED_DATABASE:
            self.say("Starting PostgreSQL")
            wait_for_postgres(layout, supervisor.start(postgres_service(layout, account)))
        if settings.EMBEDDED_BROKER:
            wait_for_valkey(layout, valkey)

    def _prepare(self) -> Credentials:
        from a2a_host.services.database import prepare_database

        self.say("Preparing the database")
        ensure_secret_key(settings.LAYOUT)
        if not settings.ENCRYPTION_KEYS:
            ensure_encryption_key(settings.LAYOUT)
        return prepare_database()

    def _wait_until_ready(self, supervisor: Supervisor) -> None:
        deadline = time.monotonic() + _READY
        while not is_healthy(settings.HOST, settings.PORT, timeout=1.0):
            supervisor.check(0.05)
            if time.monotonic() > deadline:
                raise ServiceError(f"the web process did not answer within {_READY:.0f} s (see {settings.LAYOUT.logs})")
        # It listens when the host in it has started.
        while settings.GRPC_PORT and not accepts(settings.HOST, settings.GRPC_PORT, timeout=1.0):
            supervisor.check(0.05)
            if time.monotonic() > deadline:
                raise ServiceError(f"gRPC did not answer within {_READY:.0f} s (see {settings.LAYOUT.logs})")

    def _print_ready(self, credentials: Credentials) -> None:
        url = f"http://{local_address(settings.HOST)}:{settings.PORT}"
        if settings.GRPC_PORT:
            secured = " with TLS" if settings.GRPC_TLS_CERT else ""
            self.say(f"gRPC is on {local_address(settings.HOST)}:{settings.GRPC_PORT}{secured}")
        self.say(f"Ready: {url}/")
        if credentials.admin_password is None:
            self.say(f"Admin: user {credentials.admin_username} was there before, with the password it had")
        else:
            self.say(f"Admin: user {credentials.admin_username}, password in {_shown(settings.LAYOUT.credentials)}")
        self.say(curl_line(url))


def host_services(listener: socket.socket) -> list[Service]:
    """The host's own processes, in the order of their start."""
    settings.LAYOUT.beat_schedule.parent.mkdir(mode=0o700, exist_ok=True)
    python, folder, logs = sys.executable, settings.BASE_DIR, settings.LAYOUT.logs
    environment = {"PYTHONUNBUFFERED": "1"}
    web_service = Service(
        name="web",
        command=[python, "-m", web.__name__],
        log=logs / "web.log",
        environment=environment | {web.LISTENER: str(listener.fileno())},
        pass_fds=(listener.fileno(),),
        folder=folder,
    )
    worker = Service(
        name="worker",
        command=[
            *(python, "-m", "celery", "-A", "a2a_host", "worker", "--pool", "threads", "--concurrency", "8"),
            *("--beat", "--schedule", str(settings.LAYOUT.beat_schedule), "--loglevel", "INFO"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ],
        log=logs / "worker.log",
        environment=environment,
        folder=folder,
    )
    grpc_service = Service(
        name="grpc",
        command=[python, "-m", grpc_server.__name__],
        log=logs / "grpc.log",
        environment=environment,
        folder=folder,
    )
    more = [replace(web_service, name=name, log=logs / f"{name}.log") for name in _further_webs()]
    return [web_service, worker, *([grpc_service] if settings.GRPC_PORT else []), *more]


def _further_webs() -> list[str]:
    return [f"web-{number}" for number in range(2, settings.WEB_PROCESSES + 1)]


def _reserved_for_grpc() -> AbstractContextManager[object]:
    """Holds the port of the gRPC process, which makes its own socket."""
    return reserve(settings.HOST, settings.GRPC_PORT) if settings.GRPC_PORT else nullcontext()


def _shown(path: Path) -> str:
    """A path as the person at the terminal would write it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def curl_line(url: str) -> str:
    """A first call. The id is new each time, since the same one again is the same message."""
    request = (
        '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":'
        """{"messageId":"'"$(date +%s%N)"'","role":"ROLE_USER","parts":[{"text":"Hello"}]}}}"""
    )
    key = ""
    if not is_loopback(settings.HOST):
        read = "import json,sys; print(json.load(open(sys.argv[1]))['api_key'])"
        path = shlex.quote(str(settings.LAYOUT.credentials))
        key = f' -H "Authorization: Bearer $(python3 -c {shlex.quote(read)} {path})"'
    return f"curl -s {url}/agents/echo -H 'Content-Type: application/json' -H 'A2A-Version: 1.0'{key} -d '{request}'"
