"""Area v0.3 over gRPC: the service `a2a.v1.A2AService`, with the SDK's conversions as the judge."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc, conversions, proto_utils
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from protocol.ids import new_id
from tests.cases.reading import at_work, state
from tests.support.callers import Caller
from tests.support.grpc_peer import SECONDS, channel_to, refusing
from tests.support.refusals import Refused

pytestmark = pytest.mark.usefixtures("grpc_server")


class PeerV03:
    """One agent in the 0.3 service; metadata names it."""

    def __init__(self, caller: Caller, slug: str, **metadata: str) -> None:
        bearer = {"authorization": f"Bearer {caller.key}"} if caller.key else {}
        named = {"a2a-agent": slug} | bearer | {name.replace("_", "-"): value for name, value in metadata.items()}
        self.metadata = list(named.items())
        self._stub: Any = a2a_v0_3_pb2_grpc.A2AServiceStub(channel_to(caller.grpc(slug).port))

    def call(self, method: str, request: Message) -> Any:
        """The answer. Raises Refused."""
        with refusing():
            return getattr(self._stub, method)(request, metadata=self.metadata, timeout=SECONDS)

    def stream(self, method: str, request: Message) -> list[Any]:
        """All messages of a stream. Raises Refused."""
        with refusing():
            return list(self.open(method, request))

    def open(self, method: str, request: Message) -> Any:
        """A stream."""
        return getattr(self._stub, method)(request, metadata=self.metadata, timeout=SECONDS)

    def say(self, *parts: pb.Part, **configuration: Any) -> pb.Task:
        """SendMessage, which waits unless the configuration says otherwise."""
        answer = self.call("SendMessage", said(*parts, **configuration))
        task: pb.Task = answer.task
        assert answer.WhichOneof("payload") == "task"
        return task


def said(*parts: pb.Part, **configuration: Any) -> pb.SendMessageRequest:
    message = pb.Message(message_id=new_id(), role=pb.ROLE_USER, content=parts or [pb.Part(text="hi")])
    request = pb.SendMessageRequest(request=message)
    if configuration:
        request.configuration.CopyFrom(pb.SendMessageConfiguration(**configuration))
    return request


def judged(task: pb.Task) -> dict[str, Any]:
    """A 0.3 task as the SDK understands it, as the JSON of 1.0."""
    read: dict[str, Any] = MessageToDict(conversions.to_core_task(proto_utils.FromProto.task(task)))
    return read


@pytest.mark.spec("3.6.2")
def test_a_task_of_0_3_is_that_of_1_0(alice: Caller) -> None:
    content = [
        pb.Part(text="žluť 你好", metadata=ParseDict({"a": [1]}, pb.Message().metadata)),
        # The SDK's peers put the base64 text of a file into the field for its bytes.
        pb.Part(file=pb.FilePart(file_with_bytes=base64.b64encode(b"\0\xff"), mime_type="image/png", name="x.png")),
        pb.Part(file=pb.FilePart(file_with_uri="https://e.test/f", mime_type="text/csv")),
        pb.Part(data=pb.DataPart(data=ParseDict({"n": [1, None]}, pb.Message().metadata))),
    ]
    peer = PeerV03(alice, "data")
    task = peer.say(*content)
    assert task.status.state == pb.TASK_STATE_COMPLETED
    in_v1 = alice.jsonrpc("data").get(task.id)
    assert in_v1["history"][0]["parts"] == [
        {"text": "žluť 你好", "metadata": {"a": [1]}},
        {"raw": "AP8=", "mediaType": "image/png", "filename": "x.png"},
        {"url": "https://e.test/f", "mediaType": "text/csv"},
        {"data": {"n": [1, None]}},
    ]
    assert list(task.history[0].content) == content
    assert peer.call("GetTask", pb.GetTaskRequest(name=f"tasks/{task.id}")) == task
    seen = judged(task)
    assert seen["artifacts"] == in_v1["artifacts"]
    assert seen["history"][0]["parts"] == in_v1["history"][0]["parts"]


@pytest.mark.spec("3.6.2")
def test_what_1_0_made_is_read_in_0_3(alice: Caller) -> None:
    made = alice.grpc("data").say([{"data": [1, "two"]}, {"text": "t", "mediaType": "text/plain"}])
    task = PeerV03(alice, "data").call("GetTask", pb.GetTaskRequest(name=f"tasks/{made['id']}"))
    assert judged(task)["artifacts"][0]["parts"][0] == {"data": [1, "two"]}
    assert judged(task)["history"][0]["parts"] == [{"data": [1, "two"]}, {"text": "t"}]


@pytest.mark.spec("3.6.2")
def test_blocking_is_what_the_configuration_says(alice: Caller) -> None:
    """An absent configuration waits; in one, protobuf cannot tell false from absent."""
    assert PeerV03(alice, "echo").say().status.state == pb.TASK_STATE_COMPLETED
    hold = PeerV03(alice, "hold")
    early = hold.say(pb.Part(text="hold"), blocking=False, history_length=0)
    assert early.status.state in (pb.TASK_STATE_SUBMITTED, pb.TASK_STATE_WORKING)
    assert len(early.history) == 1
    canceled = hold.call("CancelTask", pb.CancelTaskRequest(name=f"tasks/{early.id}"))
    assert canceled.status.state == pb.TASK_STATE_CANCELLED
    assert state(alice.rest("hold").get(early.id)) == "CANCELED"


@pytest.mark.spec("3.6.2")
def test_the_stream_of_0_3_says_what_is_final(alice: Caller) -> None:
    events = PeerV03(alice, "steps").stream("SendStreamingMessage", said(pb.Part(text="steps 3 1")))
    kinds = [event.WhichOneof("payload") for event in events]
    assert kinds[0] == "task"
    assert set(kinds[1:]) == {"status_update", "artifact_update"}
    updates = [event.status_update for event in events if event.HasField("status_update")]
    assert [update.final for update in updates] == [False] * (len(updates) - 1) + [True]
    assert updates[-1].status.state == pb.TASK_STATE_COMPLETED


@pytest.mark.spec("3.6.2")
def test_a_subscription_of_0_3_follows_a_task_of_1_0(alice: Caller) -> None:
    task = at_work(alice.jsonrpc("hold"))
    stream = PeerV03(alice, "hold").open("TaskSubscription", pb.TaskSubscriptionRequest(name=f"tasks/{task['id']}"))
    assert next(stream).task.status.state == pb.TASK_STATE_WORKING
    alice.grpc("hold").cancel(task["id"])
    last = list(stream)[-1].status_update
    assert (last.status.state, last.final) == (pb.TASK_STATE_CANCELLED, True)


@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize(
    ("method", "request_", "reason", "fields"),
    [
        ("GetTask", pb.GetTaskRequest(name="tasks/none"), "TASK_NOT_FOUND", []),
        ("CancelTask", pb.CancelTaskRequest(name="tasks/none"), "TASK_NOT_FOUND", []),
        ("GetTask", pb.GetTaskRequest(name="none"), "INVALID_PARAMS", ["name"]),
        ("GetTask", pb.GetTaskRequest(), "INVALID_PARAMS", ["name"]),
        ("CancelTask", pb.CancelTaskRequest(name="tasks/a/b"), "INVALID_PARAMS", ["name"]),
        ("GetTask", pb.GetTaskRequest(name="tasks/x", history_length=-1), "INVALID_PARAMS", ["historyLength"]),
        ("SendMessage", pb.SendMessageRequest(), "INVALID_PARAMS", ["message"]),
        (
            "SendMessage",
            pb.SendMessageRequest(request=pb.Message(message_id="m", role=pb.ROLE_USER, content=[pb.Part()])),
            "INVALID_PARAMS",
            ["message.content[0]"],
        ),
        (
            "SendMessage",
            pb.SendMessageRequest(request=pb.Message(message_id="m", content=[pb.Part(file=pb.FilePart())])),
            "INVALID_PARAMS",
            ["message.role", "message.content[0].file"],
        ),
    ],
)
def test_refusals_of_0_3_name_its_fields(
    alice: Caller, method: str, request_: Message, reason: str, fields: list[str]
) -> None:
    with alice.refused(reason, *fields):
        PeerV03(alice, "echo").call(method, request_)


@pytest.mark.case("V01")
@pytest.mark.spec("3.6.2")
def test_the_version_of_the_service_is_0_3(alice: Caller) -> None:
    request = pb.GetTaskRequest(name="tasks/none")
    for version, reason in (
        ("0.3", "TASK_NOT_FOUND"),
        ("1.0", "VERSION_NOT_SUPPORTED"),
        ("9.9", "VERSION_NOT_SUPPORTED"),
    ):
        with alice.refused(reason):
            PeerV03(alice, "echo", a2a_version=version).call("GetTask", request)


@pytest.mark.spec("3.6.2")
@pytest.mark.parametrize("slug", ["", "nope", "hidden"])
def test_a_call_of_0_3_for_no_agent(alice: Caller, slug: str) -> None:
    with alice.refused("AGENT_NOT_FOUND"):
        PeerV03(alice, slug).call("GetTask", pb.GetTaskRequest(name="tasks/x"))


@pytest.mark.spec("3.6.2")
def test_every_method_of_0_3_needs_the_key(anonymous: Caller) -> None:
    peer = PeerV03(anonymous, "order-agent")
    name = "tasks/x/pushNotificationConfigs/y"
    calls: list[tuple[Callable[..., Any], str, Message]] = [
        (peer.call, "SendMessage", said()),
        (peer.stream, "SendStreamingMessage", said()),
        (peer.call, "GetTask", pb.GetTaskRequest(name="tasks/x")),
        (peer.call, "CancelTask", pb.CancelTaskRequest(name="tasks/x")),
        (peer.stream, "TaskSubscription", pb.TaskSubscriptionRequest(name="tasks/x")),
        (peer.call, "CreateTaskPushNotificationConfig", pb.CreateTaskPushNotificationConfigRequest(parent="tasks/x")),
        (peer.call, "GetTaskPushNotificationConfig", pb.GetTaskPushNotificationConfigRequest(name=name)),
        (peer.call, "ListTaskPushNotificationConfig", pb.ListTaskPushNotificationConfigRequest(parent="tasks/x")),
        (peer.call, "DeleteTaskPushNotificationConfig", pb.DeleteTaskPushNotificationConfigRequest(name=name)),
        (peer.call, "GetAgentCard", pb.GetAgentCardRequest()),
    ]
    for call, method, request in calls:
        with pytest.raises(Refused) as refusal:
            call(method, request)
        assert refusal.value.reason == "UNAUTHENTICATED"


@pytest.mark.spec("3.6.2")
def test_the_card_of_0_3(alice: Caller) -> None:
    card = PeerV03(alice, "order-agent").call("GetAgentCard", pb.GetAgentCardRequest())
    assert (card.protocol_version, card.version) == (
        "0.3.0",
        alice.client.get(f"{alice.web.agent_url('order-agent')}/.well-known/agent-card.json").json()["version"],
    )
    assert {interface.transport for interface in card.additional_interfaces} >= {"JSONRPC", "HTTP+JSON"}
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "bearer"
    assert [sorted(one.schemes) for one in card.security] == [["bearer"], ["apiKey"]]


def test_an_unknown_method_of_0_3_is_not_implemented(alice: Caller) -> None:
    """ListTasks came with 1.0."""
    with alice.refused("METHOD_NOT_FOUND"), refusing():
        port = alice.grpc("echo").port
        channel_to(port).unary_unary("/a2a.v1.A2AService/ListTasks")(b"", timeout=SECONDS)


@pytest.mark.spec("3.1.7")
def test_what_is_wrong_with_a_config_has_the_names_of_0_3(alice: Caller) -> None:
    peer = PeerV03(alice, "echo")
    task = peer.say().id
    config = pb.PushNotificationConfig(id="c", url="http://127.0.0.1:1/")
    request = pb.CreateTaskPushNotificationConfigRequest(
        parent=f"tasks/{task}", config_id="c", config=pb.TaskPushNotificationConfig(push_notification_config=config)
    )
    with alice.refused("INVALID_PARAMS", "config.pushNotificationConfig.url"):
        peer.call("CreateTaskPushNotificationConfig", request)
    with alice.refused("INVALID_PARAMS", "configuration.pushNotification.url"):
        peer.call("SendMessage", said(push_notification=config))


def test_deep_json_comes_whole_as_a_file(alice: Caller) -> None:
    """Data that is nested deeper than protobuf can carry (docs/grpc.md, "What differs from JSON")."""
    deep: Any = "x"
    for _ in range(60):
        deep = {"v": deep}
    task = alice.jsonrpc("data").say([{"data": deep}, {"data": {"v": 1}}])
    got = PeerV03(alice, "data").call("GetTask", pb.GetTaskRequest(name=f"tasks/{task['id']}"))
    for parts in (got.history[0].content, got.artifacts[0].parts):
        as_file, as_data = parts
        assert as_file.file.mime_type == "application/json"
        # Base64 in bytes, as the SDKs have it.
        assert json.loads(base64.b64decode(as_file.file.file_with_bytes)) == deep
        assert MessageToDict(as_data.data.data) == {"v": 1}
