"""Parts in files where others read them: workers, webhooks, gRPC, WebSocket and the task REST dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.sync.client import connect

from a2a_host.services.processes import Process
from tests.content.conftest import Site, encoded, on_disk
from tests.content.test_parts import FILE, TEXT
from tests.support.callers import Caller
from tests.support.deployment import wait_until
from tests.support.old_peers import OldJsonRpc
from tests.support.peers import envelope, message
from tests.support.receiver import Receiver

pytestmark = on_disk
BIG = [{"raw": encoded(FILE), "filename": "a.bin"}, {"text": TEXT}]


@pytest.fixture(scope="module")
def worker(site: Site) -> Iterator[Process]:
    return site.deployment.start_worker(**site.environment)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_worker_and_its_webhooks(alice: Caller, worker: Process, receiver: Receiver, version: str) -> None:
    path = f"/content-{version}"
    if version == "1.0":
        configuration = {"taskPushNotificationConfig": {"url": receiver.url(path)}}
        task = alice.jsonrpc("mirror-worker").say(BIG, configuration=configuration)
        deliveries = [d.json for d in receiver.wait(path, 3)]
        artifacts = [d["artifactUpdate"]["artifact"]["parts"] for d in deliveries if "artifactUpdate" in d]
        assert (task["artifacts"][0]["parts"], artifacts) == (BIG, [BIG])
        return
    old = [{"kind": "file", "file": {"bytes": encoded(FILE), "name": "a.bin"}}, {"kind": "text", "text": TEXT}]
    peer = OldJsonRpc(alice, "mirror-worker")
    task = peer.say(old, {"pushNotificationConfig": {"url": receiver.url(path)}})
    last = receiver.wait(path, 3)[-1].json
    assert task["artifacts"][0]["parts"] == last["artifacts"][0]["parts"] == last["history"][0]["parts"] == old


def test_grpc(site: Site, alice: Caller) -> None:
    site.deployment.start_grpc(**site.environment)
    peer = alice.grpc("mirror")
    sent = message(BIG)
    task = peer.send({"message": sent})["task"]
    assert task["history"][0]["parts"] == BIG
    assert peer.get(task["id"]) == task
    assert peer.list(includeArtifacts=True)["tasks"][0]["artifacts"][0]["parts"] == BIG
    with site.no_new_files(alice):
        assert alice.jsonrpc("mirror").send({"message": sent})["task"]["id"] == task["id"]
    with peer.say_streaming(BIG) as stream:
        artifacts = [e.response["artifactUpdate"] for e in stream.rest() if "artifactUpdate" in e.response]
    assert artifacts[0]["artifact"]["parts"] == BIG


def test_websocket(site: Site, alice: Caller) -> None:
    url = f"ws://127.0.0.1:{site.web.port}/agents/mirror/ws"
    with connect(url, additional_headers=alice.headers, max_size=None) as line:
        line.send(envelope("SendMessage", {"message": message(BIG)}))
        task = json.loads(line.recv())["result"]["task"]
    assert task["history"][0]["parts"] == task["artifacts"][0]["parts"] == BIG


def test_task_rest(site: Site, alice: Caller, http: httpx.Client) -> None:
    base = f"{site.web.url}/agents/mirror"
    headers = {"authorization": f"Bearer {alice.key}"}
    parts = [{"type": "file", "file": {"bytes": encoded(FILE), "name": "a.bin"}}, {"type": "text", "text": TEXT}]
    sent = {"message": {"role": "user", "parts": parts}}
    created = http.post(f"{base}/tasks", json=sent, headers=headers)
    assert created.status_code == 202
    path = f"{base}/tasks/{created.json()['id']}"
    wait_until(lambda: http.get(path, headers=headers).json()["status"]["state"] == "completed", "the end of the task")
    reply = http.get(f"{path}/messages", headers=headers).json()
    assert reply[0]["parts"][1]["text"] == TEXT
    assert reply[0]["parts"][0]["file"]["bytes"] == encoded(FILE)
