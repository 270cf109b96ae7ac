"""One supervised host for the tests that kill its parts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.host import Host


@pytest.fixture(scope="package")
def host() -> Iterator[Host]:
    """Ready: the web process answers and the worker runs tasks. Every test leaves it so."""
    folder = Path(tempfile.mkdtemp(prefix="a2a-dur-"))
    folder.chmod(0o711)
    host = Host(folder)
    try:
        host.copy.wait_ready()
        host.wait_for_worker()
        yield host
    finally:
        host.close()
        shutil.rmtree(folder)
