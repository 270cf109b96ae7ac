"""Area grpc: what only this binding has (§10). The cases of other areas run over it beside the JSON bindings."""

from __future__ import annotations

import base64
import json
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.cases.reading import at_work, state, states, texts
from tests.support.callers import Caller
from tests.support.deployment import GrpcServer, wait_until
from tests.support.grpc_peer import SECONDS, GrpcPeer, channel_to, refusing
from tests.support.peers import message

pytestmark = pytest.mark.usefixtures("grpc_server")

SERVICE = "/lf.a2a.v1.A2AService"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


def raw(peer: GrpcPeer, method: str, data: bytes, *metadata: tuple[str, str]) -> bytes:
    """Any bytes to a method, with more metadata. Raises Refused."""
    with refusing():
        call = channel_to(peer.port).unary_unary(f"{SERVICE}/{method}")
        answer: bytes = call(data, timeout=SECONDS, metadata=[*peer.metadata, *metadata])
        return answer


def hello(**members: Any) -> pb.Message:
    return pb.Message(message_id="m", role=pb.ROLE_USER, parts=[pb.Part(text="hi")], **members)


@pytest.mark.case("G01")
@pytest.mark.spec("10.6")
def test_an_error_has_its_details_in_the_trailers(alice: Caller) -> None:
    peer = alice.grpc("echo")
    with pytest.raises(grpc.RpcError) as raised:
        peer.stub("GetTask")(pb.GetTaskRequest(tenant="echo", id="none"), metadata=peer.metadata, timeout=SECONDS)
    error: Any = raised.value
    assert (error.code(), error.details()) == (
        grpc.StatusCode.NOT_FOUND,
        "The task was not found or is not accessible.",
    )
    (packed,) = [value for name, value in error.trailing_metadata() if name == "grpc-status-details-bin"]
    (detail,) = Status.FromString(packed).details
    info = ErrorInfo()
    assert detail.Unpack(info)
    assert (info.reason, info.domain) == ("TASK_NOT_FOUND", "a2a-protocol.org")
    assert info.metadata["taskId"] == "none"


@pytest.mark.case("G03")
@pytest.mark.spec("10.6")
@pytest.mark.parametrize(
    ("request_", "fields"),
    [
        (pb.SendMessageRequest(), ["message"]),
        (pb.SendMessageRequest(message=pb.Message()), ["message.messageId", "message.role", "message.parts"]),
        (pb.SendMessageRequest(message=pb.Message(message_id="m", role=1)), ["message.parts"]),
        (pb.SendMessageRequest(message=pb.Message(message_id="m", role=1, parts=[pb.Part()])), ["message.parts[0]"]),
        (pb.SendMessageRequest(message=pb.Message(message_id="m", role=2, parts=[pb.Part(text="")])), ["message.role"]),
        (pb.SendMessageRequest(message=hello(context_id="a\0b")), ["message.contextId"]),
        (pb.SendMessageRequest(message=hello(reference_task_ids=["x", ""])), ["message.referenceTaskIds[1]"]),
        (
            pb.SendMessageRequest(message=hello(), configuration=pb.SendMessageConfiguration(history_length=-1)),
            ["configuration.historyLength"],
        ),
        (
            pb.SendMessageRequest(message=hello(), metadata=Struct(fields={"x": Value(number_value=float("nan"))})),
            ["metadata"],
        ),
    ],
)
def test_a_message_that_is_not_right_names_its_fields(
    alice: Caller, request_: pb.SendMessageRequest, fields: list[str]
) -> None:
    """The fields have their JSON names, so that they are the same in every binding."""
    request_.tenant = "echo"
    peer = alice.grpc("echo")
    for call in (peer.call, peer.open):
        with alice.refused("INVALID_PARAMS", *fields):
            call("SendMessage" if call == peer.call else "SendStreamingMessage", request_)


