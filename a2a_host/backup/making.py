"""Making a backup while the host runs.

One snapshot of the database is dumped and counted; then the files follow that it names. Those of tasks are all there: a
file is written before the row that names it is committed, and whoever deletes tasks waits for the lock that is held
meanwhile. What goes nevertheless is a file whose write was lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec
import psycopg
from django.apps import apps
from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage
from psycopg import sql

from a2a_host.backup.errors import BackupError
from a2a_host.backup.manifest import DUMP, FILES, FORMAT, KEYS, MANIFEST, Manifest, known_marks
from a2a_host.backup.programs import complaint, major, running
from a2a_host.backup.writing import Writer, writer
from tasks_app.retention.connection import BACKUP
from tasks_app.tables.database import database_dsn

_LOCK_WAIT = "60s"
_FILES = """SELECT name FROM tasks_app_storedpart s WHERE EXISTS (SELECT FROM tasks_app_task t WHERE t.id = s.task_id)
    ORDER BY name"""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the database. `id` is for pg_dump, as long as the transaction that exported it is open."""

    id: str
    server_version: int
    migrations: list[str]
    rows: dict[str, int]
    files: list[str]


def make_backup(target: Path, with_key: bool, say: Say) -> Manifest:
    """Write `target`, a new file that only its owner may read; it appears when it is whole. Raises BackupError."""
    if target.exists():
        raise BackupError(f"{target} is there already: choose another name")
    if not target.parent.is_dir():
        raise BackupError(f"There is no folder {target.parent}")
    dump, fresh = (target.with_name(f".{target.name}.{end}") for end in ("dump", "new"))
    try:
        with _nothing_deleted():
            with _snapshot() as snapshot:
                say("Dumping the database")
                _dump(snapshot, dump)
            with _private(fresh) as file:
                manifest = _write(file, snapshot, dump, with_key, say)
        fresh.rename(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise BackupError(f"The backup could not be written: {error.strerror}") from error
    finally:
        for leftover in (dump, fresh):
            leftover.unlink(missing_ok=True)
    return manifest


@contextmanager
def _nothing_deleted() -> Iterator[None]:
    """Nobody deletes tasks or their files inside the block."""
    with psycopg.connect(database_dsn(), autocommit=True) as lock:
        lock.execute(sql.SQL("SET lock_timeout = {}").format(_LOCK_WAIT))
        try:
            lock.execute("SELECT pg_advisory_lock(%s)", [BACKUP])
        except psycopg.errors.LockNotAvailable as error:
            raise BackupError("Another backup is being made, or much is being erased: try again later") from error
        yield


@contextmanager
def _snapshot() -> Iterator[Snapshot]:
    """Its id is good inside the block."""
    with psycopg.connect(database_dsn()) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.read_only = True
        yield _read(reader)


def _read(reader: psycopg.Connection) -> Snapshot:
    ((exported,),) = reader.execute("SELECT pg_export_snapshot()")
    applied = reader.execute("SELECT app || '.' || name FROM django_migrations ORDER BY id")
    return Snapshot(
        id=exported,
        server_version=reader.info.server_version,
        migrations=[row[0] for row in applied],
        rows=count_rows(reader),
        files=[row[0] for row in reader.execute(_FILES)],
    )


def count_rows(connection: psycopg.Connection) -> dict[str, int]:
    """Rows by table of all models that are there."""
    present = {row[0] for row in connection.execute("SELECT tablename FROM pg_tables")}
    tables = sorted({model._meta.db_table for model in apps.get_models()} & present)
    counts = {}
    for table in tables:
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
        assert row is not None
        counts[table] = row[0]
    return counts


def _dump(snapshot: Snapshot, path: Path) -> None:
    server, ours = snapshot.server_version // 10000, major("pg_dump")
    if server > ours:
        raise BackupError(
            f"The server is PostgreSQL {server} and pg_dump is of {ours}: set PG_BIN to the folder of the server's own"
        )
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    options = ["--format=custom", "--no-owner", "--no-privileges", "--no-unlogged-table-data"]
    options += [f"--snapshot={snapshot.id}", "--lock-wait-timeout=60000", f"--file={path}"]
    with running("pg_dump", *options) as (process, said):
        if process.wait() != 0:
            raise BackupError(f"pg_dump failed: {complaint(said)}")


@contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _write(file: IO[bytes], snapshot: Snapshot, dump: Path, with_key: bool, say: Say) -> Manifest:
    on_disk = isinstance(default_storage, FileSystemStorage)
    keys, made_at = _key_files() if with_key else [], datetime.now(UTC)
    with writer(file) as tar:
        dump_bytes = tar.add_file(DUMP, dump)
        files = _add_files(tar, snapshot.files, say) if on_disk else 0
        for path in keys:
            tar.add_file(KEYS + path.name, path)
        manifest = Manifest(
            format=FORMAT,
            made_at=made_at,
            postgres=_dotted(snapshot.server_version),
            pg_dump=major("pg_dump"),
            migrations=snapshot.migrations,
            rows=snapshot.rows,
            dump_sha256=tar.sums[DUMP],
            dump_bytes=dump_bytes,
            files=files,
            files_elsewhere=bool(snapshot.files) and not on_disk,
            keys=[path.name for path in keys],
            key_marks=known_marks(),
        )
        tar.add(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return manifest


def _add_files(tar: Writer, names: list[str], say: Say) -> int:
    """Copy the files of big parts that are there. Returns how many."""
    if names:
        say(f"Copying {len(names)} files")
    missing = 0
    for name in names:
        try:
            tar.add_file(FILES + name, Path(default_storage.path(name)))
        except FileNotFoundError:
            missing += 1
    if missing:
        say(f"{missing} files that tasks name are missing, in the storage and in the backup")
    return len(names) - missing


def _key_files() -> list[Path]:
    """What DATA_DIR keeps that no database knows: the keys, and the first administrator's password."""
    layout = settings.LAYOUT
    return [path for path in (layout.encryption_key, layout.secret_key, layout.credentials) if path.exists()]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _dotted(version: int) -> str:
    return f"{version // 10000}.{version % 10000}"
