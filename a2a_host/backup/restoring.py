"""Restoring a backup: into an empty database, in one transaction."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from contextlib import suppress
from typing import IO

import psycopg
from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection as django_connection

from a2a_host.backup.archive import Archive
from a2a_host.backup.errors import BackupError
from a2a_host.backup.making import Say, count_rows
from a2a_host.backup.manifest import check_not_newer, digest, known_marks
from a2a_host.backup.programs import complaint, major, running
from a2a_host.services.files import write_private
from tasks_app.tables.database import database_dsn

_PIECE = 1024 * 1024
_HANGING_UP_SECONDS = 2.0
_TABLES = """SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
    AND relkind IN ('r', 'p', 'v', 'm', 'S')"""
_OTHERS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND coalesce(backend_type, 'client backend') = 'client backend'"""
# The names are all read before the first is dropped, and what went with another one is passed over.
_DROP_ALL = b"""DO $$ DECLARE command text; BEGIN
    FOR command IN SELECT unnest(array_agg(format('DROP %s IF EXISTS %s CASCADE', CASE relkind WHEN 'v' THEN 'VIEW'
            WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, oid::regclass)
            ORDER BY relkind = 'S'))
        FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
    LOOP EXECUTE command; END LOOP;
    FOR command IN SELECT unnest(array_agg(format('DROP ROUTINE IF EXISTS %s CASCADE', oid::regprocedure)))
        FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
            AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')
    LOOP EXECUTE command; END LOOP;
END $$;
"""
_NEW_SETTING = b"SET transaction_timeout = 0;\n"
"""pg_restore writes it for every server; those before PostgreSQL 17 do not know it."""


def restore_backup(archive: Archive, force: bool, say: Say) -> None:
    """Make the database, the files and what is missing of the keys what they were. Raises BackupError.

    `force` first drops what the database holds. Until that is restored nothing is replaced, only files and encryption
    keys are added: a failure leaves the host that was there as it was.
    """
    check_not_newer(archive.manifest)
    if archive.manifest.pg_dump > (ours := major("pg_restore")):
        raise BackupError(f"The backup was made by pg_dump {archive.manifest.pg_dump} and pg_restore is of {ours}")
    _check_database(force)
    _check_keys(archive, force)
    _add_encryption_keys(archive, say)
    if archive.manifest.files:
        say(f"Storing {archive.manifest.files} files")
    for name, file in archive.files():
        _restore_file(name, file)
    say("Restoring the database")
    _restore_database(archive, force)
    _restore_secret_key(archive)
    with psycopg.connect(database_dsn(), autocommit=True) as connection:
        if (found := count_rows(connection)) != archive.manifest.rows:
            raise BackupError(f"The restored database has other rows than the backup says: {found}")
        say("Bringing the database up to date")
        call_command("migrate", interactive=False, verbosity=0)
        django_connection.close()
        connection.execute("ANALYZE")


def _check_database(force: bool) -> None:
    with psycopg.connect(database_dsn(), autocommit=True) as connection:
        others = _others(connection)
        ((tables,),) = connection.execute(_TABLES)
    if others:
        raise BackupError(f"{others} others use the database: stop the host first")
    if tables and not force:
        raise BackupError("The database is not empty: restore into a new one, or drop what it holds with --force")


def _others(connection: psycopg.Connection) -> int:
    """How many use the database besides; who has just hung up is there for another moment."""
    deadline = time.monotonic() + _HANGING_UP_SECONDS
    while True:
        ((others,),) = connection.execute(_OTHERS)
        if not others or time.monotonic() > deadline:
            return int(others)
        time.sleep(0.05)


def _check_keys(archive: Archive, force: bool) -> None:
    """A host that has been used has a secret key, by which its cookies and page tokens are signed."""
    path, kept = settings.LAYOUT.secret_key, archive.keys().get("secret_key")
    if kept is not None and path.exists() and path.read_text() != kept and not force:
        raise BackupError(f"{path} is another key than the backup's: remove it, or replace it with --force")


def _add_encryption_keys(archive: Archive, say: Say) -> None:
    layout, kept = settings.LAYOUT, archive.keys()
    if "encryption.key" in kept:
        own = layout.encryption_key.read_text().split() if layout.encryption_key.exists() else []
        both = dict.fromkeys([*own, *kept["encryption.key"].split()])
        write_private(layout.encryption_key, "".join(f"{key}\n" for key in both))
    if archive.manifest.key_marks and not set(known_marks()) & set(archive.manifest.key_marks):
        where = "ENCRYPTION_KEYS" if settings.ENCRYPTION_KEYS else layout.encryption_key
        say(f"Bring the old encryption key to {where}: without it, stored credentials of webhooks cannot be read.")


def _restore_secret_key(archive: Archive) -> None:
    """And the first password, unless there is one."""
    layout, kept = settings.LAYOUT, archive.keys()
    if "secret_key" in kept:
        write_private(layout.secret_key, kept["secret_key"])
    if "credentials.json" in kept and not layout.credentials.exists():
        write_private(layout.credentials, kept["credentials.json"])


def _restore_file(name: str, content: IO[bytes]) -> None:
    """Files have names that are used once: one that is there is the same, or what a restore that failed left of it."""
    if default_storage.exists(name):
        if _is_stored(name, content):
            return
        default_storage.delete(name)
    saved = default_storage.save(name, File(content, name))
    if saved != name:
        raise BackupError(f"The file {name} was stored as {saved}")


def _is_stored(name: str, content: IO[bytes]) -> bool:
    with default_storage.open(name, "rb") as stored:
        same = digest(stored) == digest(content)
    content.seek(0)
    return same


def _restore_database(archive: Archive, force: bool) -> None:
    """pg_restore makes SQL of the dump, and psql runs it in one transaction."""
    reading = running(
        "pg_restore", "--no-owner", "--no-privileges", "--file=-", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    writing = running("psql", "-Xq", "--set=ON_ERROR_STOP=1", "--single-transaction", "--file=-", stdin=subprocess.PIPE)
    with reading as (restore, restore_said), writing as (psql, psql_said):
        threading.Thread(target=_feed, args=(archive.dump(), restore.stdin), daemon=True).start()
        with suppress(BrokenPipeError):  # psql has said why it ended.
            _pass_on(restore, psql, before=_DROP_ALL if force else b"")
            if restore.wait() != 0:  # psql commits what it has when its input ends: it must not see that end.
                psql.kill()
                raise BackupError(f"The dump cannot be read: {complaint(restore_said)}")
            psql.communicate()
        if psql.wait() != 0:
            raise BackupError(f"The database refused the backup and is as it was: {complaint(psql_said)}")


def _pass_on(restore: subprocess.Popen[bytes], psql: subprocess.Popen[bytes], before: bytes) -> None:
    """The SQL of one program to the other, after more SQL and without what an older server does not know."""
    assert restore.stdout is not None
    assert psql.stdin is not None
    with psycopg.connect(database_dsn()) as connection:
        old = connection.info.server_version < 170000
    psql.stdin.write(before)
    for line in iter(restore.stdout.readline, b""):
        if not (old and line == _NEW_SETTING):
            psql.stdin.write(line)
        if line.startswith(b"CREATE "):  # The settings come before.
            break
    shutil.copyfileobj(restore.stdout, psql.stdin, _PIECE)


def _feed(dump: IO[bytes], pipe: IO[bytes]) -> None:
    try:
        with pipe:
            shutil.copyfileobj(dump, pipe, _PIECE)
    except (BrokenPipeError, ValueError):
        pass  # pg_restore has said why it ended.