@pytest.mark.case("G03")
@pytest.mark.spec("10.6")
def test_other_requests_name_their_fields_too(alice: Caller) -> None:
    peer = alice.grpc("echo")
    requests = [
        ("GetTask", pb.GetTaskRequest(tenant="echo"), "id"),
        ("GetTask", pb.GetTaskRequest(tenant="echo", id="x", history_length=-1), "historyLength"),
        ("CancelTask", pb.CancelTaskRequest(tenant="echo", id="a\0b"), "id"),
        ("ListTasks", pb.ListTasksRequest(tenant="echo", page_size=101), "pageSize"),
        ("ListTasks", pb.ListTasksRequest(tenant="echo", page_size=0), "pageSize"),
        ("ListTasks", pb.ListTasksRequest(tenant="echo", page_token="x"), "pageToken"),
        (
            "ListTasks",
            pb.ListTasksRequest(tenant="echo", status_timestamp_after=Timestamp(seconds=10**15)),
            "statusTimestampAfter",
        ),
    ]
    for method, request, field in requests:
        with alice.refused("INVALID_PARAMS", field):
            peer.call(method, request)


@pytest.mark.spec("10.1")
@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xff", b'{"id":"x"}'])
def test_what_is_no_message_is_a_parse_error(alice: Caller, data: bytes) -> None:
    for method in ("GetTask", "SendMessage"):
        with alice.refused("PARSE_ERROR"):
            raw(alice.grpc("echo"), method, data, ("a2a-agent", "echo"))


@pytest.mark.case("G05")
@pytest.mark.spec("5.1")
def test_a_task_is_the_same_in_every_binding(alice: Caller) -> None:
    parts = [
        {"text": "žluť 你好 😀", "mediaType": "text/plain", "metadata": {"a": [1, 2.5, None, {"b": True}]}},
        {"raw": base64.b64encode(bytes(range(256))).decode(), "mediaType": "image/png", "filename": "x.png"},
        {"url": "https://e.test/f", "mediaType": "text/csv"},
        {"data": {"n": [1, {"deep": "ü"}], "empty": {}, "none": None}},
        {"data": [1, "two"]},
        {"data": None},
    ]
    given = message(parts, metadata={"k": "v"}, extensions=["https://e.test/x"], referenceTaskIds=["other"])
    made = alice.jsonrpc("data").send({"message": given, "metadata": {"r": 1}})["task"]
    assert made["history"][0]["parts"] == parts
    peer = alice.grpc("data")
    read = peer.stub("GetTask")(pb.GetTaskRequest(tenant="data", id=made["id"]), metadata=peer.metadata)
    assert peer.get(made["id"]) == alice.rest("data").get(made["id"]) == alice.jsonrpc("data").get(made["id"]) == made
    assert MessageToDict(read)["artifacts"] == made["artifacts"]
    assert read.status.timestamp.ToJsonString()[:19] == made["status"]["timestamp"][:19]
    again = alice.grpc("data").send({"message": message(parts)})["task"]
    assert alice.rest("data").get(again["id"]) == again
    assert again["artifacts"][0]["parts"] == made["artifacts"][0]["parts"]


@pytest.mark.case("G06")
@pytest.mark.spec("10.2")
def test_a_call_without_a_version_is_in_that_of_its_service(alice: Caller) -> None:
    """The method decides, as everywhere: `lf.a2a.v1` is 1.0."""
    assert alice.grpc("echo").with_headers(a2a_version=None).say("hi")["artifacts"]


@pytest.mark.case("G06")
@pytest.mark.spec("10.2")
def test_a_key_may_come_twice(alice: Caller) -> None:
    peer = alice.grpc("echo").with_headers(a2a_version=None)
    request = peer.request(pb.SendMessageRequest, {"message": message("hi")}).SerializeToString()
    named = [("a2a-extensions", "https://e.test/a, https://e.test/b"), ("a2a-extensions", "https://e.test/c")]
    answer = pb.SendMessageResponse.FromString(raw(peer, "SendMessage", request, *named, ("a2a-version", "1.0")))
    assert answer.task.status.state == pb.TASK_STATE_COMPLETED
    with alice.refused("VERSION_NOT_SUPPORTED"):
        raw(peer, "SendMessage", request, ("a2a-version", "1.0"), ("a2a-version", "2.0"))


