"""The curl lines of an introduction to A2A, run by curl as they are written there.

Only host, ids and the key differ. Most of its lines name no version: the method or the path says that it is 1.0.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reading import state
from tests.support.callers import Caller

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq: apt-get install curl jq"
)

HOST = "https://agent.example.com"
KEY = """ -H "Authorization: Bearer $A2A_TOKEN\""""

CARD = "curl -s https://agent.example.com/.well-known/agent-card.json"
CARD_WITH_JQ = "curl -s https://agent.example.com/.well-known/agent-card.json | jq ."
OLD_CARD = "curl -s https://agent.example.com/.well-known/agent.json"
CHECK = "jq -e '.name and .url and (.skills | length > 0) and .capabilities' agent-card.json"
# fmt: off
SEND = """curl -s https://agent.example.com/a2a -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' \\
  -d '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"msg-1","role":"ROLE_USER","parts":[{"text":"查询订单 123"}]}}}'"""  # noqa: E501
GET = """curl -s https://agent.example.com/a2a -H 'Content-Type: application/json' \\
  -d '{"jsonrpc":"2.0","id":2,"method":"GetTask","params":{"id":"task-1","historyLength":10}}'"""
CANCEL = """curl -s https://agent.example.com/a2a -H 'Content-Type: application/json' \\
  -d '{"jsonrpc":"2.0","id":3,"method":"CancelTask","params":{"id":"task-1"}}'"""
STREAM = """curl -N https://agent.example.com/a2a -H 'Content-Type: application/json' -H 'Accept: text/event-stream' \\
  -d '{"jsonrpc":"2.0","id":4,"method":"SendStreamingMessage","params":{"message":{"messageId":"msg-2","role":"ROLE_USER","parts":[{"text":"生成报告"}]}}}'"""  # noqa: E501
# fmt: on
REST_SEND = """curl -s https://agent.example.com/message:send -H 'Content-Type: application/a2a+json' \\
  -d '{"message":{"messageId":"msg-3","role":"ROLE_USER","parts":[{"text":"查询订单 123"}]}}'"""
REST_GET = "curl -s https://agent.example.com/tasks/task-1 -H 'Accept: application/a2a+json'"
FROM_FILE = """curl -s https://agent.example.com/a2a -H "Authorization: Bearer $A2A_TOKEN" \\
  -H 'Content-Type: application/json' -d @send-message.json"""


