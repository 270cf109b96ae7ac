"""A host that is lost with its disk, and what the backup brings back elsewhere: everything, and it goes on."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from django.conf import settings

from a2a_host.services.layout import Layout
from protocol.ids import new_id
from tests.services.copies import Copy, alive, family
from tests.support.callers import make_client
from tests.support.deployment import wait_until
from tests.support.peers import JsonRpcPeer, message
from tests.support.receiver import Receiver

SECRET = "only the receiver knows"
COUNTED = "SELECT agent_id, owner, state, count(*) FROM tasks_app_task GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
COUNTERS = """SELECT agent_id, owner, state, sum(tasks)::bigint FROM tasks_app_taskcount GROUP BY 1, 2, 3
    HAVING sum(tasks) <> 0 ORDER BY 1, 2, 3"""
ADD_PART = """INSERT INTO tasks_app_storedpart
        (id, agent_id, task_id, name, size, digest, media_type, filename, created_at)
    SELECT %(id)s, agent_id, id, %(name)s, 5, '', '', '', now() FROM tasks_app_task WHERE id = %(task)s"""


class Lost:
    """A host that ran, was backed up while it was called, and is gone: what its callers know of it."""

    def __init__(self, folder: Path, client: httpx.Client, receiver: Receiver) -> None:
        self.client = client
        self.backup = folder / "host.tar"
        self.folder = folder
        receiver.answers["/hook"] = lambda _: 503
        self.copy = Copy(folder / "first", OUTBOUND_ALLOW="127.0.0.1")
        try:
            self.copy.wait_ready()
            self.credentials = self.copy.credentials
            self._talk(receiver)
            with _load(self.peer("echo")) as told:
                wait_until(lambda: len(told) >= 20, "some load")
                self.acknowledged = list(told)
                self.said = self.copy.manage("backup", str(self.backup), "--with-key")
                more = len(told) + 5
                wait_until(lambda: len(told) >= more, "load after the backup")
        finally:
            self._destroy()

    def peer(self, slug: str, copy: Copy | None = None) -> JsonRpcPeer:
        """An agent of this host, or of another one with its credentials."""
        headers = {"a2a-version": "1.0", "authorization": f"Bearer {self.credentials['api_key']}"}
        return JsonRpcPeer(self.client, (copy or self.copy).port, slug, headers)

    def _talk(self, receiver: Receiver) -> None:
        self.question = self.peer("ask").say("a question")
        self.message = message("said once")
        self.answer = self.peer("echo").send({"message": self.message})["task"]
        self.listed = [self.peer("data").say([{"data": {"n": n}}])["id"] for n in range(3)]
        self.page = self.peer("data").list(pageSize=1)
        config = {"url": receiver.url("/hook"), "authentication": {"scheme": "Bearer", "credentials": SECRET}}
        self.told = self.peer("steps").say("steps 2 0", configuration={"taskPushNotificationConfig": config})
        receiver.wait("/hook", 1)
        self.file = self._add_file(self.told["id"])
        os.kill(self.copy.pids()["worker"], signal.SIGSTOP)  # Nobody takes what is queued from here on.
        self.queued = self.peer("steps-worker").start("steps 2 0")
        self.running = self.peer("hold").start("hold")

    def _add_file(self, task_id: str) -> str:
        """A big part of a task; its name in the storage."""
        part = new_id()
        name = f"{part[-2:]}/{part}"
        path = self.copy.data_dir / "parts" / name
        path.parent.mkdir(mode=0o700, parents=True)
        path.write_bytes(b"12345")
        with connect(self.copy) as connection:
            connection.execute(ADD_PART, {"id": part, "name": name, "task": task_id})
        return name

    def _destroy(self) -> None:
        members = family(self.copy.process.pid) if self.copy.process.poll() is None else {}
        for pid in members:
            os.kill(pid, signal.SIGKILL)
        self.copy.process.wait(10)
        wait_until(lambda: not alive(members), "the end of every process")
        shutil.rmtree(self.copy.data_dir)


@contextmanager
def _load(peer: JsonRpcPeer) -> Iterator[list[str]]:
    """Clients that send all the time inside the block; the ids of the tasks that they were told of."""
    told: list[str] = []
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            told.append(peer.say("hello")["id"])

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield told
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def connect(copy: Copy) -> psycopg.Connection:
    return psycopg.connect(Layout(copy.data_dir).database_url, autocommit=True)


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="a2a-backup-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def lost(folder: Path, receiver: Receiver) -> Iterator[Lost]:
    with make_client() as client:
        yield Lost(folder, client, receiver)


@pytest.fixture(scope="module")
def restored(lost: Lost, receiver: Receiver) -> Iterator[Copy]:
    """Another copy, with nothing but the backup."""
    data_dir = lost.folder / "second"
    environment = lost.copy.environment | {"DATA_DIR": str(data_dir)}
    done = subprocess.run(
        [sys.executable, "manage.py", "restore", str(lost.backup)],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("Restored ")
    receiver.answers["/hook"] = lambda _: 200
    copy = Copy(data_dir, OUTBOUND_ALLOW="127.0.0.1")
    try:
        yield copy.wait_ready()
    finally:
        copy.close()


def test_the_backup_is_one_file_for_its_owner_alone(lost: Lost) -> None:
    assert stat.S_IMODE(lost.backup.stat().st_mode) == 0o600
    assert [path.name for path in lost.folder.iterdir() if "tar" in path.name] == ["host.tar"]
    assert lost.said.splitlines()[-1].startswith(f"Wrote {lost.backup}: ")


def test_every_acknowledged_task_is_there_and_the_counters_are_exact(lost: Lost, restored: Copy) -> None:
    with connect(restored) as connection:
        stored = {row[0] for row in connection.execute("SELECT id FROM tasks_app_task")}
        assert set(lost.acknowledged) - stored == set()
        counted = wait_until(lambda: _same(connection), "counters that agree with the tasks")
    assert len(counted) > 5


def _same(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        counted = connection.execute(COUNTED).fetchall()
        assert connection.execute(COUNTERS).fetchall() == counted
    return counted


def test_keys_and_page_tokens_hold(lost: Lost, restored: Copy) -> None:
    assert restored.credentials == lost.credentials
    page = lost.peer("data", restored).list(pageSize=5, pageToken=lost.page["nextPageToken"])
    assert [lost.page["tasks"][0]["id"], *(task["id"] for task in page["tasks"])] == lost.listed[::-1]
    assert page["totalSize"] == 3


def test_a_message_that_was_accepted_finds_its_task(lost: Lost, restored: Copy) -> None:
    assert lost.peer("echo", restored).send({"message": lost.message})["task"] == lost.answer


def test_what_was_queued_runs_and_what_ran_ends(lost: Lost, restored: Copy) -> None:
    queued, running = lost.peer("steps-worker", restored), lost.peer("hold", restored)
    wait_until(lambda: _state(queued, lost.queued) == "TASK_STATE_COMPLETED", "the end of the queued task")
    wait_until(lambda: _state(running, lost.running) == "TASK_STATE_FAILED", "the end of the lost run")


def _state(peer: JsonRpcPeer, task: dict[str, object]) -> str:
    state: str = peer.get(str(task["id"]))["status"]["state"]
    return state


@pytest.mark.spec("3.1.6")
def test_a_stream_resumes_and_the_conversation_goes_on(lost: Lost, restored: Copy) -> None:
    peer = lost.peer("ask", restored)
    with peer.with_headers(last_event_id="1").subscribe(lost.question["id"]) as stream:
        first = stream.next()
        assert (first.id, first.state) == (1, "WORKING")
        peer.say("an answer", taskId=lost.question["id"])
        rest = stream.rest()
    assert [event.id for event in rest] == list(range(2, 2 + len(rest)))
    assert rest[-1].state == "COMPLETED"


@pytest.mark.spec("4.3.3")
def test_webhooks_go_on_where_they_were_with_their_secrets(lost: Lost, restored: Copy, receiver: Receiver) -> None:
    deliveries = receiver.wait_for_state("/hook", "TASK_STATE_COMPLETED")
    assert {d.headers["authorization"] for d in deliveries} == {f"Bearer {SECRET}"}
    bodies = list(dict.fromkeys(d.body for d in deliveries))
    assert len(bodies) == 4  # WORKING, two steps, COMPLETED, in order; the first one more often


def test_files_are_back(lost: Lost, restored: Copy) -> None:
    path = restored.data_dir / "parts" / lost.file
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"12345", 0o600)