@pytest.mark.case("V01")
@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("version", ["99.0", "0.3", "latest"])
def test_another_version_is_not_that_of_the_service(alice: Caller, version: str) -> None:
    peer = alice.grpc("echo").with_headers(a2a_version=version)
    for call in (lambda: peer.get("none"), lambda: peer.say("hi"), lambda: peer.say_streaming("hi")):
        with alice.refused("VERSION_NOT_SUPPORTED"):
            call()


@pytest.mark.case("G07")
@pytest.mark.spec("10.1")
def test_large_messages_have_the_limit_of_the_agent(alice: Caller, grpc_server: GrpcServer) -> None:
    for size, fits in ((5 << 20, True), (9 << 20, False)):
        given = {"message": message([{"raw": base64.b64encode(bytes(size)).decode(), "mediaType": "image/png"}])}
        for peer in (alice.grpc("data"), alice.rest("data")):
            params = given | {"message": given["message"] | {"messageId": f"{peer.name}-{size}"}}
            if fits:
                assert state(peer.send(params)["task"]) == "COMPLETED"
            else:
                with alice.refused("REQUEST_TOO_LARGE") as refusal:
                    peer.send(params)
                assert refusal.value.metadata == {"limitBytes": str(8 << 20)}
    assert grpc_server.is_serving()


