"""The official client over gRPC, made from the card that the host shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import httpx
import pytest
from a2a.client import Client, ClientCallContext, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import (
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
    a2a_pb2_grpc,
)
from a2a.utils.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError
from google.protobuf.json_format import ParseDict

from tests.support.deployment import Deployment, GrpcServer, Web, wait_until

ROOT = "at-the-root"


@asynccontextmanager
async def client_of(
    web: Web, server: GrpcServer, slug: str, version: str = "1.0", **config: bool
) -> AsyncIterator[Client]:
    """The client of an agent in one version of gRPC. The card's interface is that of this deployment's process."""
    url = f"{web.agent_url(slug)}/.well-known/agent-card.json"
    async with httpx.AsyncClient(trust_env=False) as http:
        members = (await http.get(url)).json()
    card = ParseDict(members, AgentCard(), ignore_unknown_fields=True)
    offered = [i for i in card.supported_interfaces if (i.protocol_binding, i.protocol_version) == ("GRPC", version)]
    # 0.3 has no tenants, so that only the agent at the host's root can be reached by what a card says.
    assert [i.tenant for i in offered] == ([slug] if version == "1.0" else [""] if slug == ROOT else [])
    del card.supported_interfaces[:]
    card.supported_interfaces.append(
        AgentInterface(
            url=server.address,
            protocol_binding="GRPC",
            protocol_version=version,
            tenant=slug if version == "1.0" else "",
        )
    )

    def channel(address: str) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(address)

    made = await create_client(
        card, ClientConfig(grpc_channel_factory=channel, supported_protocol_bindings=["GRPC"], **config)
    )
    try:
        yield made
    finally:
        await made.close()


def request(text: str) -> SendMessageRequest:
    return SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))


async def all_of(responses: AsyncIterator[StreamResponse]) -> list[StreamResponse]:
    return [response async for response in responses]


@pytest.mark.spec("10.4")
async def test_send_get_and_list(web: Web, server: GrpcServer) -> None:
    async with client_of(web, server, "echo", streaming=False) as client:
        (answer,) = await all_of(client.send_message(request("hello")))
        task = answer.task
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        assert [part.text for part in task.artifacts[0].parts] == ["hello"]
        assert await client.get_task(GetTaskRequest(id=task.id)) == task
        page = await client.list_tasks(ListTasksRequest(context_id=task.context_id, include_artifacts=True))
        assert [one.id for one in page.tasks] == [task.id]
        assert page.total_size == 1


@pytest.mark.spec("10.7")
async def test_stream(web: Web, server: GrpcServer) -> None:
    async with client_of(web, server, "steps", streaming=True) as client:
        responses = await all_of(client.send_message(request("steps 3 1")))
    assert responses[0].HasField("task")
    chunks = [r.artifact_update.artifact.parts[0].text for r in responses if r.HasField("artifact_update")]
    assert "".join(chunks) == "chunk 1\nchunk 2\nchunk 3\n"
    assert responses[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.spec("10.4.5")
async def test_subscribe_and_cancel(web: Web, server: GrpcServer) -> None:
    async with client_of(web, server, "hold", streaming=False, polling=True) as polling:
        (answer,) = await all_of(polling.send_message(request("hold")))
    async with client_of(web, server, "hold", streaming=True) as client:
        stream = client.subscribe(SubscribeToTaskRequest(id=answer.task.id))
        assert (await anext(stream)).task.id == answer.task.id
        canceled = await client.cancel_task(CancelTaskRequest(id=answer.task.id))
        assert canceled.status.state == TaskState.TASK_STATE_CANCELED
        rest = await all_of(stream)
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED


@pytest.mark.spec("10.6")
async def test_errors_are_those_of_the_sdk(web: Web, server: GrpcServer) -> None:
    async with client_of(web, server, "echo", streaming=False) as client:
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id="none"))
        (answer,) = await all_of(client.send_message(request("done")))
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=answer.task.id))
        with pytest.raises(InvalidParamsError):
            await all_of(client.send_message(SendMessageRequest()))


@pytest.mark.spec("3.6.2")
async def test_the_client_set_to_0_3(web: Web, server: GrpcServer) -> None:
    """0.3 has no tenants: metadata names the agent."""
    named = ClientCallContext(service_parameters={"a2a-agent": "echo"})
    async with client_of(web, server, "echo", "0.3", streaming=False) as client:
        (answer,) = await all_of(client.send_message(request("old"), context=named))
        task = answer.task
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        assert [part.text for part in task.artifacts[0].parts] == ["old"]
        assert await client.get_task(GetTaskRequest(id=task.id), context=named) == task


@pytest.mark.spec("3.6.2")
async def test_the_agent_at_the_root_needs_no_name(deployment: Deployment, web: Web, server: GrpcServer) -> None:
    deployment.run(("agent", "register", ROOT, "--simulator", "echo", "--open", "--root"))
    await asyncio.to_thread(wait_until, lambda: _is_known(web) and _has_root(server), "the agent")
    async with client_of(web, server, ROOT, "0.3", streaming=False) as client:
        (answer,) = await all_of(client.send_message(request("from the root")))
    async with grpc.aio.insecure_channel(server.address) as channel:
        found = await a2a_pb2_grpc.A2AServiceStub(channel).GetTask(GetTaskRequest(id=answer.task.id))
    assert [part.text for part in found.artifacts[0].parts] == ["from the root"]


def _is_known(web: Web) -> bool:
    url = f"{web.agent_url(ROOT)}/.well-known/agent-card.json"
    return httpx.get(url, trust_env=False).status_code == 200


def _has_root(server: GrpcServer) -> bool:
    with server.channel() as channel, pytest.raises(grpc.RpcError) as raised:
        a2a_pb2_grpc.A2AServiceStub(channel).GetTask(GetTaskRequest(id="none"), timeout=5)
    details: str = raised.value.details()
    return details == "The task was not found or is not accessible."
