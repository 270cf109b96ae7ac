"""Push configs and extended cards: no agent has these capabilities yet (§3.3.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.callers import Caller


@pytest.mark.case("P16")
@pytest.mark.spec("3.3.4")
def test_push_configs_are_not_supported_yet(alice: Caller) -> None:
    """Before anything else is looked at: the agent has not the capability."""
    echo, rpc = alice.rest("echo"), alice.jsonrpc("echo")
    config = {"url": "https://hook.test/"}
    task = echo.say()["id"]
    calls: list[Callable[[], object]] = []
    for id in (task, "none"):
        path = f"/tasks/{id}/pushNotificationConfigs"
        calls += [
            lambda path=path: echo.call("POST", path, config),  # type: ignore[misc]
            lambda path=path: echo.call("GET", path),  # type: ignore[misc]
            lambda path=path: echo.call("GET", f"{path}/c"),  # type: ignore[misc]
            lambda path=path: echo.call("DELETE", f"{path}/c"),  # type: ignore[misc]
        ]
        for name in ("Create", "Get", "Delete"):
            method = f"{name}TaskPushNotificationConfig"
            calls.append(lambda id=id, method=method: rpc.call(method, config | {"taskId": id}))  # type: ignore[misc]
    calls.append(lambda: rpc.call("ListTaskPushNotificationConfigs", None))
    for call in calls:
        with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
            call()


@pytest.mark.case("P16")
@pytest.mark.spec("3.3.4")
def test_a_send_with_a_push_config_is_refused_as_a_whole(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    for send in (echo.say, echo.start):
        with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
            configuration = {"taskPushNotificationConfig": {"url": "https://hook.test/"}}
            if send == echo.say:
                send("hi", configuration=configuration)
            else:
                echo.say("hi", configuration=configuration | {"returnImmediately": True})
    with alice.refused("INVALID_PARAMS", "configuration.taskPushNotificationConfig.url"):
        echo.say("hi", configuration={"taskPushNotificationConfig": {}})
    with alice.refused("INVALID_PARAMS", "configuration.taskPushNotificationConfig.taskId"):
        echo.say("hi", configuration={"taskPushNotificationConfig": {"url": "https://hook.test/", "taskId": "x"}})


@pytest.mark.case("D08")
@pytest.mark.spec("3.3.4")
def test_there_is_no_extended_card_yet(alice: Caller) -> None:
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.rest("echo").call("GET", "/extendedAgentCard")
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.jsonrpc("echo").call("GetExtendedAgentCard", {})
