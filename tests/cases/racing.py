"""Calls at the same moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from tests.support.refusals import Refused

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T | Refused]:
    """The outcomes of calls made at the same moment; a refusal is an outcome."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], T]) -> T | Refused:
        barrier.wait()
        try:
            return call()
        except Refused as refusal:
            return refusal

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
