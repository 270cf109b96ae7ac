"""The same load over gRPC: callers that share one connection, as those of a channel do, and check every reply."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import grpc
import uvloop
from a2a.types import a2a_pb2 as pb
from google.protobuf.message import DecodeError

from benchmarks.calls import Call
from benchmarks.client import GRACE, MAX_ERRORS, Measure
from benchmarks.grpc_wire import Channel, GrpcError
from benchmarks.replies import Artifact, Message, Part, Status, Task, WrongReply, check_echo

SEND_MESSAGE = "/lf.a2a.v1.A2AService/SendMessage"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class GrpcEndpoint:
    """Where requests go: `127.0.0.1:PORT`."""

    address: str


def send_to(tenant: str) -> Callable[[], Call]:
    """Builds SendMessage calls to an echo agent (§10.4.1), each with its own message and text."""

    def make() -> Call:
        text = f"hello world {next(_numbers)}"
        message = pb.Message(message_id=uuid.uuid4().hex, role=pb.ROLE_USER, parts=[pb.Part(text=text)])
        request = pb.SendMessageRequest(tenant=tenant, message=message)
        return Call(request.SerializeToString(), lambda body: check_echo(_task_in(body), text))

    return make


def _task_in(body: bytes) -> Task:
    try:
        task = pb.SendMessageResponse.FromString(body).task
    except DecodeError:
        raise WrongReply(f"no SendMessageResponse: {body[:300]!r}") from None
    return Task(
        id=task.id,
        context_id=task.context_id,
        status=Status(pb.TaskState.Name(task.status.state), task.status.timestamp.ToDatetime(UTC)),
        artifacts=[Artifact(one.artifact_id, _parts(one)) for one in task.artifacts],
        history=[Message(one.message_id, pb.Role.Name(one.role), _parts(one)) for one in task.history],
    )


def _parts(holder: Any) -> list[Part]:
    return [Part(part.text) for part in holder.parts]


class GrpcLoad:
    """Callers against one server, each sending its next call as soon as the last one is answered."""

    def __init__(self, endpoint: GrpcEndpoint, make: Callable[[], Call], seconds: float) -> None:
        self._endpoint = endpoint
        self._make = make
        self._seconds = seconds
        self._measure = Measure()

    async def run(self, callers: int) -> Measure:
        """Run to the end; calls under way have the grace of the other bindings."""
        measure, began = self._measure, time.perf_counter()
        try:
            channel = await Channel.open(self._endpoint.address, SEND_MESSAGE)
        except OSError as error:
            measure.errors.append(f"no connection: {error}")
        else:
            running = [asyncio.ensure_future(self._call_on(channel, began + self._seconds)) for _ in range(callers)]
            _, late = await asyncio.wait(running, timeout=self._seconds + GRACE)
            measure.errors += ["no answer in time"] * len(late)
            channel.close()
            await asyncio.gather(*running)
        measure.seconds = time.perf_counter() - began
        return measure

    async def _call_on(self, channel: Channel, until: float) -> None:
        measure = self._measure
        while time.perf_counter() < until and len(measure.errors) < MAX_ERRORS:
            call = self._make()
            sent_at = time.perf_counter()
            try:
                body = await channel.call(call.raw)
                call.check(body)
            except (GrpcError, WrongReply) as error:
                measure.errors.append(str(error))
            else:
                measure.latencies.append(time.perf_counter() - sent_at)


def measure_grpc(endpoint: GrpcEndpoint, make: Callable[[], Call], callers: int, seconds: float) -> Measure:
    """Put `callers` callers on `endpoint` for `seconds`."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(GrpcLoad(endpoint, make, seconds).run(callers))


async def start_over_grpc(address: str, tenant: str, text: str) -> str:
    """The id of a task that SendMessage began and did not wait for. Raises WrongReply."""
    message = pb.Message(message_id=uuid.uuid4().hex, role=pb.ROLE_USER, parts=[pb.Part(text=text)])
    configuration = pb.SendMessageConfiguration(return_immediately=True)
    request = pb.SendMessageRequest(tenant=tenant, message=message, configuration=configuration)
    async with grpc.aio.insecure_channel(address) as channel:
        try:
            body = await channel.unary_unary(SEND_MESSAGE)(request.SerializeToString(), timeout=GRACE)
        except grpc.aio.AioRpcError as error:
            raise WrongReply(f"{error.code().name}: {error.details()}") from None
    return _task_in(body).id
