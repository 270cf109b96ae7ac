"""Parts that are kept in files come back as they came, wherever a task is read (§4.1.6)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.content.conftest import Site, encoded
from tests.support.callers import Caller
from tests.support.old_peers import OldJsonRpc, old_message
from tests.support.peers import envelope, message

FILE = bytes(range(256)) * 40
TEXT = 'Zwölf "Boxkämpfer"\n' * 400
DATA = {"numbers": [1, 1.0, 1e3, 12345678901234567890], "long": ["x" * 5000]}
DATA_TEXT = json.dumps(DATA)
PARTS: list[dict[str, Any]] = [
    {"raw": encoded(FILE), "filename": "a.bin", "mediaType": "application/x-thing", "metadata": {"k": 1.0}},
    {"text": TEXT},
    {"data": DATA},
    {"text": "small"},
    {"raw": encoded(b"tiny")},
]
SIZES = [len(FILE), len(TEXT.encode()), len(DATA_TEXT)]


@pytest.mark.spec("4.1.6")
def test_big_parts_come_back_as_they_came(site: Site, alice: Caller) -> None:
    peer = alice.jsonrpc("mirror")
    sent = message(PARTS)
    task = peer.send({"message": sent})["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["history"][0]["parts"] == PARTS
    assert peer.get(task["id"]) == task
    # What the agent gives is protobuf: numbers are doubles there.
    mirrored = task["artifacts"][0]["parts"]
    assert [mirrored[i] for i in (0, 1, 3, 4)] == [PARTS[i] for i in (0, 1, 3, 4)]
    said = [part["text"] for part in task["status"]["message"]["parts"]]
    assert said[:2] == [f"raw {len(FILE)} {_sha(FILE)}", f"text {SIZES[1]} {_sha(TEXT.encode())}"]
    rows = site.rows(alice)
    assert sorted(row[2] for row in rows)[-6:] == sorted(row[2] for row in rows)
    assert [row[2] for row in rows[:3]] == SIZES
    assert rows[0][1:] == (task["id"], len(FILE), hashlib.sha256(FILE).hexdigest(), "application/x-thing", "a.bin")
    assert {row[0] for row in rows} <= site.names()
    assert site.deployment.query("SELECT has_stored_parts FROM tasks_app_task WHERE id = %s", [task["id"]]) == [(True,)]


def test_bodies_do_not_hold_what_is_in_files(site: Site, alice: Caller) -> None:
    task = alice.jsonrpc("mirror").send({"message": message([{"raw": encoded(bytes(300_000))}])})["task"]
    (longest,) = site.deployment.query(
        """SELECT greatest(max(length(m.body)), max(length(e.body)), max(length(t.status))) FROM tasks_app_task t
        JOIN tasks_app_message m ON m.task_id = t.id JOIN tasks_app_event e ON e.task_id = t.id WHERE t.id = %s""",
        [task["id"]],
    )
    assert longest[0] < 1000


def test_numbers_of_data_stay_as_they_were_written(alice: Caller) -> None:
    text = '{"n":[1.0,1e3,12345678901234567890],"long":"' + "y" * 5000 + '"}'
    body = '{"message":{"messageId":"numbers","role":"ROLE_USER","parts":[{"data":' + text + "}]}}"
    task = alice.jsonrpc("mirror").send(body)["task"]
    reply = alice.jsonrpc("mirror").post(envelope("GetTask", {"id": task["id"]}))
    assert f'"data":{text}' in reply.text


def test_url_safe_base64_comes_back_in_the_standard_alphabet(alice: Caller) -> None:
    content = b"\xff\xfe\xfd" * 3000 + b"\x01"
    loose = encoded(content).replace("+", "-").replace("/", "_").rstrip("=")
    task = alice.jsonrpc("mirror").send({"message": message([{"raw": loose}])})["task"]
    assert task["history"][0]["parts"] == [{"raw": encoded(content)}]


@pytest.mark.spec("3.1.4")
def test_lists_and_short_histories(alice: Caller) -> None:
    peer = alice.jsonrpc("mirror")
    task = peer.send({"message": message([{"text": TEXT}])})["task"]
    (listed,) = peer.list(includeArtifacts=True, historyLength=5)["tasks"]
    assert listed == task
    assert "history" not in peer.get(task["id"], historyLength=0)
    assert "artifacts" not in peer.list()["tasks"][0]


@pytest.mark.spec("3.1.2")
def test_streams_carry_the_content(alice: Caller) -> None:
    peer = alice.jsonrpc("mirror")
    with peer.say_streaming([{"raw": encoded(FILE)}]) as stream:
        events = [event.response for event in stream.rest()]
    assert events[0]["task"]["history"][0]["parts"] == [{"raw": encoded(FILE)}]
    artifacts = [event["artifactUpdate"]["artifact"]["parts"] for event in events if "artifactUpdate" in event]
    assert artifacts == [[{"raw": encoded(FILE)}]]


@pytest.mark.spec("4.2.2")
def test_chunks_of_an_artifact_keep_their_order(site: Site, alice: Caller) -> None:
    peer = alice.jsonrpc("chunks")
    task = peer.say("go")
    whole = [{"text": "a" * 5000}, {"text": "bbb"}, {"raw": encoded(b"c" * 6000)}]
    assert [a["parts"] for a in task["artifacts"]] == [whole]
    assert [row[2] for row in site.rows(alice)] == [5000, 6000]


def test_the_next_turn_is_given_what_was_said_before(alice: Caller) -> None:
    peer = alice.jsonrpc("asking")
    task = peer.say([{"raw": encoded(FILE)}])
    assert task["status"]["message"]["parts"] == [{"text": "?" * 5000}]
    done = peer.say("go on", taskId=task["id"])
    (said,) = done["status"]["message"]["parts"]
    assert said["text"].split("; ") == [
        f"raw {len(FILE)} {_sha(FILE)}", f"text 5000 {_sha(b'?' * 5000)}", f"text 5 {_sha(b'go on')}",
    ]  # fmt: skip
    assert [m["parts"] for m in done["history"]] == [
        [{"raw": encoded(FILE)}], [{"text": "?" * 5000}], [{"text": "go on"}],
    ]  # fmt: skip


def test_a_message_instead_of_a_task(alice: Caller) -> None:
    answer = alice.jsonrpc("answering").send({"message": message("hi")})
    assert answer["message"]["parts"] == [{"text": "m" * 7000}]


def test_0_3_and_http(alice: Caller) -> None:
    old = OldJsonRpc(alice, "mirror")
    part = {"kind": "file", "file": {"bytes": encoded(FILE), "name": "a.bin", "mimeType": "application/x-thing"}}
    task = old.send(old_message([part]))
    assert task["history"][0]["parts"] == [part]
    assert old.get(task["id"])["artifacts"][0]["parts"] == [part]
    rest = alice.rest("mirror")
    sent = rest.send({"message": message(PARTS)})["task"]
    assert rest.get(sent["id"])["history"][0]["parts"] == PARTS


@pytest.mark.spec("3.3.1")
def test_a_repeated_message_stores_nothing_more(site: Site, alice: Caller) -> None:
    peer = alice.jsonrpc("mirror")
    sent = message(PARTS)
    task = peer.send({"message": sent})["task"]
    with site.no_new_files(alice):
        assert peer.send({"message": sent})["task"] == task
        assert alice.rest("mirror").send({"message": sent})["task"] == task
    other = sent | {"parts": [{"raw": encoded(FILE[:-1] + b"!")}]}
    with site.no_new_files(alice), alice.refused("INVALID_PARAMS", "message.messageId"):
        peer.send({"message": other})


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
