"""Area v0.3, push configs: nested in JSON-RPC, resources in HTTP+JSON, and webhooks that get 0.3."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_host.services.processes import Process
from tests.support.callers import Caller
from tests.support.old_peers import OldJsonRpc, OldProtoRest, OldRest, old_message
from tests.support.receiver import Receiver

HOOK = "https://hooks.example.com/a"


@pytest.mark.case("K14")
@pytest.mark.spec("3.1.7")
def test_configs_in_json_rpc(alice: Caller) -> None:
    echo = OldJsonRpc(alice, "echo")
    task = echo.say()["id"]
    config = {"id": "c", "url": HOOK, "token": "secret", "authentication": {"schemes": ["Bearer"], "credentials": "s"}}
    made = echo.call("tasks/pushNotificationConfig/set", {"taskId": task, "pushNotificationConfig": config})
    shown = {"id": "c", "url": HOOK, "authentication": {"schemes": ["Bearer"]}}
    assert made == {"taskId": task, "pushNotificationConfig": shown}
    by_id = {"id": task, "pushNotificationConfigId": "c"}
    assert echo.call("tasks/pushNotificationConfig/get", by_id) == made
    assert echo.call("tasks/pushNotificationConfig/get", {"id": task}) == made  # 0.3 §7.6
    assert echo.call("tasks/pushNotificationConfig/list", {"id": task}) == [made]
    assert echo.call("tasks/pushNotificationConfig/delete", by_id) is None
    assert echo.call("tasks/pushNotificationConfig/delete", by_id) is None
    assert echo.call("tasks/pushNotificationConfig/list", {"id": task}) == []
    for params in (by_id, {"id": task}):
        with alice.refused("TASK_NOT_FOUND"):
            echo.call("tasks/pushNotificationConfig/get", params)


@pytest.mark.case("K14")
@pytest.mark.parametrize("form", ["proto", "text"])
def test_configs_over_http(alice: Caller, form: str) -> None:
    echo: Any = OldProtoRest(alice, "echo") if form == "proto" else OldRest(alice, "echo")
    task = echo.say()["id"]
    path = f"/tasks/{task}/pushNotificationConfigs"
    nested = {"pushNotificationConfig": {"id": "c", "url": HOOK}}
    named = {"name": f"tasks/{task}/pushNotificationConfigs/c"} | nested
    if form == "proto":
        made = echo.call("POST", path, {"parent": f"tasks/{task}", "configId": "c", "config": named})
        assert made == named
    else:
        made = echo.call("POST", path, {"config": {"taskId": task} | nested})
        assert made == {"taskId": task} | nested
    assert echo.call("GET", f"{path}/c") == named
    assert echo.call("GET", path) == {"configs": [named]}
    assert echo.call("DELETE", f"{path}/c") == {}
    assert echo.call("GET", path) == {}
    with alice.refused("TASK_NOT_FOUND"):
        echo.call("GET", f"{path}/c")


@pytest.mark.case("K11")
@pytest.mark.spec("3.2.2")
def test_a_config_in_a_message_gets_tasks_of_0_3(alice: Caller, receiver: Receiver, worker: Process) -> None:
    echo, hook = OldJsonRpc(alice, "echo"), f"/{alice.owner}/old"
    config = {"url": receiver.url(hook), "token": "k", "authentication": {"schemes": ["Bearer"], "credentials": "s"}}
    task = echo.say("hi", {"pushNotificationConfig": config})
    (listed,) = echo.call("tasks/pushNotificationConfig/list", {"id": task["id"]})
    assert listed["taskId"] == task["id"]
    assert listed["pushNotificationConfig"]["url"] == receiver.url(hook)
    seen = receiver.wait(hook, 1)
    while seen[-1].json["status"]["state"] != "completed":
        seen = receiver.wait(hook, len(seen) + 1)
    assert {delivery.json["kind"] for delivery in seen} == {"task"}
    assert {delivery.json["id"] for delivery in seen} == {task["id"]}
    assert seen[-1].json["artifacts"] == task["artifacts"]
    assert seen[-1].headers["authorization"] == "Bearer s"
    assert seen[-1].headers["x-a2a-notification-token"] == "k"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "ftp://e.test/"])
def test_what_is_wrong_with_a_config_has_the_names_of_0_3(alice: Caller, url: str) -> None:
    rpc, text, proto = OldJsonRpc(alice, "echo"), OldRest(alice, "echo"), OldProtoRest(alice, "echo")
    task = rpc.say()["id"]
    nested = {"pushNotificationConfig": {"url": url}}
    with alice.refused("INVALID_PARAMS", "pushNotificationConfig.url"):
        rpc.call("tasks/pushNotificationConfig/set", {"taskId": task} | nested)
    with alice.refused("INVALID_PARAMS", "configuration.pushNotificationConfig.url"):
        rpc.send(old_message(), nested)
    with alice.refused("INVALID_PARAMS", "configuration.pushNotificationConfig.url"):
        text.send(old_message(), nested)
    with alice.refused("INVALID_PARAMS", "configuration.pushNotification.url"):
        proto.send(old_message(), {"pushNotification": {"url": url}})
    with alice.refused("INVALID_PARAMS", "config.pushNotificationConfig.url"):
        proto.call("POST", f"/tasks/{task}/pushNotificationConfigs", {"parent": f"tasks/{task}", "config": nested})
    assert rpc.call("tasks/pushNotificationConfig/list", {"id": task}) == []


def test_an_agent_without_push_notifications(alice: Caller) -> None:
    deaf = OldJsonRpc(alice, "deaf")
    task = deaf.say()["id"]
    for method in ("get", "list", "delete", "set"):
        with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
            deaf.call(f"tasks/pushNotificationConfig/{method}", {"id": task})
    with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        deaf.say("hi", {"pushNotificationConfig": {"url": HOOK}})
