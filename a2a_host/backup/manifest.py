"""What a backup says of itself, as JSON: the last entry but the digests.

In a backup of format 1 it is the first entry, and only the dump has a digest.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import IO

import msgspec
from django.db.migrations.loader import MigrationLoader

from a2a_host.backup.errors import BackupError
from agents.secrets import EncryptionError, encryption_keys

FORMAT = 2
_OLDEST = 1
MANIFEST, DUMP, SUMS = "manifest.json", "database.dump", "sha256sums"
FILES, KEYS = "files/", "keys/"
_PIECE = 1024 * 1024


class Manifest(msgspec.Struct, frozen=True):
    """`migrations` are those of the database, as `app.name`; `rows` the number of rows by table. `files` were on disk
    and are in the backup, unless `files_elsewhere`: then they are in the storage that the host had. `key_marks` tell
    the keys of the stored secrets apart without giving them away."""

    format: int
    made_at: datetime
    postgres: str
    pg_dump: int
    migrations: list[str]
    rows: dict[str, int]
    dump_sha256: str
    dump_bytes: int
    files: int
    files_elsewhere: bool
    keys: list[str]
    key_marks: list[str]


def read_manifest(text: bytes) -> Manifest:
    """Raises BackupError for what this host cannot read."""
    try:
        version = msgspec.json.decode(text).get("format")
        if version not in range(_OLDEST, FORMAT + 1):
            raise BackupError(
                f"The backup has the format {version}; this host reads {_OLDEST} to {FORMAT}: use the one that made it"
            )
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, AttributeError) as error:
        raise BackupError("The file is no backup of a2a-host: its manifest cannot be read") from error


def check_not_newer(manifest: Manifest) -> None:
    """Raises BackupError when the database has been migrated further than this code goes."""
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    unknown = sorted(set(manifest.migrations) - known)
    if unknown:
        raise BackupError(f"The backup is of a newer host: it has the migration {unknown[0]}. Restore it with that one")


def digest(file: IO[bytes]) -> tuple[str, int]:
    """(SHA-256 in hexadecimal digits, bytes) of the rest of a file."""
    sum_, size = hashlib.sha256(), 0
    while piece := file.read(_PIECE):
        sum_.update(piece)
        size += len(piece)
    return sum_.hexdigest(), size


def known_marks() -> list[str]:
    """Marks of the keys of stored secrets that this host has, the newest first."""
    try:
        return [mark(key) for key in encryption_keys()]
    except EncryptionError:
        return []


def mark(key: str) -> str:
    """Tells a key from others; says nothing of its 256 random bits."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]
