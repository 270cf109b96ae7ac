"""Writing the entries of a backup, and the digests of them all as its last one."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from a2a_host.backup.manifest import SUMS


class Writer:
    """The entries of a tar file. `sums` has the SHA-256 of those that were written, in hexadecimal digits."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.sums: dict[str, str] = {}

    def add(self, name: str, content: bytes) -> None:
        """An entry that is in memory."""
        self._add(name, io.BytesIO(content), len(content))

    def add_file(self, name: str, path: Path) -> int:
        """An entry that is a file; its size. Raises FileNotFoundError, and then nothing was written."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._add(name, file, size)
            return size

    def _add(self, name: str, file: IO[bytes], size: int) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = size, 0o600, int(time.time())
        summed = _Summed(file)
        self._tar.addfile(entry, summed)
        self.sums[name] = summed.sum.hexdigest()


@contextmanager
def writer(file: IO[bytes]) -> Iterator[Writer]:
    """Writes a tar file that is whole when the block ends without an error."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        written = Writer(tar)
        yield written
        written.add(SUMS, print_sums(written.sums))


def print_sums(sums: dict[str, str]) -> bytes:
    """As `sha256sum` reads them."""
    return "".join(f"{sum_}  {name}\n" for name, sum_ in sums.items()).encode()


def read_sums(text: bytes) -> dict[str, str]:
    """SHA-256 by the name of an entry. What is damaged is the digest of nothing."""
    lines = text.decode(errors="replace").splitlines()
    return {name: sum_ for sum_, _, name in (line.partition("  ") for line in lines)}


class _Summed:
    """A file that is summed up while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sum = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self.sum.update(piece)
        return piece
