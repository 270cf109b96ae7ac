"""Copies of the host for the tests of this folder: one to look at, and new ones to do harm to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services.copies import Copy


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A short path that others may pass, as /tmp is."""
    path = Path(tempfile.mkdtemp(prefix="a2a-up-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[tuple[Copy, Copy]]:
    """Two copies that were started at the same moment, the second one with two web processes."""
    copies = Copy(folder / "one"), Copy(folder / "two", WEB_PROCESSES="2")
    try:
        for copy in copies:
            copy.wait_ready()
        yield copies
    finally:
        for copy in copies:
            copy.close()


@pytest.fixture
def copy(pair: tuple[Copy, Copy]) -> Copy:
    return pair[0]


@pytest.fixture
def start() -> Iterator[Callable[..., Copy]]:
    """Start copies that are gone after the test."""
    started: list[Copy] = []
    path = Path(tempfile.mkdtemp(prefix="a2a-up-"))
    path.chmod(0o711)

    def start_copy(name: str = "data", **options: object) -> Copy:
        started.append(Copy(path / name, **options))  # type: ignore[arg-type]
        return started[-1]

    yield start_copy
    for each in started:
        each.close()
    shutil.rmtree(path)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
