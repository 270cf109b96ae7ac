"""The files themselves. Everything here blocks: call it in a thread."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import IO, Any, Protocol

from django.core.files import File
from django.core.files.storage import default_storage

from protocol.errors import UnavailableError

logger = logging.getLogger(__name__)

CHUNK = 1024 * 1024
"""Bytes that are in memory at a time while a file is written or sent."""


class StorageDownError(UnavailableError):
    """The storage of big content is not available; try again later."""

    def __init__(self) -> None:
        super().__init__(retry_after=5)


class FileGoneError(Exception):
    """The file of a part is not in the storage any more."""


class Content(Protocol):
    """Content that is about to be stored. `chunks` may be gone through more than once."""

    @property
    def size(self) -> int:
        """In bytes."""

    def chunks(self) -> Iterator[bytes]:
        """The bytes, in pieces of about `CHUNK`."""


def name_of(part_id: str) -> str:
    """The name in the storage of the file of a part. The last digits of an id are random, so folders stay small."""
    return f"{part_id[-2:]}/{part_id}"


def write(part_id: str, content: Content) -> None:
    """Store the file of a part; it is there to stay when this returns. Raises StorageDownError."""
    name = name_of(part_id)
    try:
        saved = default_storage.save(name, _Upload(content, name))
    except Exception as error:
        logger.error("A file could not be stored: %s: %s", type(error).__name__, error)
        raise StorageDownError from error
    if saved != name:  # an id is used once
        raise RuntimeError(f"the file {name} was stored as {saved}")


def open_file(part_id: str) -> IO[bytes]:
    """The file of a part, to be read and closed. Raises FileGoneError, StorageDownError."""
    try:
        file: Any = default_storage.open(name_of(part_id), "rb")
        file.seek(0)  # what is elsewhere is fetched by now
    except FileNotFoundError:
        raise FileGoneError(part_id) from None
    except Exception as error:
        raise _unreadable(error) from error
    return file  # type: ignore[no-any-return]


def read(part_id: str) -> bytes:
    """The bytes of the file of a part. Raises FileGoneError, StorageDownError."""
    with open_file(part_id) as file:
        try:
            return file.read()
        except Exception as error:
            raise _unreadable(error) from error


def delete(name: str) -> None:
    """Delete a file by its name in the storage, whether it is there or not. Raises StorageDownError."""
    try:
        default_storage.delete(name)
    except Exception as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> StorageDownError:
    logger.error("The storage of big content does not answer: %s: %s", type(error).__name__, error)
    return StorageDownError()


class _Upload(File):  # type: ignore[type-arg]
    """Content as the file that Django's storages read: on disk by its chunks, elsewhere by `read` from its start."""

    def __init__(self, content: Content, name: str) -> None:
        super().__init__(None, name)
        self._content = content
        self._left = self._content.chunks()
        self._rest = b""
        self.size = content.size

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """The pieces of the content, whatever size is wished for."""
        return self._content.chunks()

    def multiple_chunks(self, chunk_size: int | None = None) -> bool:
        """Always, maybe."""
        return True

    def seekable(self) -> bool:
        """No: it is read once, from its start."""
        return False

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, empty at the end."""
        pieces = [self._rest]
        have = len(self._rest)
        while (size < 0 or have < size) and (piece := next(self._left, b"")):
            pieces.append(piece)
            have += len(piece)
        found = b"".join(pieces)
        end = len(found) if size < 0 else size
        self._rest = found[end:]
        return found[:end]

    @property
    def closed(self) -> bool:
        """Never: there is nothing to close."""
        return False

    def close(self) -> None:
        """Nothing."""