@pytest.mark.case("G07")
@pytest.mark.spec("10.1")
def test_a_message_beyond_all_limits_is_not_read(alice: Caller, grpc_server: GrpcServer) -> None:
    """No agent takes so much; gRPC itself refuses it, without our details."""
    with alice.nothing_stored(), pytest.raises(grpc.RpcError) as raised:
        channel_to(grpc_server.port).unary_unary(f"{SERVICE}/SendMessage")(bytes((32 << 20) + 1), timeout=SECONDS)
    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert grpc_server.is_serving()


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
@pytest.mark.parametrize(
    ("metadata", "challenge"),
    [
        ([], 'Bearer realm="a2a-host"'),
        ([("authorization", "Bearer wrong")], 'Bearer realm="a2a-host", error="invalid_token"'),
        ([("x-api-key", "wrong")], 'Bearer realm="a2a-host", error="invalid_token"'),
    ],
)
def test_without_a_key_there_is_a_challenge(anonymous: Caller, metadata: list[tuple[str, str]], challenge: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        anonymous.grpc("order-agent").stub("GetTask")(
            pb.GetTaskRequest(tenant="order-agent", id="x"), metadata=metadata, timeout=SECONDS
        )
    error: Any = raised.value
    assert error.code() == grpc.StatusCode.UNAUTHENTICATED
    assert dict(error.trailing_metadata())["www-authenticate"] == challenge


@pytest.mark.spec("10.2")
def test_metadata_may_name_the_agent(alice: Caller) -> None:
    peer = alice.grpc("echo").with_headers(**{"a2a-agent": "echo"})
    task = peer.call("SendMessage", pb.SendMessageRequest(message=hello()))["task"]
    assert peer.call("GetTask", pb.GetTaskRequest(id=task["id"])) == task
    assert peer.get(task["id"]) == task
    with alice.refused("AGENT_NOT_FOUND") as refusal:
        peer.call("GetTask", pb.GetTaskRequest(tenant="data", id=task["id"]))
    assert refusal.value.metadata == {"agent": "data"}


@pytest.mark.spec("10.2")
@pytest.mark.parametrize("tenant", ["", "nope", "hidden", "Echo", "a\0b", "echo/"])
def test_a_call_for_no_agent(alice: Caller, tenant: str) -> None:
    peer = alice.grpc("echo")
    for method, request in (
        ("GetTask", pb.GetTaskRequest(tenant=tenant, id="x")),
        ("SendMessage", pb.SendMessageRequest(tenant=tenant, message=hello())),
    ):
        with alice.refused("AGENT_NOT_FOUND"):
            peer.call(method, request)
    with alice.refused("AGENT_NOT_FOUND"):
        peer.open("SendStreamingMessage", pb.SendMessageRequest(tenant=tenant, message=hello()))


@pytest.mark.spec("10.3")
def test_an_unknown_method_is_not_implemented(alice: Caller) -> None:
    with alice.refused("METHOD_NOT_FOUND") as refusal:
        raw(alice.grpc("echo"), "DeleteTask", b"")
    assert refusal.value.metadata == {"method": "DeleteTask"}
    with pytest.raises(grpc.RpcError) as raised:
        channel_to(alice.grpc("echo").port).unary_unary("/lf.a2a.v2.A2AService/GetTask")(b"", timeout=SECONDS)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.spec("3.1.1")
def test_a_deadline_ends_the_wait_not_the_task(alice: Caller) -> None:
    peer = alice.grpc("hold")
    request = peer.request(pb.SendMessageRequest, {"message": message("hold", contextId="deadline")})
    with pytest.raises(grpc.RpcError) as raised:
        peer.stub("SendMessage")(request, metadata=peer.metadata, timeout=0.5)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    (task,) = wait_until(lambda: alice.rest("hold").list(contextId="deadline")["tasks"], "the task")
    wait_until(lambda: state(alice.rest("hold").get(task["id"])) == "WORKING", "the task to be at work")
    assert state(peer.cancel(task["id"])) == "CANCELED"


@pytest.mark.spec("3.1.2")
def test_a_caller_who_hangs_up_does_not_cancel_the_task(alice: Caller) -> None:
    peer = alice.grpc("hold")
    with peer.say_streaming("hold") as stream:
        task = stream.until("WORKING")[0].response["task"]
    with peer.subscribe(task["id"]) as stream:
        assert stream.next().response["task"]["id"] == task["id"]
    assert state(alice.jsonrpc("hold").get(task["id"])) == "WORKING"
    assert state(peer.cancel(task["id"])) == "CANCELED"


@pytest.mark.spec("3.5.2")
def test_a_task_made_over_grpc_is_followed_and_cancelled_over_http(alice: Caller) -> None:
    with alice.grpc("hold").say_streaming("hold") as stream:
        task = stream.until("WORKING")[0].response["task"]
        with alice.rest("hold").subscribe(task["id"]) as events:
            assert events.next().state == "WORKING"
            assert state(alice.jsonrpc("hold").cancel(task["id"])) == "CANCELED"
            assert states(events.rest())[-1] == "CANCELED"
        assert states(stream.rest()) == ["CANCELED"]


@pytest.mark.spec("3.5.2")
def test_a_task_made_over_http_is_followed_and_cancelled_over_grpc(alice: Caller) -> None:
    task = at_work(alice.jsonrpc("hold"))
    peer = alice.grpc("hold")
    with peer.subscribe(task["id"]) as stream:
        assert stream.next().response["task"] == task
        canceled = peer.cancel(task["id"])
        assert states(stream.rest()) == ["CANCELED"]
    assert canceled == alice.rest("hold").get(task["id"])
    with alice.refused("UNSUPPORTED_OPERATION"):
        peer.subscribe(task["id"])


@pytest.mark.spec("3.4.3")
def test_a_conversation_changes_its_binding(alice: Caller) -> None:
    task = alice.grpc("ask").say("one")
    assert state(task) == "INPUT_REQUIRED"
    ended = alice.rest("ask").say("two", taskId=task["id"])
    assert state(ended) == "COMPLETED"
    assert alice.grpc("ask").get(task["id"]) == ended


@pytest.mark.spec("3.1.1")
def test_a_message_is_the_same_in_every_binding(alice: Caller) -> None:
    given = {"message": message("once")}
    tasks = [alice.at("echo", binding).send(given)["task"] for binding in ("grpc", "jsonrpc", "rest")]
    assert tasks[0] == tasks[1] == tasks[2]
    with alice.refused("INVALID_PARAMS", "message.messageId"):
        alice.grpc("echo").send({"message": given["message"] | {"parts": [{"text": "twice"}]}})


def nested(levels: int) -> Any:
    """JSON of so many levels."""
    value: Any = "x"
    for _ in range(levels):
        value = {"v": value}
    return value


@pytest.mark.spec("5.7")
@pytest.mark.parametrize("levels", [20, 30, 31, 34, 60, 90])
def test_deep_json_comes_whole(alice: Caller, levels: int) -> None:
    """protobuf nests at most 100 messages, and an object in an object is three of them: deeper data comes as bytes, and
    the page of ListTasks with all else that is on it."""
    deep, metadata = nested(levels), {"deep": nested(levels - 1), "flat": [1]}
    shallow = alice.grpc("data").say("flat")
    task = alice.jsonrpc("data").say([{"data": deep, "metadata": metadata}], metadata=metadata)
    peer = alice.grpc("data")
    got = peer.get(task["id"])
    (part,), (made,) = got["history"][0]["parts"], got["artifacts"][0]["parts"]
    if levels <= 31:
        assert got == task
    else:
        written = base64.b64encode(json.dumps(deep).encode()).decode()
        assert part["raw"] == made["raw"] == written
        assert part["mediaType"] == made["mediaType"] == "application/json"
        assert "data" not in part
        texts_of = {"urn:a2a-host:json": {"deep": json.dumps(metadata["deep"])}}
        assert part["metadata"] == got["history"][0]["metadata"] == {"flat": [1]} | texts_of
    page = peer.list(includeArtifacts=True, historyLength=5)
    assert [one["id"] for one in page["tasks"]] == [task["id"], shallow["id"]]
    assert page["tasks"][1]["artifacts"] == shallow["artifacts"]
    assert page["tasks"][0]["artifacts"][0]["parts"][0].keys() & {"raw", "data"}
    assert alice.rest("data").get(task["id"]) == task


@pytest.mark.spec("5.7")
def test_a_stream_with_deep_json(alice: Caller) -> None:
    """What the caller sent is in the first event, what the agent makes of it in the artifact that follows an answer."""
    asked = alice.jsonrpc("wait").say([{"data": nested(60), "mediaType": "application/vnd.deep+json"}])
    with alice.grpc("wait").subscribe(asked["id"]) as follower:
        (part,) = follower.next().response["task"]["history"][0]["parts"]
        done = alice.jsonrpc("wait").say([{"data": nested(40)}], taskId=asked["id"])
        events = follower.rest()
    assert part["mediaType"] == "application/vnd.deep+json"
    assert json.loads(base64.b64decode(part["raw"])) == nested(60)
    assert states(events)[-1] == "COMPLETED"
    ((made,),) = [e.response["artifactUpdate"]["artifact"]["parts"] for e in events if e.kind == "artifactUpdate"]
    assert (made.keys(), made["mediaType"]) == ({"raw", "mediaType"}, "application/json")
    assert json.loads(base64.b64decode(made["raw"])) == nested(40)
    assert alice.rest("wait").get(asked["id"]) == done


@pytest.mark.spec("10.7")
def test_a_worker_streams_over_grpc(alice: Caller, worker: object) -> None:
    with alice.grpc("steps-worker").say_streaming("steps 4 1") as stream:
        events = stream.rest()
    assert events[-1].state == "COMPLETED"
    assert texts(alice.rest("steps-worker").get(events[0].response["task"]["id"])["artifacts"]) == [
        ["chunk 1\n", "chunk 2\n", "chunk 3\n", "chunk 4\n"]
    ]


@pytest.mark.spec("10.7")
def test_a_slow_reader_misses_nothing(alice: Caller) -> None:
    """What does not fit into the connection's window waits for its reader, and the task does not wait with it."""
    text = "x" * (2 << 20)
    with alice.grpc("echo").say_streaming(text) as stream:
        task = stream.next().response["task"]
        wait_until(lambda: state(alice.rest("echo").get(task["id"])) == "COMPLETED", "the end of the task")
        events = stream.rest()
    assert texts([e.response["artifactUpdate"]["artifact"] for e in events if e.kind == "artifactUpdate"]) == [[text]]
    assert states(events)[-1] == "COMPLETED"


@pytest.mark.spec("10.7")
def test_a_reader_who_does_not_read_may_hang_up(alice: Caller, grpc_server: GrpcServer) -> None:
    for number in range(3):
        with alice.grpc("echo").say_streaming("x" * (2 << 20), contextId=f"hang-{number}") as stream:
            stream.next()
    assert grpc_server.is_serving()
    for number in range(3):
        (task,) = alice.rest("echo").list(contextId=f"hang-{number}")["tasks"]
        wait_until(lambda id=task["id"]: state(alice.rest("echo").get(id)) == "COMPLETED", "the end of the task")


@pytest.mark.spec("10.1")
def test_an_answer_may_be_larger_than_a_request(alice: Caller) -> None:
    for _ in range(3):
        alice.grpc("echo").say("x" * (2 << 20), contextId="large")
    page = alice.grpc("echo").list(contextId="large", includeArtifacts=True, historyLength=1)
    assert len(json.dumps(page)) > 12 << 20


def test_health_and_reflection(grpc_server: GrpcServer) -> None:
    with grpc_server.channel() as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ("", "lf.a2a.v1.A2AService", "a2a.v1.A2AService"):
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=SECONDS)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as raised:
            stub.Check(health_pb2.HealthCheckRequest(service="nope"), timeout=SECONDS)
        assert raised.value.code() == grpc.StatusCode.NOT_FOUND
        assert sorted(ProtoReflectionDescriptorDatabase(channel).get_services()) == [
            "a2a.v1.A2AService",
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
            "lf.a2a.v1.A2AService",
        ]


