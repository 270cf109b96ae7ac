"""The databases of both servers: seeded once into templates that are kept, copied for every run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from a2a_host.services.layout import POSTGRES_USER, Layout

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ROWS = 1_000_000
FEW_ROWS = 1_000
CONTENTS = 50_000  # the newest tasks of the host that have their message and events too; a list reads none of them
MANY_AGENT = "bench-many"  # owns ROWS tasks
FEW_AGENT = "bench-few"  # owns FEW_ROWS tasks
OLD_AGENT = "bench-old"  # owns OLD_ROWS tasks, of which more than 100,000 are over a day old
OLD_ROWS = 103_000
WORKER_AGENT = "bench-worker"
MARATHON_AGENT = "bench-marathon"
EXECUTORS = HERE / "executors"
_AGENTS = (
    (MANY_AGENT, "--simulator", "echo"),
    (FEW_AGENT, "--simulator", "echo"),
    (OLD_AGENT, "--simulator", "echo"),
    (WORKER_AGENT, "--simulator", "echo", "--execution", "worker"),
    (MARATHON_AGENT, "--executor", "marathon.Marathon", "--execution", "worker"),
)
_SEEDED = ((MANY_AGENT, ROWS, CONTENTS), (FEW_AGENT, FEW_ROWS, FEW_ROWS), (OLD_AGENT, OLD_ROWS, OLD_ROWS))
HOST_DATABASE = "bench_host"
REFERENCE_DATABASE = "bench_reference"  # empty: the reference's best case
REFERENCE_MANY_DATABASE = "bench_reference_many"  # with ROWS tasks
_TEMPLATE = "seed_"  # prefix of the databases that are kept


class Databases:
    """The databases on the one PostgreSQL that both servers share."""

    def __init__(self, layout: Layout, say: Callable[[str], None]) -> None:
        self._layout = layout
        self._say = say

    def url(self, database: str) -> str:
        """Of a database, for the host's own role."""
        return self._layout.database_url.replace(f"@/{POSTGRES_USER}?", f"@/{database}?")

    @contextlib.contextmanager
    def connect(self, database: str = "postgres") -> Iterator[psycopg.Connection]:
        """A connection of the administrator, in autocommit."""
        url = self._layout.superuser_url.replace("@/postgres?", f"@/{database}?")
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection

    def _prepare(self, database: str, state: str, fill: Callable[[str], None]) -> None:
        """Make `database` anew from its template, which `fill(name)` fills if there is none for this `state`."""
        template = f"{_TEMPLATE}{database}_{hashlib.sha256(state.encode()).hexdigest()[:12]}"
        with self.connect() as connection:
            self._drop_other_templates(connection, database, template)
            if not _exists(connection, template):
                self._make_template(connection, template, fill)
            _drop(connection, database)
            _create(connection, database, template)

    def _drop_other_templates(self, connection: psycopg.Connection, database: str, keep: str) -> None:
        names = connection.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s) AND datname <> %s",
            [f"{_TEMPLATE}{database}_", keep],
        ).fetchall()
        for (name,) in names:
            _drop(connection, name)

    def _make_template(self, connection: psycopg.Connection, template: str, fill: Callable[[str], None]) -> None:
        """Filled under another name first: a template that is there is whole."""
        unfinished = f"un{template}"
        _drop(connection, unfinished)
        _create(connection, unfinished)
        fill(unfinished)
        with self.connect(unfinished) as own:
            own.execute("VACUUM (FREEZE, ANALYZE)")
        connection.execute("CHECKPOINT")
        connection.execute(
            sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(unfinished), sql.Identifier(template))
        )

    def prepare_host(self) -> None:
        """The host's database, with the agents that only the benchmark needs and their tasks."""
        migrations = sorted(ROOT.glob("*/migrations/*.py"))
        state = "".join(path.read_text() for path in (*migrations, *sorted(HERE.glob("seed_host*.sql"))))
        state += repr((_AGENTS, _SEEDED))
        self._prepare(HOST_DATABASE, state, self._fill_host)

    def _fill_host(self, name: str) -> None:
        self._say(f"Seeding {ROWS:,} tasks of the host (once)")
        self._manage(name, "migrate", "--verbosity", "0")
        for agent in _AGENTS:
            self._manage(name, "agent", "register", *agent, "--open")
        tables = ("tasks_app_task", "tasks_app_message", "tasks_app_event", "tasks_app_receipt")
        with self.connect(name) as connection, bare(connection, tables):
            for slug, rows, contents in _SEEDED:
                connection.execute(_statement("seed_host.sql"), {"rows": rows, "slug": slug})
                connection.execute(_statement("seed_host_contents.sql"), {"rows": contents, "slug": slug})

    def _manage(self, database: str, *arguments: str) -> None:
        """Run one management command of the host on `database`."""
        command, environment = self.command(database, *arguments)
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)

    def command(self, database: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
        """A management command of the host on `database`, to be run in ROOT, and its environment."""
        ours = {"DATABASE_URL": self.url(database), "AGENTS_DIR": str(EXECUTORS)}
        return [sys.executable, "manage.py", *arguments], os.environ | ours

    def prepare_reference(self, make_table: Callable[[str], None]) -> None:
        """The reference's two databases; `make_table(url)` has the SDK make its own table."""
        state = (
            (HERE / "seed_reference.sql").read_text() + (HERE / "reference-requirements.txt").read_text() + str(ROWS)
        )
        self._prepare(REFERENCE_MANY_DATABASE, state, lambda name: self._fill_reference(name, make_table))
        with self.connect() as connection:
            _drop(connection, REFERENCE_DATABASE)
            _create(connection, REFERENCE_DATABASE)

    def _fill_reference(self, name: str, make_table: Callable[[str], None]) -> None:
        self._say(f"Seeding {ROWS:,} tasks of the reference (once)")
        make_table(self.url(name))
        with self.connect(name) as connection, bare(connection, ("tasks",)):
            connection.execute(_statement("seed_reference.sql"), {"rows": ROWS})

    def checkpoint(self) -> None:
        """Write out what one measurement left, so that the next one does not pay for it."""
        with self.connect() as connection:
            connection.execute("CHECKPOINT")

    def settings(self) -> dict[str, str]:
        """The server's version and the settings that decide how durable and how fast it is."""
        names = (
            *("server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method"),
            *("commit_delay", "shared_buffers", "max_wal_size", "max_connections"),
        )
        with self.connect() as connection:
            rows = connection.execute(
                "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY(%s)", [list(names)]
            ).fetchall()
        found = dict(rows)
        return {name: found[name] for name in names}


@contextlib.contextmanager
def bare(connection: psycopg.Connection, tables: tuple[str, ...]) -> Iterator[None]:
    """Drop constraints and indexes, and make them again afterwards: many times faster for many rows."""
    constraints = connection.execute(
        """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid::regclass::text = ANY(%s) AND contype IN ('p', 'u', 'f') ORDER BY contype DESC""",
        [list(tables)],
    ).fetchall()
    for table, name, _ in constraints:
        connection.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(*map(sql.Identifier, (table, name))))
    indexes = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s)", [list(tables)]
    ).fetchall()
    for name, _ in indexes:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    for _, definition in indexes:
        connection.execute(definition)
    for table, name, definition in constraints:
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {}").format(
                sql.Identifier(table), sql.Identifier(name), sql.SQL(definition)
            )
        )


def _statement(name: str) -> bytes:
    return (HERE / name).read_bytes()


def _exists(connection: psycopg.Connection, name: str) -> bool:
    return connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def _drop(connection: psycopg.Connection, name: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _create(connection: psycopg.Connection, name: str, template: str = "template0") -> None:
    connection.execute(
        sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY file_copy").format(
            sql.Identifier(name), sql.Identifier(POSTGRES_USER), sql.Identifier(template)
        )
    )
