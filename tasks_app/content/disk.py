"""Files on the disk of the host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage


class DiskStorage(FileSystemStorage):
    """What it has saved survives a power failure, as what PostgreSQL has committed does."""

    def _save(self, name: str, content: Any) -> str:
        saved = str(super()._save(name, content))  # type: ignore[misc]
        path = Path(self.path(saved))
        _sync(path)
        for folder in (path.parent, path.parent.parent):  # a new folder is an entry of the one above
            _sync(folder)
        return saved


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
