"""The launcher: what becomes of a child's user, rights and life."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from a2a_host.services.accounts import Account, own, service_account
from a2a_host.services.processes import Process, Service, trim_log
from tests.services.conftest import as_root
from tests.services.copies import alive, family, wait_until

NOBODY = Account(65534, 65534)
_REPORT = """
import json, os, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
found = {"uid": os.getresuid(), "gid": os.getresgid(), "groups": os.getgroups(), "session": os.getsid(0) == os.getpid()}
found["reached"] = [os.access(path, os.R_OK | os.X_OK) for path in sys.argv[1:]]
print(json.dumps(found | {"capabilities": int(status["CapEff"], 16), "blocked": int(status["SigBlk"], 16)}))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="a2a-launch-") as path:
        Path(path).chmod(0o711)
        yield Path(path)


def run(service: Service) -> str:
    """What a service prints until its end."""
    process = Process(service)
    assert process.wait(30)
    return service.log.read_text()


def report(folder: Path, *paths: Path, **options: object) -> dict[str, object]:
    """What a process finds out about itself, and whether it reaches the paths."""
    python = ["/usr/bin/env", "python3"] if options.get("account") else [sys.executable]
    command = [*python, "-c", _REPORT, *map(str, paths)]
    service = Service(name="report", command=command, log=folder / "logs" / "report.log")
    loaded: dict[str, object] = json.loads(run(replace(service, **options)))  # type: ignore[arg-type]
    return loaded


def test_a_child_has_a_session_of_its_own_and_no_signal_blocked(folder: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        found = report(folder)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    assert (found["session"], found["blocked"]) == (True, 0)
    assert found["uid"] == [os.getuid()] * 3


@as_root
def test_as_root_a_service_has_no_right_of_root(folder: Path) -> None:
    found = report(folder, account=NOBODY, environment={"PATH": "/usr/bin:/bin"}, needs=[str(folder)])
    assert found["uid"] == [65534] * 3
    assert found["gid"] == [65534] * 3
    assert (found["groups"], found["capabilities"]) == ([], 0)


@as_root
def test_a_folder_in_a_closed_one_is_reached_by_one_right_alone(folder: Path) -> None:
    closed = folder / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0o700)
    inside = closed / "inside"
    found = report(folder, inside, account=NOBODY, environment={"PATH": "/usr/bin:/bin"}, needs=[str(inside)])
    assert (found["uid"], found["reached"]) == ([65534] * 3, [True])
    assert found["capabilities"] in (1 << 2, 1 << 1)  # CAP_DAC_READ_SEARCH, else CAP_DAC_OVERRIDE
    assert closed.stat().st_mode & 0o777 == 0o700


@as_root
def test_the_owner_of_the_files_runs_them(folder: Path) -> None:
    own(folder / "data", NOBODY)
    assert (folder / "data").stat().st_mode & 0o777 == 0o700
    assert service_account(folder / "data") == NOBODY


@as_root
def test_new_files_get_a_system_user(folder: Path) -> None:
    account = service_account(folder / "data")
    assert account is not None
    entry = pwd.getpwuid(account.uid)
    assert (entry.pw_name, entry.pw_gid) == ("a2a-host", account.gid)


def test_an_ordinary_user_stays_who_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert service_account(folder / "data") is None


def test_a_child_ends_with_its_parent_and_takes_its_own_along(folder: Path) -> None:
    program = (
        "import subprocess, sys; from pathlib import Path;"
        "from a2a_host.services.processes import Process, Service;"
        f"process = Process(Service(name='x', command=['/bin/sleep', '600'], log=Path('{folder}/x.log')));"
        "print(process.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = family(int(parent.stdout.readline()))
        parent.kill()
    wait_until(lambda: not alive(child), "the child's end", 10)


def test_the_end_of_a_service_is_the_end_of_what_it_started(folder: Path) -> None:
    command = ["/bin/sh", "-c", "sleep 600 & echo $!; kill -9 $$"]
    service = Service(name="parent", command=command, log=folder / "parent.log")
    process = Process(service)
    wait_until(lambda: process.exit_code is not None, "the end", 10)
    assert (process.exit_code, process.ending) == (-signal.SIGKILL, "SIGKILL")
    orphan = int(service.log.read_text())
    wait_until(lambda: not Path(f"/proc/{orphan}").exists(), "the end of what it started", 10)


def test_last_words_are_of_this_run(folder: Path) -> None:
    log = folder / "some.log"
    log.write_text("words of an earlier run\n")
    silent = Process(Service(name="silent", command=["/bin/sh", "-c", "exit 3"], log=log))
    assert silent.wait(10)
    assert silent.last_words() == "exit code 3"
    loud = Process(Service(name="loud", command=["/bin/sh", "-c", "echo one; echo two; echo"], log=log))
    assert loud.wait(10)
    assert loud.last_words() == "two"


def test_a_log_starts_again_when_it_is_long(folder: Path) -> None:
    log = folder / "some.log"
    log.write_bytes(b"x" * (20 * 1024 * 1024))
    trim_log(log)
    assert log.stat().st_size == 20 * 1024 * 1024
    with log.open("ab") as writer:
        writer.write(b"y")
        writer.flush()
        trim_log(log)
        writer.write(b"after")
    assert log.read_bytes() == b"after"
    assert (folder / "some.log.1").stat().st_size == 20 * 1024 * 1024 + 1
