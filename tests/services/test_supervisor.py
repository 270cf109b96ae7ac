"""Who is started again, and when that is given up."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_host.management.commands.up import Command
from a2a_host.services import supervisor as module
from a2a_host.services.claim import claim, end_leftovers
from a2a_host.services.errors import ServiceError
from a2a_host.services.layout import Layout
from a2a_host.services.processes import Service
from a2a_host.services.supervisor import StopRequested, Supervisor
from tests.services.copies import alive, family


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    """One that takes the signals of this process, and gives them back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    supervisor = Supervisor(Layout(tmp_path), said.append)
    supervisor.listen()
    yield supervisor
    supervisor.stop_all()
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def shell(folder: Path, name: str, script: str) -> Service:
    return Service(name=name, command=["/bin/sh", "-c", script], log=folder / f"{name}.log")


def test_a_service_that_always_dies_is_given_up(
    supervisor: Supervisor, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    supervisor.start(shell(tmp_path, "good", "exec sleep 600"))
    supervisor.start(shell(tmp_path, "bad", "echo started; echo out of luck; exit 7"))
    with pytest.raises(ServiceError) as caught:
        supervisor.run()
    log = tmp_path / "bad.log"
    assert str(caught.value) == f"bad died 5 times in a row: out of luck (see {log})"
    assert log.read_text() == "started\nout of luck\n" * 5
    assert said == ["bad ended (exit code 7), it is started again"] * 4


def wait_for_a_death(supervisor: Supervisor) -> None:
    while True:
        supervisor.check(5)


def test_a_death_while_starting_is_no_start(supervisor: Supervisor, tmp_path: Path) -> None:
    process = supervisor.start(shell(tmp_path, "bad", "echo no such module; exit 1"))
    with pytest.raises(ServiceError) as caught:
        wait_for_a_death(supervisor)
    assert str(caught.value) == f"bad did not start: no such module (see {tmp_path / 'bad.log'})"
    assert process.exit_code == 1


def test_a_signal_asks_for_the_end(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start(shell(tmp_path, "killer", f"kill -TERM {os.getpid()}; exec sleep 600"))
    with pytest.raises(StopRequested):
        supervisor.run()


class Interrupted:
    """Is told to stop where Python drops exceptions."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_whose_exception_is_lost_asks_for_the_end_too(supervisor: Supervisor, tmp_path: Path) -> None:
    Interrupted()
    with pytest.raises(StopRequested):
        supervisor.run()
    with pytest.raises(StopRequested):
        supervisor.check(0)
    with pytest.raises(StopRequested):
        supervisor.start(shell(tmp_path, "late", "exec sleep 600"))
    assert not (tmp_path / "late.log").exists()


def test_who_does_not_listen_is_made_to_end(supervisor: Supervisor, tmp_path: Path) -> None:
    deaf = supervisor.start(shell(tmp_path, "deaf", "trap '' TERM; echo ready; while :; do sleep 600; done"))
    polite = supervisor.start(shell(tmp_path, "polite", "exec sleep 600"))
    while not deaf.service.log.read_text():
        supervisor.check(0.02)
    members = family(deaf.pid) | family(polite.pid)
    supervisor.stop(["deaf", "polite"], 0.3)
    assert alive(members) == {}
    assert (deaf.exit_code, polite.exit_code) == (-signal.SIGKILL, -signal.SIGTERM)


def test_what_ran_is_written_down_and_ended_next_time(supervisor: Supervisor, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    process = supervisor.start(shell(tmp_path, "left", "exec sleep 600"))
    (trace,) = json.loads(layout.processes.read_text())
    assert (trace["name"], trace["pid"], trace["stop_signal"]) == ("left", process.pid, signal.SIGTERM)
    assert end_leftovers(layout) == ["left"]
    assert process.exit_code == -signal.SIGTERM
    assert end_leftovers(layout) == []


def test_a_process_that_only_has_the_same_pid_is_left_alone(supervisor: Supervisor, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    process = supervisor.start(shell(tmp_path, "other", "exec sleep 600"))
    (trace,) = json.loads(layout.processes.read_text())
    for born in (trace["born"] - 1, 0):
        layout.processes.write_text(json.dumps([trace | {"born": born}]))
        assert end_leftovers(layout) == []
    assert process.exit_code is None


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "data")
    with claim(layout), pytest.raises(ServiceError) as caught:
        claim(layout)
    assert str(caught.value) == f"{tmp_path}/data is in use by process {os.getpid()}: stop it, or set another DATA_DIR"
    claim(layout).close()


class MadeIntoAnother(Command):
    """A start in whose code the request to stop becomes another error, as in a library's C code."""

    def _run(self, supervisor: Supervisor) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except StopRequested as request:
            raise SystemError("returned a result with an exception set") from request


@pytest.mark.usefixtures("supervisor")  # gives the signals back
def test_a_request_that_became_another_error_is_one(
    tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.LAYOUT = Layout(tmp_path)
    MadeIntoAnother().handle()
    assert capsys.readouterr().out == "Stopping\n"
