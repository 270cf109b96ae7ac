"""`manage.py up` from an empty folder to Ready, and two copies side by side."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2, a2a_pb2_grpc
from django.conf import settings
from grpc_health.v1 import health_pb2, health_pb2_grpc

from a2a_host.services.layout import Layout
from a2a_host.services.network import is_healthy
from tests.services.copies import Copy, family, free_port, wait_until

pytestmark = pytest.mark.timeout(400)  # Whole hosts start here.


def send(copy: Copy, agent: str, text: str, key: str = "") -> dict[str, Any]:
    """The reply to SendMessage."""
    message = {"messageId": f"{agent}-{text}", "role": "ROLE_USER", "parts": [{"text": text}]}
    headers = {"A2A-Version": "1.0"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    reply: dict[str, Any] = httpx.post(f"{copy.url}/agents/{agent}", json=request, headers=headers, timeout=30).json()
    return reply


def test_the_last_lines_say_where_what_is(copy: Copy) -> None:
    ready, admin, curl = copy.lines[-3:]
    assert ready == f"Ready: {copy.url}/"
    assert admin == f"Admin: user admin, password in {copy.data_dir}/credentials.json"
    assert curl.startswith(f"curl -s {copy.url}/agents/echo ")


def test_the_curl_line_works_when_pasted(copy: Copy) -> None:
    output = subprocess.run(["bash", "-c", copy.lines[-1]], check=True, capture_output=True, text=True).stdout
    task = json.loads(output)["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][0]["parts"] == [{"text": "Hello"}]


def test_secrets_are_their_owners_only(copy: Copy) -> None:
    assert sorted(copy.credentials) == ["admin_password", "admin_username", "api_key"]
    assert copy.credentials["admin_username"] == "admin"
    assert copy.credentials["api_key"].startswith("a2a_")
    for name in ("credentials.json", "encryption.key", "secret_key", "processes.json"):
        assert stat.S_IMODE((copy.data_dir / name).stat().st_mode) == 0o600
    for name in ("run", "logs", "postgres", "valkey", "beat"):
        assert stat.S_IMODE((copy.data_dir / name).stat().st_mode) == 0o700


def test_the_admin_logs_in_with_the_password_of_the_file(copy: Copy) -> None:
    with httpx.Client(base_url=copy.url, follow_redirects=True) as browser:
        page = browser.get("/admin/login/?next=/admin/")
        assert page.status_code == 200
        form = {"username": "admin", "password": copy.credentials["admin_password"], "next": "/admin/"}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        answer = browser.post("/admin/login/", data=form, headers={"Referer": copy.url})
    assert answer.status_code == 200
    assert str(answer.url) == f"{copy.url}/admin/"


def test_pages_have_their_styles(copy: Copy) -> None:
    assert httpx.get(f"{copy.url}/static/unfold/css/styles.css").status_code == 200


def test_two_copies_have_nothing_in_common(pair: tuple[Copy, Copy]) -> None:
    one, two = pair
    assert one.credentials["api_key"] != two.credentials["api_key"]
    assert one.credentials["admin_password"] != two.credentials["admin_password"]
    assert send(one, "order-agent", "mine", one.credentials["api_key"])["result"]["task"]
    refused = send(one, "order-agent", "theirs", two.credentials["api_key"])
    assert "error" in refused
    assert "result" not in refused


@pytest.mark.spec("10.4.1")
def test_grpc_answers(copy: Copy) -> None:
    assert copy.lines[-4] == f"gRPC is on 127.0.0.1:{copy.grpc_port}"
    with grpc.insecure_channel(f"127.0.0.1:{copy.grpc_port}") as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        message = a2a_pb2.Message(message_id="up", role=a2a_pb2.ROLE_USER, parts=[a2a_pb2.Part(text="Hello")])
        request = a2a_pb2.SendMessageRequest(tenant="echo", message=message)
        task = a2a_pb2_grpc.A2AServiceStub(channel).SendMessage(request, timeout=30).task
    assert task.status.state == a2a_pb2.TASK_STATE_COMPLETED
    assert [part.text for part in task.artifacts[0].parts] == ["Hello"]


def test_a_worker_of_its_own_answers(pair: tuple[Copy, Copy]) -> None:
    for copy in pair:
        task = send(copy, "steps-worker", "steps 2 1")["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_command_in_another_shell_finds_the_database(copy: Copy) -> None:
    assert "echo" in copy.manage("agent", "list")
    key = copy.manage("apikey", "create", "another-shell").splitlines()[-1]
    wait_until(lambda: "result" in send(copy, "order-agent", "hello", key), "the new key", 5)


def test_the_same_folder_twice_is_one_line(copy: Copy) -> None:
    second = subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=settings.BASE_DIR,
        env=copy.environment | {"PORT": str(free_port())},
        capture_output=True,
        text=True,
    )
    holder = f"{copy.data_dir} is in use by process {copy.process.pid}"
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == f"a2a-host: {holder}: stop it, or set another DATA_DIR\n"
    assert is_healthy("127.0.0.1", copy.port, timeout=5)


def test_a_taken_port_is_one_line_and_starts_nothing(copy: Copy, start: Callable[..., Copy]) -> None:
    second = start(PORT=str(copy.port))
    assert second.wait_end() == 1
    assert second.lines == [
        f"a2a-host: port {copy.port} of 127.0.0.1 is taken: choose another one, such as PORT={copy.port + 1}"
    ]
    assert [path.name for path in second.data_dir.iterdir()] == ["lock"]


def test_a_taken_grpc_port_is_one_line_and_starts_nothing(copy: Copy, start: Callable[..., Copy]) -> None:
    second = start(GRPC_PORT=str(copy.grpc_port))
    assert second.wait_end() == 1
    taken = f"port {copy.grpc_port} of 127.0.0.1 is taken"
    assert second.lines == [f"a2a-host: {taken}: choose another one, such as GRPC_PORT={copy.grpc_port + 1}"]
    assert [path.name for path in second.data_dir.iterdir()] == ["lock"]


@pytest.mark.parametrize("name", ["web", "worker", "grpc", "valkey", "postgres"])
def test_a_service_that_dies_is_started_again(pair: tuple[Copy, Copy], name: str) -> None:
    copy = pair[1]
    before = copy.pids()
    os.kill(before[name], signal.SIGKILL)

    def replaced() -> bool:
        return copy.pids()[name] != before[name]

    wait_until(replaced, f"another {name}")
    wait_until(lambda: "result" in _try(lambda: send(copy, "steps-worker", f"steps 1 1 {name}")), "an answer")
    assert copy.lines[-1] == f"{name} ended (SIGKILL), it is started again"
    others = {key: pid for key, pid in before.items() if key != name}
    assert {key: pid for key, pid in copy.pids().items() if key != name} == others


def test_while_a_web_process_restarts_another_answers(pair: tuple[Copy, Copy]) -> None:
    copy = pair[1]
    log = copy.data_dir / "logs" / "web-2.log"
    wait_until(lambda: "startup complete" in log.read_text(), "the second web process")
    before = copy.pids()
    os.kill(before["web"], signal.SIGTERM)
    answers = 0
    while copy.pids()["web"] == before["web"]:
        assert send(copy, "echo", f"meanwhile {answers}")["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        answers += 1
    assert answers
    assert copy.pids()["web-2"] == before["web-2"]


def _try(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except (httpx.HTTPError, ValueError):
        return {}


def test_beat_ends_with_its_worker(copy: Copy) -> None:
    worker = copy.pids()["worker"]
    assert len(family(worker)) == 2
    members = family(worker)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not set(members) & set(family(copy.process.pid)), "the end of both", 5)


def open_files(pid: int) -> set[str]:
    """What a process has open; workers of PostgreSQL come and go meanwhile."""
    found = set()
    with suppress(FileNotFoundError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(os.readlink(descriptor))
    return found


def test_the_database_is_open_to_its_owner_only(copy: Copy) -> None:
    layout = Layout(copy.data_dir)
    assert sorted(path.name for path in layout.run_dir.iterdir()) == [
        ".s.PGSQL.5432",
        ".s.PGSQL.5432.lock",
        "valkey.sock",
    ]
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    sockets = {name for pid in family(copy.process.pid) for name in open_files(pid)}
    inodes = {line.split()[9] for line in listening.splitlines() if line.split()[3] == "0A"}
    assert len({inode for inode in inodes if f"socket:[{inode}]" in sockets}) == 2  # HTTP and gRPC.
