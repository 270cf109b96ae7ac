"""The limit of open files: raised at the start, and a line in the log where that does not help."""

from __future__ import annotations

import subprocess
import sys

import pytest

_RAISE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from a2a_host.open_files import raise_limit
print(raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "told", "warns"),
    [(256, 9000, "8900 9000 9000", False), (9000, 9000, "8900 9000 9000", False), (64, 300, "200 300 300", True)],
)
def test_the_limit_is_raised_as_far_as_it_goes(soft: int, hard: int, told: str, warns: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RAISE.format(soft=soft, hard=hard)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{told}\n"
    warning = (
        "Only 300 files may be open here, so at most 200 connections and streams: raise the hard limit (ulimit -Hn)\n"
    )
    assert done.stderr == (warning if warns else "")
