"""Reading a backup: looked through from end to end before anything is changed."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from a2a_host.backup.errors import BackupError
from a2a_host.backup.manifest import DUMP, FILES, KEYS, MANIFEST, Manifest, digest, read_manifest

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
        return self.open(next(entry for entry in self.entries if entry.name == DUMP))

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
    if not entries or entries[0].name != MANIFEST or not all(_is_ours(entry) for entry in entries):
        raise BackupError("The file is no backup of a2a-host")
    archive = Archive(read_manifest(tar.extractfile(entries[0]).read()), tar, entries)  # type: ignore[union-attr]
    manifest = archive.manifest
    names = [entry.name for entry in entries]
    files = sum(name.startswith(FILES) for name in names)
    if DUMP not in names or files != manifest.files or set(manifest.keys) != set(archive.keys()):
        raise BackupError("The backup is not whole: entries that its manifest names are missing")
    if digest(archive.dump()) != (manifest.dump_sha256, manifest.dump_bytes):
        raise BackupError("The backup is damaged: the dump of the database is not the one that was written")
    return archive


def _is_ours(entry: tarfile.TarInfo) -> bool:
    """Whether a backup has such an entry. Names become paths, so nothing else is taken."""
    name = entry.name
    known = name in (MANIFEST, DUMP) or name.removeprefix(KEYS) in _KEY_NAMES or name.startswith(FILES)
    return entry.isreg() and known and ".." not in name.split("/") and not name.startswith("/")
