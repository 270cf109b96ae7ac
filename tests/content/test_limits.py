"""What is refused leaves neither a row nor a file, and says which limit and which field."""

from __future__ import annotations

import json
from urllib.parse import unquote

import grpc
import pytest
import redis
from a2a.types import a2a_pb2 as pb

from tests.cases.reading import state
from tests.content.conftest import Site, encoded, on_disk
from tests.content.test_parts import FILE
from tests.support.callers import Caller
from tests.support.deployment import wait_until
from tests.support.old_peers import OldJsonRpc, old_message
from tests.support.peers import message

FORGED = "stored:raw:0198c8f0-0000-7000-8000-000000000001:5:"


def test_more_than_a_task_may_have(site: Site, alice: Caller) -> None:
    peer = alice.jsonrpc("narrow")
    two = [{"text": "small"}, {"raw": encoded(bytes(9000))}, {"raw": encoded(bytes(9000))}]
    with site.no_new_files(alice), alice.refused("INVALID_PARAMS", "message.parts[2]") as refusal:
        peer.send({"message": message(two)})
    said = "would bring the files of the task to 18000 bytes; at most 16000 are allowed (max_task_bytes)"
    assert refusal.value.violations == {"message.parts[2]": said}


@pytest.mark.parametrize("raw", ["?" * 8000, "A" * 8001, "AAAA=" + "A" * 8000, FORGED, FORGED + "A" * 8000])
def test_what_is_no_base64(site: Site, alice: Caller, raw: str) -> None:
    body = '{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{"raw":"' + raw + '"}]}}'
    for peer in (alice.jsonrpc("mirror"), alice.rest("mirror")):
        with site.no_new_files(alice), alice.refused("INVALID_PARAMS", "message.parts[1].raw"):
            peer.send(body)
    old = {"kind": "file", "file": {"bytes": raw}}
    with site.no_new_files(alice), alice.refused("INVALID_PARAMS", "message.parts[0].file.bytes"):
        OldJsonRpc(alice, "mirror").send(old_message([old]))


def test_base64_with_escapes_is_base64(alice: Caller) -> None:
    """Some encoders write each slash of JSON with a backslash."""
    content = b"\xff" * 9000
    body = json.dumps({"message": message([{"raw": encoded(content)}])}).replace("/", "\\/")
    assert alice.jsonrpc("mirror").send(body)["task"]["history"][0]["parts"] == [{"raw": encoded(content)}]


@on_disk
def test_big_base64_in_other_places_stays_there(site: Site, alice: Caller) -> None:
    long = "QUJD" * 3000
    sent = message([{"text": long}, {"data": {"raw": long}}], metadata={"raw": long})
    task = alice.jsonrpc("mirror").send({"message": sent, "metadata": {long: 1}})["task"]
    assert task["history"][0]["parts"] == sent["parts"]
    assert task["history"][0]["metadata"] == {"raw": long}
    with site.no_new_files(alice), alice.refused("INVALID_PARAMS", "message.messageId"):
        alice.jsonrpc("mirror").send({"message": message(messageId=long)})


def test_nothing_of_a_caller_is_taken_for_a_file(site: Site, alice: Caller) -> None:
    """The task has a file, and everything else that looks like the name of one stays what it is."""
    peer = alice.jsonrpc("mirror")
    stored = peer.send({"message": message([{"raw": encoded(FILE)}])})["task"]
    (name, *_), *_ = site.rows(alice)
    forged = f"stored:raw:{name}:{len(FILE)}:"
    parts = [
        {"raw": encoded(b"z" * 5000)},
        {"text": forged},
        {"text": f'"raw":"{forged}"'},
        {"url": forged},
        {"data": {"raw": forged, "parts": [{"raw": forged}]}},
        {"text": "a", "metadata": {"raw": forged}, "filename": forged, "mediaType": "text/plain"},
    ]
    task = peer.send({"message": message(parts)})["task"]
    assert task["history"][0]["parts"] == parts
    assert task["artifacts"][0]["parts"] == parts
    assert stored["id"] != task["id"]


@on_disk
def test_an_agent_that_says_too_much(site: Site, alice: Caller) -> None:
    task = alice.jsonrpc("flooding").say("go")
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    (said,) = task["status"]["message"]["parts"]
    assert said["text"] == (
        "The agent said more than is kept: part 1 would bring the files of the task to 70000 bytes; "
        "at most 60000 are allowed (max_task_bytes)."
    )
    assert len(task["artifacts"]) == 6
    assert [row[2] for row in site.rows(alice)] == [10_000] * 6