def test_reflection_tells_what_the_services_are_made_of(grpc_server: GrpcServer) -> None:
    """Many questions in one call, in both versions, which are the same on the wire."""
    requests = [
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="lf.a2a.v1.A2AService"),
        reflection_pb2.ServerReflectionRequest(file_by_filename="nope.proto"),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="a2a.v1.Task"),
        reflection_pb2.ServerReflectionRequest(),
    ]
    told = []
    for version in ("v1alpha", "v1"):
        call = channel_to(grpc_server.port).stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        told.append(list(call(iter(requests), timeout=SECONDS)))
    assert told[0] == told[1]
    v1, unknown, v03, empty = told[0]
    for answer, package in ((v1, "lf.a2a.v1"), (v03, "a2a.v1")):
        files = [FileDescriptorProto.FromString(f) for f in answer.file_descriptor_response.file_descriptor_proto]
        assert files[0].package == package
        assert "google/protobuf/struct.proto" in [file.name for file in files]
    assert (unknown.error_response.error_code, empty.error_response.error_code) == (5, 3)


@pytest.mark.parametrize("path", ["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", REFLECTION])
def test_what_is_no_message_of_health_or_reflection(grpc_server: GrpcServer, path: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        list(channel_to(grpc_server.port).unary_stream(path)(b"\xff", timeout=SECONDS))
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_nothing_of_the_inside_is_told(alice: Caller) -> None:
    """What a failing agent says stays in the log."""
    peer = alice.grpc("boom")
    task = peer.say("boom")
    assert state(task) == "FAILED"
    assert "Traceback" not in json.dumps(task)
    bad = BadRequest()
    bad.field_violations.add(field="message", description="is required")
    with pytest.raises(grpc.RpcError) as raised:
        peer.stub("SendMessage")(pb.SendMessageRequest(tenant="boom"), metadata=peer.metadata, timeout=SECONDS)
    error: Any = raised.value
    details = Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"]).details
    unpacked = BadRequest()
    assert details[1].Unpack(unpacked)
    assert unpacked == bad
