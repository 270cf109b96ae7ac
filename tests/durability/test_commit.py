"""Nobody is told of a task before it is committed, shown by a web process that is killed while it cannot commit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.durability.host import Host
from tests.durability.load import Sent, new_send, send
from tests.support.deployment import wait_until

_WAITING = "SELECT count(*) FROM pg_locks WHERE relation = 'tasks_app_task'::regclass AND NOT granted"
_HEARD = "SELECT message_id, count(*) FROM tasks_app_message WHERE message_id = ANY(%s) GROUP BY 1"


@pytest.mark.spec("3.1.1")
def test_no_reply_comes_before_the_commit(host: Host) -> None:
    known = host.agent("echo").say()
    waiting = [new_send(number) for number in range(12)]

    def outcome(sent: Sent) -> dict[str, Any] | None:
        try:
            return send(host, sent)
        except httpx.TransportError:
            return None

    with ThreadPoolExecutor(len(waiting)) as pool, host.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE tasks_app_task IN SHARE MODE")
        outcomes = [pool.submit(outcome, sent) for sent in waiting]
        wait_until(lambda: host.query(_WAITING)[0][0], "the journal at the lock")
        for _ in range(20):  # Whoever answers too early has had the time for it.
            assert host.agent("echo").get(known["id"]) == known
        killed = host.kill("web")
        assert [reply.result() for reply in outcomes] == [None] * len(waiting)
    host.wait_for_another("web", killed)
    host.wait_healthy()

    replies = [[send(host, sent)["result"]["task"]["id"] for sent in waiting] for _ in range(2)]
    assert replies[0] == replies[1]
    ids = [params["message"]["messageId"] for _, params in waiting]
    assert dict(host.query(_HEARD, [ids])) == dict.fromkeys(ids, 1)
