"""How pytest-xdist deals the tests out to processes: each has its own PostgreSQL, Valkey and hosts.

Most folders start hosts that all of their tests share (`deployment` in their conftest.py), so a folder is one portion.
"""

from __future__ import annotations

import os

import pytest
from xdist.scheduler import LoadScopeScheduling

MOST = 3
"""Processes; each with its hosts takes more than a gigabyte."""
BY_FILE = frozenset({"tests/agents", "tests/protocol", "tests/services", "tests/tasks_app", "tests/ui"})
"""Folders whose files share nothing that is slow to start: they fill the time that is left at the end."""
LONG_ONES = (
    *("tests/cases", "tests/durability", "tests/proxy", "tests/fuzz", "tests/grpc", "tests/recovery"),
    *("tests/services/test_stopping.py", "tests/services/test_up.py"),
)
"""Portions that are begun before all others, longest first, so that no process is left alone with one at the end."""


def number_of_processes(config: pytest.Config) -> int:
    """As many as there are cores for the whole suite; none besides this one for a choice of tests or on one core."""
    option = config.option
    chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS or option.keyword or option.markexpr
    watched = option.capture == "no" or option.lf or option.stepwise
    cores = len(os.sched_getaffinity(0))
    return 0 if chosen or watched or cores == 1 else min(cores, MOST)


def portion_of(nodeid: str) -> str:
    """The folder or file whose tests run in one process, one after the other."""
    file = nodeid.partition("::")[0]
    folder = file.rpartition("/")[0]
    return file if folder in BY_FILE else folder


def long_ones_first(items: list[pytest.Item]) -> None:
    """Put the LONG_ONES in front, then the other folders, then files; portions are dealt out in this order."""
    places = {portion: place for place, portion in enumerate(LONG_ONES)}

    def place_of(item: pytest.Item) -> int:
        portion = portion_of(item.nodeid)
        return places.get(portion, len(places) + portion.endswith(".py"))

    items.sort(key=place_of)


class DealPortions(LoadScopeScheduling):
    """Deals out whole portions in the order of the tests (with `--no-loadscope-reorder`)."""

    def _split_scope(self, nodeid: str) -> str:
        return portion_of(nodeid)
