"""Identifiers made by the host."""

from __future__ import annotations

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from protocol.ids import new_id


def test_ids_are_version_7_uuids_of_now() -> None:
    before = time.time_ns() // 1_000_000
    text = new_id()
    value = uuid.UUID(text)
    assert str(value) == text
    assert value.version == 7
    assert value.variant == uuid.RFC_4122
    assert before <= value.int >> 80 <= time.time_ns() // 1_000_000


def test_ids_of_a_process_grow() -> None:
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_ids_differ_between_threads_and_grow_in_each() -> None:
    with ThreadPoolExecutor(8) as threads:
        batches = list(threads.map(lambda _: [new_id() for _ in range(2_000)], range(8)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({id for batch in batches for id in batch}) == 16_000


def test_a_clock_that_goes_back_does_not_make_ids_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr("protocol.ids.time.time_ns", lambda: 0)
    assert first < new_id() < new_id()


def test_forked_processes_make_other_ids() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, new_id().encode())
        os._exit(0)
    own = new_id()
    theirs = os.read(read, 36).decode()
    assert os.waitpid(child, 0)[1] == 0
    os.close(read)
    os.close(write)
    assert uuid.UUID(theirs).version == 7
    assert own[14:] != theirs[14:]
