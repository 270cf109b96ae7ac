"""The gRPC process: how it starts, ends and secures its connections."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc
from django.conf import settings
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc

from a2a_host.bindings.grpc.server import LARGEST, READ_AT_LEAST, largest_message
from agents.models import Agent
from protocol.ids import new_id
from tests.support.deployment import Deployment, GrpcServer, Web, wait_until

SECONDS = 30.0


def message(text: str) -> pb.Message:
    return pb.Message(message_id=new_id(), role=pb.ROLE_USER, parts=[pb.Part(text=text)])


def send(server: GrpcServer, slug: str, text: str) -> pb.Task:
    with server.channel() as channel:
        request = pb.SendMessageRequest(tenant=slug, message=message(text))
        answer = a2a_pb2_grpc.A2AServiceStub(channel).SendMessage(request, timeout=SECONDS)
    task: pb.Task = answer.task
    return task


def get(server: GrpcServer, slug: str, id: str) -> pb.Task:
    with server.channel() as channel:
        task: pb.Task = a2a_pb2_grpc.A2AServiceStub(channel).GetTask(
            pb.GetTaskRequest(tenant=slug, id=id), timeout=SECONDS
        )
    return task


def test_what_no_agent_may_take_is_not_read() -> None:
    (limit,) = {v.limit_value for v in Agent._meta.get_field("max_request_bytes").validators if v.code == "max_value"}
    assert limit == LARGEST


@pytest.mark.parametrize(
    ("limits", "read"),
    [
        ([], READ_AT_LEAST),
        ([1024, 8 << 20], READ_AT_LEAST),
        ([100 << 20, 8 << 20], 101 << 20),
        ([LARGEST], LARGEST),
    ],
)
def test_no_more_is_read_than_some_agent_takes(limits: list[int], read: int) -> None:
    assert largest_message(limits) == read


def test_a_server_that_is_stopped_tells_its_callers(deployment: Deployment) -> None:
    """Who waits hears how the task ended; who follows a task of another process hears that this server is gone."""
    server, other = deployment.start_grpc(), deployment.start_grpc()
    with server.channel() as channel, other.channel() as elsewhere:
        stub, other_stub = a2a_pb2_grpc.A2AServiceStub(channel), a2a_pb2_grpc.A2AServiceStub(elsewhere)
        mine = stub.SendMessage.future(pb.SendMessageRequest(tenant="hold", message=message("hold")), timeout=SECONDS)
        started = other_stub.SendStreamingMessage(
            pb.SendMessageRequest(tenant="hold", message=message("hold")), timeout=SECONDS
        )
        theirs = next(started).task
        followed = stub.SubscribeToTask(pb.SubscribeToTaskRequest(tenant="hold", id=theirs.id), timeout=SECONDS)
        assert next(followed).task.id == theirs.id
        running = "SELECT count(*) FROM tasks_app_task WHERE state = 2 AND worker IS NOT NULL"
        wait_until(lambda: deployment.query(running)[0][0] == 2, "both tasks to be at work")
        server.stop()
        assert server.process.exit_code == 0
        assert mine.result().task.status.state == pb.TASK_STATE_FAILED
        with pytest.raises(grpc.RpcError) as raised:
            list(followed)
        error: Any = raised.value
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        details = Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"]).details
        retry = RetryInfo()
        assert details[-1].Unpack(retry)
        assert retry.retry_delay.seconds == 1
        canceled = other_stub.CancelTask(pb.CancelTaskRequest(tenant="hold", id=theirs.id), timeout=SECONDS)
        assert canceled.status.state == pb.TASK_STATE_CANCELED
        assert [event.status_update.status.state for event in started][-1] == pb.TASK_STATE_CANCELED
    server.restart()
    assert send(server, "echo", "again").status.state == pb.TASK_STATE_COMPLETED


def test_a_server_that_is_killed_leaves_its_tasks_to_the_others(deployment: Deployment, web: Web) -> None:
    server = deployment.start_grpc(LEASE_SECONDS="2")
    with server.channel() as channel:
        stream = a2a_pb2_grpc.A2AServiceStub(channel).SendStreamingMessage(
            pb.SendMessageRequest(tenant="hold", message=message("hold")), timeout=SECONDS
        )
        task = next(stream).task
        server.process.kill()
        with pytest.raises(grpc.RpcError) as raised:
            list(stream)
    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    server.restart()
    wait_until(lambda: get(server, "hold", task.id).status.state == pb.TASK_STATE_FAILED, "the task to be given up", 40)


def test_who_watches_hears_that_a_server_stops(deployment: Deployment) -> None:
    """And goes on elsewhere, instead of holding it up."""
    server = deployment.start_grpc()
    with server.channel() as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch
        known, unknown = (
            watch(health_pb2.HealthCheckRequest(service=name), timeout=SECONDS)
            for name in ("lf.a2a.v1.A2AService", "nope")
        )
        assert next(known).status == health_pb2.HealthCheckResponse.SERVING
        assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        server.stop()
        assert next(known).status == health_pb2.HealthCheckResponse.NOT_SERVING
        for call in (known, unknown):
            with pytest.raises(grpc.RpcError) as raised:
                next(call)
            assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    assert server.process.exit_code == 0


def test_interrupted_from_the_keyboard_it_ends_too(deployment: Deployment) -> None:
    server = deployment.start_grpc()
    server.process._popen.send_signal(signal.SIGINT)
    assert server.process.wait(8)
    assert server.process.exit_code == 0


def test_an_idle_stream_lives_longer_than_the_keep_alive(server: GrpcServer) -> None:
    """HTTP/2 pings keep it; nothing else is sent."""
    with server.channel() as channel:
        stub = a2a_pb2_grpc.A2AServiceStub(channel)
        stream = stub.SendStreamingMessage(
            pb.SendMessageRequest(tenant="hold", message=message("hold 2")), timeout=SECONDS
        )
        events = list(stream)
    assert events[-1].status_update.status.state == pb.TASK_STATE_COMPLETED
    assert [event.WhichOneof("payload") for event in events].count("task") == 1


@pytest.mark.spec("10.1")
def test_tls(deployment: Deployment, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    server = deployment.start_grpc(cert.read_bytes(), GRPC_TLS_CERT=str(cert), GRPC_TLS_KEY=str(key))
    assert send(server, "echo", "secret").status.state == pb.TASK_STATE_COMPLETED
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
        a2a_pb2_grpc.A2AServiceStub(channel).GetTask(pb.GetTaskRequest(tenant="echo", id="x"), timeout=5)
    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"GRPC_PORT": "x"}, "GRPC_PORT must be a number from 0 to 65535, got x"),
        ({"GRPC_TLS_CERT": "/nowhere"}, "GRPC_TLS_CERT and GRPC_TLS_KEY are PEM files that belong together: set both"),
        ({"GRPC_TLS_CERT": "/nowhere", "GRPC_TLS_KEY": "/nowhere"}, "GRPC_TLS_CERT is not a file: /nowhere"),
    ],
)
def test_wrong_settings_are_one_line(environment: dict[str, str], line: str) -> None:
    done = _settings(environment, "raise SystemExit('fine')")
    assert line in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("value", ["0", ""])
def test_grpc_can_be_turned_off(value: str) -> None:
    shown = "print([s.name for s in host_services(socket.socket())])"
    code = f"import socket; from a2a_host.management.commands.up import host_services; {shown}"
    assert _settings({"GRPC_PORT": value}, code).stdout == "['web', 'worker']\n"


def _settings(environment: dict[str, str], code: str) -> subprocess.CompletedProcess[str]:
    """What a process with other settings prints."""
    import os

    program = f"from django.conf import settings; settings.HOST; {code}"
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