class Shell:
    """Runs lines for one caller of `order-agent`, in a folder of its own."""

    def __init__(self, caller: Caller, folder: Path, at_root: bool) -> None:
        self.agent_url = caller.web.agent_url("order-agent")
        self.base = caller.web.url if at_root else self.agent_url
        # At its own URL, an agent answers JSON-RPC at that URL; at the host root, at the path of the document.
        self.rpc = f"{self.base}/a2a" if at_root else self.base
        self.folder = folder
        self.environment = os.environ | {"A2A_TOKEN": caller.key or "", "NO_PROXY": "*"}

    def text(self, line: str, task: str = "task-1") -> str:
        """What a line prints."""
        line = line.replace(f"{HOST}/a2a", self.rpc).replace(HOST, self.base).replace("task-1", task)
        done = subprocess.run(
            ["sh", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, line: str, task: str = "task-1") -> Any:
        """The document that a line prints."""
        return json.loads(self.text(line, task))


@pytest.fixture(params=["agent", "root"])
def shell(request: pytest.FixtureRequest, alice: Caller, tmp_path: Path) -> Shell:
    """With the agent's URL in the place of the document's host, and with that of a host whose root it is."""
    return Shell(alice, tmp_path, at_root=request.param == "root")


@pytest.mark.spec("8.2")
def test_card(shell: Shell) -> None:
    for line in (CARD, OLD_CARD):
        card = shell.json(line)
        assert (card["name"], card["description"]) == ("order-agent", "处理订单查询与退款")
        assert card["supportedInterfaces"][0]["url"] == shell.agent_url
        assert card["skills"][0]["id"] == "order-status"
        assert card["skills"][0]["tags"] == ["order"]
        assert card["capabilities"]["streaming"] is True


@pytest.mark.spec("8.2")
def test_the_card_passes_the_check_of_its_key_fields(shell: Shell) -> None:
    for line in (CARD, OLD_CARD):
        (shell.folder / "agent-card.json").write_text(shell.text(line))
        assert shell.text(CHECK) == "true\n"
    assert shell.json(CARD_WITH_JQ) == shell.json(CARD)


@pytest.mark.spec("8.2")
def test_the_card_has_the_fields_of_the_smallest_one(shell: Shell) -> None:
    """With the values of the document, where they are not the host's own."""
    card = shell.json(CARD)
    assert (card["name"], card["description"]) == ("order-agent", "处理订单查询与退款")
    assert card["url"] == shell.agent_url
    assert (card["capabilities"]["streaming"], card["capabilities"].get("pushNotifications", False)) == (True, False)
    assert card["defaultInputModes"] == ["text/plain"]
    skill = {"id": "order-status", "name": "订单查询", "description": "按订单号查询状态", "tags": ["order"]}
    assert card["skills"][0].items() >= skill.items()
    assert card["securitySchemes"]["bearer"].items() >= {"type": "http", "scheme": "bearer"}.items()
    assert {"bearer": []} in card["security"]
    assert "protocolVersion" in card


@pytest.mark.spec("9.4.1")
def test_json_rpc(alice: Caller, shell: Shell) -> None:
    sent = shell.json(SEND + KEY)
    task = sent["result"]["task"]
    assert (sent["jsonrpc"], sent["id"], state(task)) == ("2.0", 1, "COMPLETED")
    assert task["artifacts"][0]["parts"] == [{"text": "查询订单 123"}]
    assert task["history"][0]["messageId"] == "msg-1"
    with alice.nothing_stored():
        assert shell.json(SEND + KEY) == sent  # the same messageId: a retry
        assert shell.json(GET + KEY, task["id"]) == {"jsonrpc": "2.0", "id": 2, "result": task}
        error = shell.json(CANCEL + KEY, task["id"])["error"]
        assert (error["code"], error["data"][0]["reason"]) == (-32002, "TASK_NOT_CANCELABLE")
        for line in (GET, CANCEL):
            assert shell.json(line + KEY)["error"]["code"] == -32001


@pytest.mark.spec("9.4.2")
def test_json_rpc_stream(shell: Shell) -> None:
    blocks = shell.text(STREAM + KEY).removesuffix("\n\n").split("\n\n")
    replies = [json.loads(block.split("\n")[1].removeprefix("data: ")) for block in blocks]
    assert {(reply["jsonrpc"], reply["id"]) for reply in replies} == {("2.0", 4)}
    assert "task" in replies[0]["result"]
    last = replies[-1]["result"]
    assert state(last.get("statusUpdate") or last["task"]) == "COMPLETED"
    assert "生成报告" in "".join(blocks)


@pytest.mark.spec("11.3")
def test_rest(shell: Shell) -> None:
    task = shell.json(REST_SEND + KEY)["task"]
    assert state(task) == "COMPLETED"
    assert shell.json(REST_GET + KEY, task["id"]) == task
    assert shell.json(REST_GET + KEY)["error"]["code"] == 404


@pytest.mark.spec("7.4")
def test_the_key_comes_from_the_environment(shell: Shell) -> None:
    body = SEND.partition("-d '")[2].removesuffix("'")
    (shell.folder / "send-message.json").write_text(body)
    assert state(shell.json(FROM_FILE)["result"]["task"]) == "COMPLETED"


@pytest.mark.spec("7.4")
def test_without_the_key(alice: Caller, shell: Shell) -> None:
    status = " -o /dev/null -w '%{http_code}'"
    with alice.nothing_stored():
        for line in (SEND, GET, CANCEL, STREAM, REST_SEND, REST_GET):
            assert shell.text(line + status) == "401"
