"""The same application under daphne, which `manage.py runserver` uses: no lifespan, another HTTP parser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from django.conf import settings
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from a2a_host.services.network import is_healthy, listen
from tests.support.deployment import HOST, Deployment, wait_until
from tests.support.peers import envelope, message


@pytest.fixture(scope="module")
def daphne(deployment: Deployment) -> Iterator[str]:
    """URL of a daphne on the suite's database."""
    with listen(HOST, 0) as listener:
        port = listener.getsockname()[1]
    environment = os.environ | {"DATABASE_URL": deployment.database_url, "BROKER_URL": deployment.broker_url}
    command = [sys.executable, "-m", "daphne", "-v0", "-b", HOST, "-p", str(port), "a2a_host.asgi:application"]
    with subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: process.poll() is None and is_healthy(HOST, port, timeout=1.0), "daphne")
            yield f"http://{HOST}:{port}"
        finally:
            process.terminate()


def test_both_bindings_and_the_card_answer(daphne: str) -> None:
    sent = httpx.post(f"{daphne}/agents/echo", content=envelope("SendMessage", {"message": message("by daphne")}))
    task = sent.json()["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][0]["parts"] == [{"text": "by daphne"}]
    assert httpx.get(f"{daphne}/agents/echo/tasks/{task['id']}").json() == task
    encoded = httpx.post(f"{daphne}/agents/echo/tasks/{task['id']}%3Acancel")
    assert (encoded.status_code, encoded.json()["error"]["details"][0]["reason"]) == (400, "TASK_NOT_CANCELABLE")
    assert httpx.get(f"{daphne}/agents/echo/.well-known/agent-card.json").json()["name"] == "Echo"


async def test_json_rpc_over_websocket(daphne: str) -> None:
    url = f"{daphne.replace('http', 'ws')}/agents/echo/ws"
    async with connect(url, proxy=None) as connection:
        await connection.send(envelope("SendStreamingMessage", {"message": message("by daphne")}))
        replies = [json.loads(await connection.recv())["result"]]
        while replies[-1] != {"final": True}:
            replies.append(json.loads(await connection.recv())["result"])
        assert replies[-2]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, proxy=None, additional_headers={"Authorization": "Bearer wrong"}):
            pass
    assert refused.value.response.status_code == 403  # it can say no more


def test_a_stream_tells_the_whole_story(daphne: str) -> None:
    body = {"message": message("steps 2 1")}
    with httpx.stream("POST", f"{daphne}/agents/steps/message:stream", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in response.iter_lines() if line.startswith("data: ")]
    kinds = [next(iter(httpx.Response(200, content=line[6:]).json())) for line in lines]
    assert kinds == ["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]
    assert '"TASK_STATE_COMPLETED"' in lines[-1]
