"""How often operations are called: as many times as were counted, in every binding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.callers import Caller
from tests.support.deployment import Deployment, wait_until
from tests.support.peers import message
from tests.support.refusals import Refused

ROWS = """SELECT binding, u.version, operation, calls, errors
    FROM agents_usage u JOIN agents_agent a ON a.id = u.agent_id WHERE caller = %s AND slug = %s ORDER BY 1, 2, 3"""
Row = tuple[Any, ...]


def counted(deployment: Deployment, caller: Caller, slug: str) -> list[Row]:
    return deployment.query(ROWS, [caller.owner, slug])


def refused(call: Callable[[], Any]) -> None:
    with pytest.raises(Refused):
        call()


def use(peer: Any) -> None:
    """Three messages, two streams, four wrong requests of three kinds."""
    tasks = [peer.say()["id"] for _ in range(3)]
    for _ in range(2):
        with peer.say_streaming("hi") as stream:
            stream.rest()
    peer.get(tasks[0])
    peer.list()
    refused(lambda: peer.get("none"))
    refused(lambda: peer.cancel(tasks[0]))
    refused(lambda: peer.send({"message": {}}))
    refused(lambda: peer.list(pageSize=0))


def expected(binding: str) -> list[Row]:
    return [
        (binding, "1.0", "CancelTask", 1, 1),
        (binding, "1.0", "GetTask", 2, 1),
        (binding, "1.0", "ListTasks", 2, 1),
        (binding, "1.0", "SendMessage", 4, 1),
        (binding, "1.0", "SendStreamingMessage", 2, 0),
    ]


@pytest.mark.usefixtures("grpc_server")
def test_each_call_of_each_binding_is_counted_once(deployment: Deployment, alice: Caller, bob: Caller) -> None:
    use(alice.rest("echo"))
    use(alice.jsonrpc("echo"))
    use(alice.at("echo", "grpc"))
    bob.rest("echo").say()
    everything = [*expected("GRPC"), *expected("HTTP+JSON"), *expected("JSONRPC")]
    wait_until(lambda: counted(deployment, alice, "echo") == everything, "the counters")
    wait_until(lambda: counted(deployment, bob, "echo") == [("HTTP+JSON", "1.0", "SendMessage", 1, 0)], "the other's")
    assert counted(deployment, alice, "echo") == everything


def test_a_body_that_is_not_read_is_a_failure(deployment: Deployment, alice: Caller) -> None:
    plain = alice.rest("echo").with_headers(content_type="text/plain")
    refused(lambda: plain.send({"message": message()}))
    everything = [("HTTP+JSON", "1.0", "SendMessage", 1, 1)]
    wait_until(lambda: counted(deployment, alice, "echo") == everything, "the counters")


def test_a_process_that_stops_writes_what_it_counted(deployment: Deployment, alice: Caller) -> None:
    web = deployment.start_web()
    peer = alice.before(web).jsonrpc("echo")
    for _ in range(25):
        peer.say()
    web.stop()
    assert counted(deployment, alice, "echo") == [("JSONRPC", "1.0", "SendMessage", 25, 0)]


def test_what_no_caller_and_no_operation_is_known_of_is_not_counted(
    deployment: Deployment, alice: Caller, anonymous: Caller
) -> None:
    before = deployment.query(
        "SELECT count(*) FROM agents_usage u JOIN agents_agent a ON a.id = u.agent_id WHERE slug = 'order-agent'"
    )
    refused(lambda: anonymous.rest("order-agent").send({"message": message()}))
    refused(lambda: alice.jsonrpc("order-agent").call("Nope", {}))
    alice.jsonrpc("order-agent").list()
    wait_until(lambda: counted(deployment, alice, "order-agent"), "the counters")
    assert counted(deployment, alice, "order-agent") == [("JSONRPC", "1.0", "ListTasks", 1, 0)]
    after = deployment.query(
        "SELECT count(*) FROM agents_usage u JOIN agents_agent a ON a.id = u.agent_id WHERE slug = 'order-agent'"
    )
    assert after[0][0] == before[0][0] + 1
