"""Wrong replies over gRPC and in 0.3 are errors too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2 as pb

from benchmarks.calls import JsonRpcV03
from benchmarks.client import Measure
from benchmarks.grpc_load import SEND_MESSAGE, GrpcEndpoint, GrpcLoad, send_to
from benchmarks.grpc_wire import Channel
from benchmarks.replies import WrongReply
from benchmarks.wire import Endpoint


def completed(request: pb.SendMessageRequest, **changes: Any) -> pb.SendMessageResponse:
    members: dict[str, Any] = {
        "id": "t",
        "context_id": "c",
        "status": pb.TaskStatus(state=pb.TASK_STATE_COMPLETED),
        "artifacts": [pb.Artifact(artifact_id="a", parts=request.message.parts)],
    }
    return pb.SendMessageResponse(task=pb.Task(**(members | changes)))


@asynccontextmanager
async def server_of(answer: Callable[[pb.SendMessageRequest], bytes]) -> AsyncIterator[str]:
    """The address of a server that answers so."""

    async def respond(data: bytes, context: object) -> bytes:
        return answer(pb.SendMessageRequest.FromString(data))

    service, method = SEND_MESSAGE.strip("/").split("/")
    handler = grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(respond)})
    server = grpc.aio.server(handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def load(answer: Callable[[pb.SendMessageRequest], bytes]) -> Measure:
    """What a short load on such a server measures."""
    async with server_of(answer) as address:
        return await GrpcLoad(GrpcEndpoint(address), send_to("echo"), seconds=0.2).run(callers=2)


async def test_right_replies_are_counted() -> None:
    measure = await load(lambda request: completed(request).SerializeToString())
    assert measure.errors == []
    assert len(measure.latencies) > 2
    assert measure.seconds >= 0.2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda request: b"\xff", "no SendMessageResponse"),
        (lambda request: b"", "a task without ids"),
        (lambda request: completed(request, status=pb.TaskStatus(state=2)).SerializeToString(), "not completed"),
        (lambda request: completed(request, artifacts=[]).SerializeToString(), "0 artifacts"),
        (
            lambda request: completed(
                request, artifacts=[pb.Artifact(artifact_id="a", parts=[pb.Part(text="x")])]
            ).SerializeToString(),
            "another text",
        ),
    ],
)
async def test_wrong_replies_are_errors(answer: Callable[[pb.SendMessageRequest], bytes], error: str) -> None:
    measure = await load(answer)
    assert measure.latencies == []
    assert all(one.startswith(error) for one in measure.errors)
    assert measure.errors


async def test_a_server_that_is_not_there_is_an_error() -> None:
    measure = await GrpcLoad(GrpcEndpoint("127.0.0.1:1"), send_to("echo"), seconds=0.2).run(callers=1)
    assert measure.errors[0].startswith("no connection: ")


async def test_a_status_is_an_error() -> None:
    def refuse(request: pb.SendMessageRequest) -> bytes:
        raise ValueError("a reason with ü")

    measure = await load(refuse)
    assert measure.latencies == []
    assert set(measure.errors) == {"status 2: Unexpected <class 'ValueError'>: a reason with ü"}


async def test_many_calls_share_a_connection_beyond_its_first_window() -> None:
    """64 KiB are allowed of all requests together until the server gives more."""
    async with server_of(lambda request: completed(request).SerializeToString()) as address:
        channel = await Channel.open(address, SEND_MESSAGE)
        part = pb.Part(text="x" * 1000)
        request = pb.SendMessageRequest(message=pb.Message(message_id="m", parts=[part])).SerializeToString()
        answers = [body for _ in range(30) for body in await asyncio.gather(*(channel.call(request) for _ in range(4)))]
        channel.close()
    assert [pb.SendMessageResponse.FromString(a).task.artifacts[0].parts[0] for a in answers] == [part] * 120


@pytest.mark.parametrize("wrong", [{"state": "working"}, {"text": "another"}])
def test_a_reply_in_0_3_is_checked(wrong: dict[str, str]) -> None:
    call = JsonRpcV03(Endpoint.parse("http://127.0.0.1:1/agents/echo")).send()
    head, _, body = call.raw.partition(b"\r\n\r\n")
    assert b"A2A-Version: 0.3" in head
    request = json.loads(body)
    said = request["params"]["message"]["parts"][0]["text"]

    def reply(state: str, text: str) -> bytes:
        status = {"state": state, "timestamp": "2026-01-02T03:04:05.678Z"}
        artifacts = [{"artifactId": "a", "parts": [{"kind": "text", "text": text}]}]
        task = {"kind": "task", "id": "t", "contextId": "c", "status": status, "artifacts": artifacts}
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": task}).encode()

    call.check(reply("completed", said))
    with pytest.raises(WrongReply):
        call.check(reply(wrong.get("state", "completed"), wrong.get("text", said)))
