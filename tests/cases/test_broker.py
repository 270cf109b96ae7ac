"""Area durability: a send while the broker is away (the rest of this area is in tests/durability)."""

from __future__ import annotations

import time

import pytest

from tests.cases.reading import state
from tests.support.callers import Caller
from tests.support.deployment import Web


@pytest.mark.case("T27")
@pytest.mark.spec("3.1.3")
def test_a_send_without_a_broker_is_kept(alice: Caller, lonely_web: Web, binding: str) -> None:
    """Taken at once, as a task that waits for a worker; nobody's reply hangs on the broker."""
    peer = alice.before(lonely_web).at("worker-echo", binding)
    started = time.monotonic()
    task = peer.start("later")
    assert time.monotonic() - started < 1
    assert state(task) == "SUBMITTED"
    assert peer.get(task["id"]) == task
    assert peer.list()["totalSize"] == 1
    assert state(alice.before(lonely_web).at("echo", binding).say()) == "COMPLETED"
    assert state(peer.cancel(task["id"])) == "CANCELED"