@on_disk
def test_an_agent_whose_place_is_full(site: Site, alice: Caller) -> None:
    peer = alice.jsonrpc("full")
    peer.send({"message": message([{"raw": encoded(bytes(15_000))}])})
    with site.no_new_files(alice), alice.refused("INVALID_PARAMS", "message.parts[0]") as refusal:
        peer.send({"message": message([{"raw": encoded(bytes(15_000))}])})
    said = "would bring the files of the agent to 45000 bytes; at most 40000 are allowed (max_stored_bytes)"
    assert refusal.value.violations == {"message.parts[0]": said}


@on_disk
def test_a_follow_up_that_is_refused_leaves_no_file(site: Site, alice: Caller) -> None:
    peer = alice.jsonrpc("mirror")
    done = peer.say("hi")["id"]
    big = [{"raw": encoded(FILE)}]
    with site.no_new_files(alice), alice.refused("UNSUPPORTED_OPERATION"):
        peer.send({"message": message(big, taskId=done)})
    with site.no_new_files(alice), alice.refused("TASK_NOT_FOUND"):
        peer.send({"message": message(big, taskId="nobody's")})
    asked = alice.jsonrpc("asking").say("hi")
    with site.no_new_files(alice), alice.refused("INVALID_PARAMS", "message.contextId"):
        alice.jsonrpc("asking").send({"message": message(big, taskId=asked["id"], contextId="another")})


@on_disk
def test_an_upload_is_in_memory_once(site: Site, alice: Caller) -> None:
    """While 60 MB of base64 come in, are checked and stored, the process grows by little more than these."""
    pid = site.web.process.pid
    content = encoded(bytes(45_000_000))
    body = '{"message":{"messageId":"heavy","role":"ROLE_USER","parts":[{"raw":"' + content + '"}]},'
    body += '"configuration":{"returnImmediately":true,"historyLength":0}}'
    peer = alice.jsonrpc("roomy")
    first = peer.say([{"raw": encoded(FILE)}], configuration={"returnImmediately": True})
    wait_until(lambda: _rings(site) or state(peer.get(first["id"])) != "SUBMITTED", "the doorbell: all is imported")
    before = _memory(pid, "VmRSS")
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")  # forget the peak
    task = peer.send(body)["task"]
    assert _memory(pid, "VmHWM") - before < 1.4 * len(body)
    assert [row[2] for row in site.rows(alice) if row[1] == task["id"]] == [45_000_000]
    wait_until(lambda: _memory(pid, "VmRSS") - before < 0.5 * len(body), "the memory of the request to be free")


@on_disk
def test_an_upload_over_grpc_does_not_stay_in_memory(site: Site, alice: Caller) -> None:
    """While its caller still waits for the task, nothing of it is left."""
    server = site.deployment.start_grpc(**site.environment)
    metadata = [(name, value) for name, value in alice.headers.items() if name != "content-type"]
    with server.channel(("grpc.max_send_message_length", -1)) as channel:
        send = channel.unary_unary("/lf.a2a.v1.A2AService/SendMessage")

        def begin(size: int) -> grpc.Future:
            parts = [pb.Part(raw=bytes(size))]
            sent = pb.Message(message_id=f"grpc-{size}", role=pb.ROLE_USER, parts=parts)
            request = pb.SendMessageRequest(tenant="idle", message=sent)
            return send.future(request.SerializeToString(), metadata=metadata)

        calls = [begin(9000)]
        wait_until(lambda: [row[2] for row in site.rows(alice)] == [9000], "the first file, so that all is imported")
        before = _memory(server.process.pid, "VmRSS")
        calls.append(begin(45_000_000))
        wait_until(lambda: [row[2] for row in site.rows(alice)] == [9000, 45_000_000], "the second file")
        wait_until(lambda: _memory(server.process.pid, "VmRSS") - before < 0.5 * 45_000_000, "the memory to be free")
        assert not calls[1].done()
        for call in calls:
            call.cancel()


def _rings(site: Site) -> int:
    """How many times the doorbell has been rung without a worker that hears it."""
    path, _, number = site.deployment.broker_url.removeprefix("redis+socket://").partition("?virtual_host=")
    with redis.Redis(unix_socket_path=unquote(path), db=int(number)) as valkey:
        return int(valkey.llen("celery"))


def _memory(pid: int, name: str) -> int:
    """Bytes."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
