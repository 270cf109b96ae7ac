"""A storage that is away or has lost a file: who is refused, what is still answered, and that nothing else suffers."""

from __future__ import annotations

import httpx
import pytest

from tests.content.conftest import Site, encoded, on_disk
from tests.content.s3 import BUCKET, client
from tests.content.test_parts import FILE
from tests.support.callers import Caller
from tests.support.peers import message
from tests.support.refusals import Refused

BIG = [{"raw": encoded(FILE), "filename": "a.bin"}]


def test_a_file_that_is_gone(site: Site, alice: Caller, http: httpx.Client) -> None:
    peer = alice.jsonrpc("mirror")
    lost, whole = (peer.send({"message": message(BIG)})["task"] for _ in range(2))
    gone = next(row[0] for row in site.rows(alice) if row[1] == lost["id"])
    site.remove(gone)
    with pytest.raises(Refused) as refusal:
        peer.get(lost["id"])
    assert refusal.value.reason == "INTERNAL"
    assert (refusal.value.metadata["taskId"], refusal.value.metadata["file"]) == (lost["id"], gone)
    assert peer.get(whole["id"]) == whole
    listed = {task["id"]: task for task in peer.list(includeArtifacts=True, historyLength=9)["tasks"]}
    assert listed[whole["id"]] == whole
    (part,) = listed[lost["id"]]["history"][0]["parts"]
    assert part["filename"] == "a.bin"
    assert http.get(part["url"]).status_code == 404
    assert listed[lost["id"]]["artifacts"] == lost["artifacts"]


@on_disk
def test_an_agent_is_not_given_half_a_task(site: Site, alice: Caller) -> None:
    peer = alice.jsonrpc("asking")
    task = peer.say(BIG)
    site.remove(site.rows(alice)[0][0])
    done = peer.say("go on", taskId=task["id"])
    assert done["status"]["state"] == "TASK_STATE_FAILED"
    (said,) = done["status"]["message"]["parts"]
    assert said == {"text": "A file that belongs to the task is not in the storage any more."}


@pytest.mark.parametrize("site", ["s3"], indirect=True)
def test_a_storage_that_does_not_answer(site: Site, alice: Caller, http: httpx.Client) -> None:
    peer, server = alice.jsonrpc("mirror"), site.remote
    assert server is not None
    task, small = peer.send({"message": message(BIG)})["task"], peer.say("small")
    server.stop()
    try:
        rows = site.rows(alice)
        with alice.refused("UNAVAILABLE"):
            peer.send({"message": message(BIG)})
        assert site.rows(alice) == rows or len(site.rows(alice)) == len(rows) + 1  # its file may not be deleted now
        with pytest.raises(Refused) as refusal:
            peer.get(task["id"])
        assert (refusal.value.reason, refusal.value.metadata["taskId"]) == ("UNAVAILABLE", task["id"])
        assert peer.get(small["id"]) == small
        assert peer.say("hi")["status"]["state"] == "TASK_STATE_COMPLETED"
        listed = {t["id"]: t for t in peer.list(historyLength=9)["tasks"]}
        (part,) = listed[task["id"]]["history"][0]["parts"]
        assert http.get(part["url"]).status_code == 503
    finally:
        server.start()
        client(server).create_bucket(Bucket=BUCKET)
    assert peer.send({"message": message(BIG)})["task"]["history"][0]["parts"] == BIG
