"""Every refusal arrives in the official client as the error that the specification names, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from a2a.client import ClientCallContext
from a2a.client.errors import A2AClientError, AgentCardResolutionError
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)

from tests.sdk.caller import SdkCaller, only, request, say
from tests.support.deployment import Deployment

_STORED = "SELECT id, state, version, last_seq, message_count FROM tasks_app_task WHERE owner = %s ORDER BY id"


@asynccontextmanager
async def refused(
    deployment: Deployment, caller: SdkCaller, kind: type[A2AError]
) -> AsyncIterator[pytest.ExceptionInfo[A2AError]]:
    """The call inside raises exactly this error and leaves the caller's tasks as they are."""
    before = deployment.query(_STORED, [caller.owner])
    with pytest.raises(kind) as error:
        yield error
    assert error.type is kind
    assert deployment.query(_STORED, [caller.owner]) == before


@pytest.mark.spec("3.3.2")
async def test_what_is_not_there(alice: SdkCaller, bob: SdkCaller, deployment: Deployment) -> None:
    """A task of somebody else looks as one that never was (§13.1)."""
    client = await alice.at("echo", streaming=True)
    for task_id in ("none", (await bob.say("echo")).id):
        async with refused(deployment, alice, TaskNotFoundError) as error:
            await client.get_task(GetTaskRequest(id=task_id))
        assert error.value.data is not None
        assert error.value.data["taskId"] == task_id
        async with refused(deployment, alice, TaskNotFoundError):
            await client.cancel_task(CancelTaskRequest(id=task_id))
        async with refused(deployment, alice, TaskNotFoundError):
            await anext(client.subscribe(SubscribeToTaskRequest(id=task_id)))
        async with refused(deployment, alice, TaskNotFoundError):
            await anext(client.send_message(request("more", task_id=task_id)))


@pytest.mark.spec("3.1.5")
async def test_what_has_ended(alice: SdkCaller, deployment: Deployment) -> None:
    client = await alice.at("echo", streaming=True)
    task = await alice.say("echo")
    async with refused(deployment, alice, TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))
    async with refused(deployment, alice, UnsupportedOperationError):
        await anext(client.subscribe(SubscribeToTaskRequest(id=task.id)))
    async with refused(deployment, alice, UnsupportedOperationError):
        await anext(client.send_message(request("more", task_id=task.id)))


@pytest.mark.spec("3.4.3")
async def test_a_message_for_another_context(alice: SdkCaller, deployment: Deployment) -> None:
    task = await alice.say("ask")
    client = await alice.at("ask")
    async with refused(deployment, alice, InvalidParamsError):
        await say(client, "more", task_id=task.id, context_id="another")


@pytest.mark.spec("4.1.4")
async def test_messages_that_say_nothing(alice: SdkCaller, deployment: Deployment) -> None:
    client = await alice.at("echo")
    for message in (
        Message(message_id="m", role=Role.ROLE_USER),
        Message(role=Role.ROLE_USER, parts=[Part(text="hi")]),
        Message(message_id="m", parts=[Part(text="hi")]),
        Message(message_id="m", role=Role.ROLE_USER, parts=[Part()]),
    ):
        async with refused(deployment, alice, InvalidParamsError):
            await only(client, SendMessageRequest(message=message))


@pytest.mark.spec("3.1.4")
@pytest.mark.parametrize("members", [{"page_size": 101}, {"page_token": "made-up"}, {"history_length": -1}])
async def test_a_list_that_cannot_be(alice: SdkCaller, deployment: Deployment, members: dict[str, int | str]) -> None:
    client = await alice.at("echo")
    async with refused(deployment, alice, InvalidParamsError):
        await client.list_tasks(ListTasksRequest(**members))  # type: ignore[arg-type]


@pytest.mark.spec("3.3.4")
async def test_no_push_notifications_where_the_card_offers_none(alice: SdkCaller, deployment: Deployment) -> None:
    client = await alice.at("order-agent")
    task = await alice.say("order-agent")
    config = TaskPushNotificationConfig(task_id=task.id, url="https://hooks.example/a")
    async with refused(deployment, alice, PushNotificationNotSupportedError):
        await client.create_task_push_notification_config(config)


@pytest.mark.spec("3.6.2")
async def test_a_version_that_is_not_spoken(alice: SdkCaller, deployment: Deployment) -> None:
    client = await alice.at("echo")
    context = ClientCallContext(service_parameters={"A2A-Version": "7.0"})
    async with refused(deployment, alice, VersionNotSupportedError):
        await client.get_task(GetTaskRequest(id="none"), context=context)


@pytest.mark.spec("7.4")
@pytest.mark.parametrize("header", [None, "Bearer a2a_made-up"])
async def test_a_caller_without_the_key(alice: SdkCaller, deployment: Deployment, header: str | None) -> None:
    client = await alice.at("order-agent")
    del alice.http.headers["authorization"]
    if header:
        alice.http.headers["authorization"] = header
    async with refused(deployment, alice, A2AClientError) as error:
        await say(client, "hi")
    assert "401" in str(error.value)
    assert isinstance(error.value.__cause__, httpx.HTTPStatusError)
    assert error.value.__cause__.response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.spec("8.2")
async def test_an_agent_that_is_not_there(alice: SdkCaller) -> None:
    with pytest.raises(AgentCardResolutionError) as error:
        await alice.at("nobody")
    assert error.value.status_code == 404
