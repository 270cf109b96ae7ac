"""Reading a backup: looked through from end to end before anything is changed."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from a2a_host.backup.errors import BackupError
from a2a_host.backup.manifest import DUMP, FILES, KEYS, MANIFEST, SUMS, Manifest, digest, read_manifest
from a2a_host.backup.writing import read_sums

_KEY_NAMES = {"encryption.key", "secret_key", "credentials.json"}


@dataclass(frozen=True, slots=True)
class Archive:
    """An open backup that is whole."""

    manifest: Manifest
    tar: tarfile.TarFile
    entries: list[tarfile.TarInfo]

    def open(self, entry: tarfile.TarInfo) -> IO[bytes]:
        """The content of an entry."""
        file = self.tar.extractfile(entry)
        assert file is not None  # They are all regular files.
        return file

    def dump(self) -> IO[bytes]:
        """What pg_dump wrote."""
        return self.open(self.tar.getmember(DUMP))

    def files(self) -> Iterator[tuple[str, IO[bytes]]]:
        """Name in the storage and content of each file."""
        for entry in self.entries:
            if entry.name.startswith(FILES):
                with self.open(entry) as file:
                    yield entry.name.removeprefix(FILES), file

    def keys(self) -> dict[str, str]:
        """What DATA_DIR held, by file name."""
        return {
            entry.name.removeprefix(KEYS): self.open(entry).read().decode()
            for entry in self.entries
            if entry.name.startswith(KEYS)
        }


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """A backup that was found to be whole. Raises BackupError."""
    with ExitStack() as stack:
        try:
            tar = stack.enter_context(tarfile.open(path, mode="r:"))
            archive = _checked(tar, tar.getmembers())
        except FileNotFoundError as error:
            raise BackupError(f"There is no file {path}") from error
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror}") from error
        except tarfile.TarError as error:
            raise BackupError(f"{path} is no backup of a2a-host, or a damaged one: {error}") from error
        yield archive


def _checked(tar: tarfile.TarFile, entries: list[tarfile.TarInfo]) -> Archive:
    names = {entry.name for entry in entries}
    if not entries or not all(_is_ours(entry) for entry in entries):
        raise BackupError("The file is no backup of a2a-host")
    if MANIFEST not in names:
        raise BackupError("The backup is not whole: its end is missing")
    archive = Archive(read_manifest(tar.extractfile(MANIFEST).read()), tar, entries)  # type: ignore[union-attr]
    manifest = archive.manifest
    files = sum(entry.name.startswith(FILES) for entry in entries)
    needed = {DUMP, *(KEYS + name for name in manifest.keys), *([SUMS] if manifest.format > 1 else [])}
    if needed - names or files != manifest.files:
        raise BackupError("The backup is not whole: entries that its manifest names are missing")
    _check_content(archive)
    return archive


def _check_content(archive: Archive) -> None:
    """Read every entry that has a digest."""
    if archive.manifest.format == 1:
        if digest(archive.dump()) != (archive.manifest.dump_sha256, archive.manifest.dump_bytes):
            raise BackupError("The backup is damaged: the dump of the database is not the one that was written")
        return
    sums = read_sums(archive.open(archive.tar.getmember(SUMS)).read())
    for entry in archive.entries:
        if entry.name != SUMS and digest(archive.open(entry))[0] != sums.get(entry.name):
            raise BackupError(f"The backup is damaged: {entry.name} is not what was written")


def _is_ours(entry: tarfile.TarInfo) -> bool:
    """Whether a backup has such an entry. Names become paths, so nothing else is taken."""
    name = entry.name
    known = name in (MANIFEST, DUMP, SUMS) or name.removeprefix(KEYS) in _KEY_NAMES or name.startswith(FILES)
    return entry.isreg() and known and ".." not in name.split("/") and not name.startswith("/")
