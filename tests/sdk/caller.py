"""A caller with the official client, and what the tests read of its replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import GetTaskRequest, Message, Role, SendMessageRequest, StreamResponse, Task, TaskState

from tests.support.deployment import PATIENCE, Web


class SdkCaller:
    """Somebody with an API key who talks to the agents of one web process in one binding of the client."""

    def __init__(self, web: Web, binding: str, owner: str, key: str) -> None:
        self.web = web
        self.binding = binding
        self.owner = owner
        headers = {"authorization": f"Bearer {key}"}
        self.http = httpx.AsyncClient(trust_env=False, timeout=PATIENCE, headers=headers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def at(self, slug: str, *, streaming: bool = False, polling: bool = False) -> Client:
        """The client of an agent, made from the card at its URL. `polling` is returnImmediately."""
        config = ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=self.http,
            supported_protocol_bindings=[self.binding],
        )
        return await create_client(self.web.agent_url(slug), config)

    async def say(self, slug: str, text: str = "hi", **members: Any) -> Task:
        """Send a message, wait for the end; the task."""
        return await say(await self.at(slug), text, **members)

    async def start(self, slug: str, text: str = "hi", **members: Any) -> Task:
        """The same without waiting for the end."""
        return await say(await self.at(slug, polling=True), text, **members)

    async def stream(self, slug: str, text: str = "hi", **members: Any) -> AsyncIterator[StreamResponse]:
        """Send a message and follow what comes."""
        client = await self.at(slug, streaming=True)
        async for response in client.send_message(request(text, **members)):
            yield response

    async def wait_for(self, slug: str, task: Task, state: TaskState) -> Task:
        """The task once it is in this state. Raises TimeoutError."""
        client = await self.at(slug)
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await client.get_task(GetTaskRequest(id=task.id))
                if found.status.state == state:
                    return found
                await asyncio.sleep(0.02)


def message(text: str, **members: Any) -> Message:
    """A new message of the caller. `reference_task_ids` may be among the members."""
    said = new_text_message(text, role=Role.ROLE_USER)
    said.MergeFrom(Message(**members))
    return said


def request(text: str, **members: Any) -> SendMessageRequest:
    return SendMessageRequest(message=message(text, **members))


async def only(client: Client, sent: SendMessageRequest) -> StreamResponse:
    """The one response to a message that is not streamed."""
    (response,) = [response async for response in client.send_message(sent)]
    return response


async def say(client: Client, text: str, **members: Any) -> Task:
    response = await only(client, request(text, **members))
    assert response.HasField("task")
    return response.task


def state(task: Task) -> str:
    """Such as `WORKING`."""
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_")


def texts(task: Task) -> list[list[str]]:
    """The texts of the artifacts."""
    return [[part.text for part in artifact.parts] for artifact in task.artifacts]


def states(responses: list[StreamResponse]) -> list[str]:
    """The states that a stream tells of, without repetition of the one in its snapshot."""
    found = [r.task.status if r.HasField("task") else r.status_update.status for r in responses if not _is_chunk(r)]
    return [TaskState.Name(status.state).removeprefix("TASK_STATE_") for status in found]


def assemble(responses: list[StreamResponse]) -> list[str]:
    """The texts of the one artifact, as a client puts it together (§4.2.2)."""
    found: list[str] = []
    for response in responses:
        if response.HasField("task"):
            found = [text for artifact in texts(response.task) for text in artifact]
        elif _is_chunk(response):
            update = response.artifact_update
            parts = [part.text for part in update.artifact.parts]
            found = [*found, *parts] if update.append else parts
    return found


def _is_chunk(response: StreamResponse) -> bool:
    return response.HasField("artifact_update")
