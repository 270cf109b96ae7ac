"""The end of `manage.py up`, wanted or not, and the start after it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from protocol.ids import new_id
from tests.services.copies import Copy, alive, family, wait_until
from tests.services.test_up import send

MAKE = shutil.which("make") or ""

pytestmark = pytest.mark.timeout(400)  # Whole hosts start here.


def get_state(copy: Copy, task_id: str) -> str:
    """The state of a task of `echo`."""
    answer = httpx.get(f"{copy.url}/agents/echo/tasks/{task_id}", headers={"A2A-Version": "1.0"}, timeout=30)
    return str(answer.json()["status"]["state"])


def start_again(copy: Copy) -> None:
    copy.start()
    copy.wait_ready()


@pytest.fixture(scope="module")
def lasting(folder: Path) -> Iterator[Copy]:
    """A copy that every test leaves as it was: ready."""
    copy = Copy(folder / "data")
    try:
        yield copy.wait_ready()
    finally:
        copy.close()


@pytest.fixture
def copy(lasting: Copy) -> Copy:
    """Ready, whatever became of the test before."""
    if lasting.process.poll() is not None:
        start_again(lasting)
    return lasting


def test_sigterm_ends_all_and_the_next_start_has_everything(copy: Copy) -> None:
    credentials = copy.credentials
    task_id = send(copy, "echo", new_id())["result"]["task"]["id"]
    with httpx.stream("GET", f"{copy.url}/healthz") as _:
        send_hold(copy)
        members = family(copy.process.pid)
        assert len(members) >= 7  # Itself, PostgreSQL, Valkey, web, worker, gRPC, beat.
        copy.process.send_signal(signal.SIGTERM)
        assert copy.wait_end() == 0
    assert alive(members) == {}
    assert copy.lines[-1] == "Stopping"
    assert not (copy.data_dir / "run" / ".s.PGSQL.5432").exists()

    start_again(copy)
    assert copy.credentials == credentials
    assert get_state(copy, task_id) == "TASK_STATE_COMPLETED"


def send_hold(copy: Copy) -> None:
    """Leave a run going in the worker and one in the web process."""
    for agent in ("hold", "hold-worker"):
        message = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "hold 60"}]}
        params = {"message": message, "configuration": {"returnImmediately": True}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        reply = httpx.post(f"{copy.url}/agents/{agent}", json=request, headers={"A2A-Version": "1.0"}, timeout=30)
        assert "result" in reply.json()


def test_a_killed_supervisor_leaves_nothing(copy: Copy) -> None:
    task_id = send(copy, "echo", new_id())["result"]["task"]["id"]
    members = family(copy.process.pid)
    copy.process.kill()
    copy.wait_end()
    wait_until(lambda: not alive(members), "the end of all", 10)

    start_again(copy)
    assert get_state(copy, task_id) == "TASK_STATE_COMPLETED"


def test_a_start_right_after_everything_was_killed(copy: Copy) -> None:
    task_id = send(copy, "echo", new_id())["result"]["task"]["id"]
    for pid in family(copy.process.pid):
        os.kill(pid, signal.SIGKILL)
    copy.wait_end()
    assert (copy.data_dir / "postgres" / "postmaster.pid").exists()

    start_again(copy)
    assert get_state(copy, task_id) == "TASK_STATE_COMPLETED"


def test_what_a_killed_supervisor_left_is_ended_first(copy: Copy) -> None:
    postgres = copy.pids()["postgres"]
    os.kill(postgres, signal.SIGSTOP)  # It cannot hear that its parent died.
    copy.process.kill()
    copy.wait_end()
    members = family(postgres)
    copy.start()
    wait_until(lambda: (copy.data_dir / "lock").read_text() == f"{copy.process.pid}\n", "the next start")
    os.kill(postgres, signal.SIGCONT)
    copy.wait_ready()
    assert alive(members) == {}
    assert copy.lines[0] == "Ended postgres of an earlier run"


@pytest.mark.skipif(MAKE == "", reason="needs make")
def test_sigterm_to_make_ends_all(start: Callable[..., Copy]) -> None:
    copy = start(command=[MAKE, "up", "SETUP=true", f"RUN={sys.executable}"]).wait_ready()
    members = family(copy.process.pid)
    copy.process.send_signal(signal.SIGTERM)
    assert copy.wait_end() == -signal.SIGTERM
    assert alive(members) == {}


def test_ctrl_c_while_starting_ends_all(start: Callable[..., Copy]) -> None:
    copy = start()
    wait_until(lambda: "Preparing the database" in copy.lines, "PostgreSQL")
    members = family(copy.process.pid)
    copy.process.send_signal(signal.SIGINT)
    assert copy.wait_end() == 0
    assert alive(members) == {}
    start_again(copy)
