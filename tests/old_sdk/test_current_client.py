"""The current client of the SDK, which a card of 0.3 makes speak 0.3."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.client.errors import A2AClientError
from a2a.helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError

from tests.support.deployment import Web


@pytest.fixture
async def http(key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=30, headers={"authorization": f"Bearer {key}"}) as client:
        yield client


async def client_of(http: httpx.AsyncClient, web: Web, transport: str, slug: str, streaming: bool = False) -> Client:
    config = ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=[transport])
    client = await create_client(web.agent_url(slug), config)
    assert "0_3" in type(client._transport).__module__  # type: ignore[attr-defined]
    return client


async def say(client: Client, text: str) -> list[StreamResponse]:
    request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
    return [response async for response in client.send_message(request)]


async def say_to(client: Client, text: str = "hi") -> Task:
    (response,) = await say(client, text)
    return response.task


async def test_send_get_and_errors(http: httpx.AsyncClient, web: Web, transport: str) -> None:
    client = await client_of(http, web, transport, "old-echo")
    task = await say_to(client, "häß")
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert task.artifacts[0].parts[0].text == "häß"
    assert await client.get_task(GetTaskRequest(id=task.id)) == task
    with pytest.raises((A2AError, A2AClientError)) as error:
        await client.get_task(GetTaskRequest(id="none"))
    assert type(error.value).__name__ == "TaskNotFoundError"


async def test_stream(http: httpx.AsyncClient, web: Web, transport: str) -> None:
    client = await client_of(http, web, transport, "old-steps", streaming=True)
    responses = await say(client, "steps 2 10")
    assert responses[0].HasField("task")
    updates = [response.status_update for response in responses if response.HasField("status_update")]
    assert [update.status.state for update in updates] == [
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_COMPLETED,
    ]


async def test_subscribe_and_cancel(http: httpx.AsyncClient, web: Web, transport: str) -> None:
    streaming = await client_of(http, web, transport, "old-hold", streaming=True)
    request = SendMessageRequest(message=new_text_message("hold", role=Role.ROLE_USER))
    stream = streaming.send_message(request)
    task = (await anext(stream)).task
    subscription = streaming.subscribe(SubscribeToTaskRequest(id=task.id))
    assert (await anext(subscription)).task.id == task.id
    canceled = await streaming.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED
    async with asyncio.timeout(30):
        last = [response async for response in subscription][-1]
        async for _ in stream:
            pass
    assert last.status_update.status.state == TaskState.TASK_STATE_CANCELED


async def test_push_configs(http: httpx.AsyncClient, web: Web, transport: str) -> None:
    client = await client_of(http, web, transport, "old-ask")
    task = await say_to(client)
    config = TaskPushNotificationConfig(task_id=task.id, id="c", url="https://hooks.example.com/a")
    assert await client.create_task_push_notification_config(config) == config
    request = GetTaskPushNotificationConfigRequest(task_id=task.id, id="c")
    assert await client.get_task_push_notification_config(request) == config


async def test_one_task_in_both_versions(http: httpx.AsyncClient, web: Web, transport: str) -> None:
    """What one client makes in 1.0, its twin reads in 0.3."""
    config = ClientConfig(streaming=False, httpx_client=http, supported_protocol_bindings=[transport])
    newer = await create_client(web.agent_url("echo"), config)
    made = await say_to(newer, "hi")
    older = await client_of_0_3(http, web, transport)
    read = await older.get_task(GetTaskRequest(id=made.id))
    assert (read.id, read.context_id, read.status) == (made.id, made.context_id, made.status)
    assert read.history == made.history
    assert read.artifacts == made.artifacts


async def client_of_0_3(http: httpx.AsyncClient, web: Web, transport: str) -> Client:
    """A client of the agent `echo`, which serves both versions, that has only its interfaces of 0.3."""
    config = ClientConfig(streaming=False, httpx_client=http, supported_protocol_bindings=[transport])
    newer = await create_client(web.agent_url("echo"), config)
    card = newer._card  # type: ignore[attr-defined]
    old = [interface for interface in card.supported_interfaces if interface.protocol_version.startswith("0.3")]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(old)
    client = await create_client(card, config)
    assert "0_3" in type(client._transport).__module__  # type: ignore[attr-defined]
    return client
