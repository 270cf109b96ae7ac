"""Agents without a capability say so before anything else is looked at (§3.3.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.callers import Caller
from tests.support.push_configs import PushConfigs

HOOK = {"url": "https://hook.test/"}


@pytest.mark.case("P16")
@pytest.mark.spec("3.3.4")
def test_an_agent_without_push_notifications(alice: Caller, binding: str) -> None:
    deaf = alice.at("deaf", binding)
    configs = PushConfigs(deaf)
    for id in (deaf.say()["id"], "none"):
        calls: list[Callable[[], object]] = [
            lambda id=id: configs.create(id, **HOOK),  # type: ignore[misc]
            lambda id=id: configs.list(id),  # type: ignore[misc]
            lambda id=id: configs.get(id, "c"),  # type: ignore[misc]
            lambda id=id: configs.delete(id, "c"),  # type: ignore[misc]
        ]
        for call in calls:
            with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
                call()


@pytest.mark.case("P16")
@pytest.mark.spec("3.3.4")
def test_the_capability_is_checked_before_the_request_is_read(alice: Caller) -> None:
    rpc, rest = alice.jsonrpc("deaf"), alice.rest("deaf")
    with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        rpc.call("ListTaskPushNotificationConfigs", None)
    with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        rpc.call("CreateTaskPushNotificationConfig", {"taskId": 7})
    with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        rest.call("POST", "/tasks/none/pushNotificationConfigs", "{")


@pytest.mark.case("P16")
@pytest.mark.spec("3.3.4")
def test_a_send_with_a_push_config_is_refused_as_a_whole(alice: Caller, binding: str) -> None:
    deaf = alice.at("deaf", binding)
    with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        deaf.say("hi", configuration={"taskPushNotificationConfig": HOOK})
    with alice.refused("PUSH_NOTIFICATION_NOT_SUPPORTED"):
        deaf.say("hi", configuration={"taskPushNotificationConfig": HOOK, "returnImmediately": True})


@pytest.mark.case("D08")
@pytest.mark.spec("3.3.4")
def test_an_agent_without_an_extended_card(alice: Caller) -> None:
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.rest("echo").call("GET", "/extendedAgentCard")
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.jsonrpc("echo").call("GetExtendedAgentCard", {})
