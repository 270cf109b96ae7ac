"""An a2a-sdk executor behind `Runtime`: what it is given and what becomes of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct, Value
from msgspec import Raw

from agents.runtimes.base import Caller
from agents.runtimes.python.adapter import PythonRuntime, build
from agents.runtimes.python.queue import Event
from protocol.errors import InvalidAgentResponseError
from protocol.model import Artifact, Part, Role, Task, TaskPushNotificationConfig, TaskStatus
from protocol.requests import SendMessageConfiguration
from protocol.states import TaskState
from tests.agents.executors import Exits, Greeter
from tests.agents.support import CONTEXT, TASK, Recorder, make_message, make_run

S = pb.TaskState


class Plays(AgentExecutor):
    """Sends the events it was made with."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = events

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        for event in self._events:
            await event_queue.enqueue_event(event)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await self.execute(context, event_queue)


async def play(*events: Event, task: Task | None = None) -> Recorder:
    updates = Recorder()
    await PythonRuntime(Plays(events)).execute(make_run("hi", task=task), updates)
    return updates


async def refused(*events: Event, task: Task | None = None) -> list[tuple[object, ...]]:
    """Play events of which the last is refused; returns what was reported before."""
    updates = Recorder()
    with pytest.raises(InvalidAgentResponseError):
        await PythonRuntime(Plays(events)).execute(make_run("hi", task=task), updates)
    return updates.calls


def status(state: S.ValueType, message: pb.Message | None = None, **fields: object) -> pb.TaskStatusUpdateEvent:
    event = pb.TaskStatusUpdateEvent(task_id=TASK, context_id=CONTEXT, status=pb.TaskStatus(state=state))
    if message is not None:
        event.status.message.CopyFrom(message)
    json_format.ParseDict(fields, event)
    return event


def chunk(artifact_id: str, text: str, append: bool = False, last: bool = False) -> pb.TaskArtifactUpdateEvent:
    artifact = pb.Artifact(artifact_id=artifact_id, parts=[pb.Part(text=text)])
    return pb.TaskArtifactUpdateEvent(
        task_id=TASK, context_id=CONTEXT, artifact=artifact, append=append, last_chunk=last
    )


def task_event(state: S.ValueType = S.TASK_STATE_SUBMITTED, **fields: object) -> pb.Task:
    task = pb.Task(id=TASK, context_id=CONTEXT, status=pb.TaskStatus(state=state))
    json_format.ParseDict(fields, task)
    return task


def spoken(text: str, message_id: str = "a-1", **fields: str) -> pb.Message:
    return pb.Message(message_id=message_id, role=pb.ROLE_AGENT, parts=[pb.Part(text=text)], **fields)


def waiting(**fields: object) -> Task:
    """A task that asked a question and has an artifact of two chunks."""
    return Task(
        id=TASK,
        context_id=CONTEXT,
        status=TaskStatus(
            state=TaskState.INPUT_REQUIRED,
            message=make_message("Who are you?", message_id="a-0", role=Role.AGENT),
            timestamp="2026-01-02T03:04:05.678Z",
        ),
        artifacts=[Artifact(artifact_id="notes", parts=[Part(text="one"), Part(text="two")])],
        history=[make_message("hello", message_id="m-0")],
        metadata=Raw(b'{"n":1}'),
    )


class TestSampleExecutor:
    """The two turns of an executor in the shape of the SDK's samples."""

    async def test_first_turn(self) -> None:
        executor, updates = Greeter(), Recorder()
        await PythonRuntime(executor).execute(make_run("hi"), updates)
        assert updates.calls == [(TaskState.WORKING,), (TaskState.INPUT_REQUIRED, "Who are you?")]
        assert executor.contexts[0].current_task is None

    async def test_second_turn(self) -> None:
        executor, updates = Greeter(), Recorder()
        await PythonRuntime(executor).execute(make_run("Alice", task=waiting()), updates)
        assert updates.calls == [
            (TaskState.WORKING,),
            ("greeting", ["Hello, "], False, False),
            ("greeting", ["Alice"], True, True),
            (TaskState.COMPLETED,),
        ]
        assert updates.artifacts[0].name == "greeting"

    async def test_cancel(self) -> None:
        executor, updates = Greeter(), Recorder()
        await PythonRuntime(executor).cancel(make_run("hi"), updates)
        assert updates.calls == [(TaskState.CANCELED, "Stopped.")]
        context = executor.contexts[0]
        assert context.message is None
        assert context.current_task is not None
        assert context.current_task.status.state == S.TASK_STATE_WORKING
        assert [m.message_id for m in context.current_task.history] == ["m-1"]

    def test_is_built_from_its_path(self) -> None:
        first, second = (build("tests.agents.executors.Greeter") for _ in range(2))
        assert isinstance(first._executor, Greeter)
        assert first._executor is not second._executor


class TestContext:
    """RequestContext as the SDK's own server fills it."""

    async def context(self, **fields: object) -> RequestContext:
        executor = Greeter()
        await PythonRuntime(executor).execute(make_run("hi", **fields), Recorder())  # type: ignore[arg-type]
        return executor.contexts[0]

    async def test_ids_and_text(self) -> None:
        context = await self.context()
        assert (context.task_id, context.context_id, context.get_user_input()) == (TASK, CONTEXT, "hi")
        assert context.message is not None
        assert (context.message.task_id, context.message.context_id) == (TASK, CONTEXT)
        assert context.related_tasks == []
        assert context.tenant == ""

    async def test_caller(self) -> None:
        user = (await self.context()).call_context.user
        assert (user.is_authenticated, user.user_name) == (True, "alice")
        user = (await self.context(caller=Caller("anonymous"))).call_context.user
        assert (user.is_authenticated, user.user_name) == (False, "")

    async def test_extensions(self) -> None:
        context = await self.context(extensions=frozenset({"https://e.test/x"}))
        assert context.requested_extensions == {"https://e.test/x"}

    async def test_every_kind_of_content(self) -> None:
        message = make_message(
            Part(text="a", metadata=Raw(b'{"k":[1]}')),
            Part(raw="+/8=", media_type="image/png", filename="a.png"),
            Part(url="https://e.test/f"),
            Part(data=Raw(b'{"n":1,"l":[true,null]}')),
            Part(data=Raw(b"null")),
            metadata=Raw(b'{"m":{}}'),
            extensions=["https://e.test/x"],
        )
        context = await self.context(message=message)
        assert json_format.MessageToDict(context.message) == {  # type: ignore[arg-type]
            "messageId": "m-1",
            "taskId": TASK,
            "contextId": CONTEXT,
            "role": "ROLE_USER",
            "parts": [
                {"text": "a", "metadata": {"k": [1.0]}},
                {"raw": "+/8=", "mediaType": "image/png", "filename": "a.png"},
                {"url": "https://e.test/f"},
                {"data": {"n": 1.0, "l": [True, None]}},
                {"data": None},
            ],
            "metadata": {"m": {}},
            "extensions": ["https://e.test/x"],
        }

    async def test_configuration_and_metadata(self) -> None:
        configuration = SendMessageConfiguration(
            history_length=0,
            return_immediately=True,
            accepted_output_modes=["text/plain"],
            task_push_notification_config=TaskPushNotificationConfig(url="https://e.test/hook"),
        )
        context = await self.context(configuration=configuration, metadata=Raw(b'{"trace":"t"}'))
        assert context.metadata == {"trace": "t"}
        assert context.configuration is not None
        assert json_format.MessageToDict(context.configuration) == {
            "acceptedOutputModes": ["text/plain"],
            "taskPushNotificationConfig": {"url": "https://e.test/hook"},
            "historyLength": 0,
            "returnImmediately": True,
        }

    @pytest.mark.spec("3.4.3")
    async def test_current_task_of_a_follow_up(self) -> None:
        context = await self.context(task=waiting())
        task = context.current_task
        assert task is not None
        assert [m.message_id for m in task.history] == ["m-0", "m-1"]
        assert task.status.state == S.TASK_STATE_INPUT_REQUIRED
        assert task.status.message.parts[0].text == "Who are you?"
        assert task.status.timestamp.ToJsonString() == "2026-01-02T03:04:05.678Z"
        assert [part.text for part in task.artifacts[0].parts] == ["one", "two"]
        assert task.metadata == json_format.ParseDict({"n": 1}, Struct())

    async def test_new_message_is_in_the_history_once(self) -> None:
        task = waiting()
        task.history.append(make_message("hi"))
        context = await self.context(task=task)
        assert context.current_task is not None
        assert [m.message_id for m in context.current_task.history] == ["m-0", "m-1"]

    async def test_related_tasks(self) -> None:
        message = make_message("hi", reference_task_ids=["other"])
        other = Task(id="other", status=TaskStatus(state=TaskState.COMPLETED))
        assert [task.id for task in (await self.context(message=message, related=[other])).related_tasks] == ["other"]
        assert (await self.context(related=[other])).related_tasks == []


class TestStatusEvents:
    async def test_message_gets_the_ids_of_the_task(self) -> None:
        updates = await play(status(S.TASK_STATE_WORKING, spoken("on it", task_id="x", context_id="y")))
        assert updates.calls == [(TaskState.WORKING, "on it")]
        message = updates.messages[0]
        assert (message.message_id, message.role) == ("a-1", Role.AGENT)
        assert (message.task_id, message.context_id) == (TASK, CONTEXT)

    async def test_message_without_id_gets_one(self) -> None:
        updates = await play(status(S.TASK_STATE_WORKING, spoken("on it", message_id="")))
        assert len(updates.messages[0].message_id) == 36

    async def test_metadata_keeps_whole_numbers_whole(self) -> None:
        event = status(S.TASK_STATE_WORKING, metadata={"n": 1, "f": 1.5, "big": 1e300, "l": [{"x": None}], "t": "é"})
        updates = await play(event)
        assert updates.metadata == ['{"big":1e300,"f":1.5,"l":[{"x":null}],"n":1,"t":"é"}'.encode()]

    @pytest.mark.parametrize("state", [0, 9, 99])
    async def test_unknown_state_is_refused(self, state: S.ValueType) -> None:
        assert await refused(status(state)) == []

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    async def test_number_that_json_lacks_is_refused(self, number: float) -> None:
        event = status(S.TASK_STATE_WORKING)
        event.metadata["n"] = number
        assert await refused(event) == []

    @pytest.mark.parametrize("field", ["task_id", "context_id"])
    async def test_other_task_or_context_is_refused(self, field: str) -> None:
        event = status(S.TASK_STATE_WORKING)
        setattr(event, field, "other")
        assert await refused(event) == []

    async def test_ids_may_be_left_out(self) -> None:
        event = pb.TaskStatusUpdateEvent(status=pb.TaskStatus(state=S.TASK_STATE_COMPLETED))
        assert (await play(event)).calls == [(TaskState.COMPLETED,)]


@pytest.mark.spec("4.2.2")
class TestArtifactEvents:
    async def test_append_and_last_chunk(self) -> None:
        updates = await play(chunk("a", "1"), chunk("a", "2", append=True, last=True))
        assert updates.calls == [("a", ["1"], False, False), ("a", ["2"], True, True)]

    async def test_append_to_an_unknown_artifact_is_passed_on(self) -> None:
        assert (await play(chunk("a", "1", append=True))).calls == [("a", ["1"], True, False)]

    async def test_every_kind_of_content(self) -> None:
        event = chunk("a", "x")
        event.artifact.name, event.artifact.description = "n", "d"
        event.artifact.extensions.append("https://e.test/x")
        json_format.ParseDict({"n": 2}, event.artifact.metadata)
        json_format.ParseDict({"e": 3}, event.metadata)
        event.artifact.parts.extend(
            [
                pb.Part(raw=b"\xfb\xff", media_type="image/png", filename="a.png"),
                pb.Part(url="https://e.test/f", metadata=json_format.ParseDict({"p": 1}, Struct())),
                pb.Part(data=json_format.ParseDict([1, "x", None, {"b": False}], Value())),
                pb.Part(data=Value(number_value=3)),
            ]
        )
        updates = await play(event)
        assert updates.artifacts == [
            Artifact(
                artifact_id="a",
                name="n",
                description="d",
                extensions=["https://e.test/x"],
                metadata=Raw(b'{"n":2}'),
                parts=[
                    Part(text="x"),
                    Part(raw="+/8=", media_type="image/png", filename="a.png"),
                    Part(url="https://e.test/f", metadata=Raw(b'{"p":1}')),
                    Part(data=Raw(b'[1,"x",null,{"b":false}]')),
                    Part(data=Raw(b"3")),
                ],
            )
        ]
        assert updates.metadata == [b'{"e":3}']

    @pytest.mark.parametrize("artifact_id", ["", "x" * 256, "a\x00b"])
    async def test_bad_id_is_refused(self, artifact_id: str) -> None:
        assert await refused(chunk(artifact_id, "x")) == []

    @pytest.mark.spec("4.1.7")
    async def test_no_parts_are_refused(self) -> None:
        event = chunk("a", "x")
        event.artifact.ClearField("parts")
        assert await refused(event) == []

    @pytest.mark.spec("4.1.6")
    async def test_part_without_content_is_refused(self) -> None:
        event = chunk("a", "x")
        event.artifact.parts.add(media_type="text/plain")
        assert await refused(event) == []

    async def test_other_task_is_refused(self) -> None:
        event = chunk("a", "x")
        event.task_id = "other"
        assert await refused(event) == []


@pytest.mark.spec("3.1.1")
class TestMessageEvents:
    async def test_reply(self) -> None:
        updates = await play(spoken("hello", task_id=TASK))
        assert updates.calls == [("reply", "hello")]
        assert (updates.messages[0].task_id, updates.messages[0].context_id) == ("", CONTEXT)

    async def test_only_one(self) -> None:
        assert await refused(spoken("a"), spoken("b")) == [("reply", "a")]

    async def test_nothing_after_it(self) -> None:
        assert await refused(spoken("a"), status(S.TASK_STATE_COMPLETED)) == [("reply", "a")]

    async def test_not_after_a_task(self) -> None:
        assert await refused(task_event(), spoken("a")) == []

    async def test_not_from_cancel(self) -> None:
        updates = Recorder()
        with pytest.raises(InvalidAgentResponseError):
            await PythonRuntime(Plays([spoken("a")])).cancel(make_run("hi"), updates)
        assert updates.calls == []

    @pytest.mark.parametrize("field", ["task_id", "context_id"])
    async def test_other_task_or_context_is_refused(self, field: str) -> None:
        assert await refused(spoken("a", **{field: "other"})) == []

    async def test_no_parts_are_refused(self) -> None:
        assert await refused(pb.Message(message_id="a", role=pb.ROLE_AGENT)) == []

    async def test_what_is_no_event_is_refused(self) -> None:
        assert await refused(pb.Part(text="x")) == []  # type: ignore[arg-type]


class TestTaskEvents:
    """A Task event makes no task: it reports what is new in it."""

    async def test_submitted_snapshot_says_nothing(self) -> None:
        snapshot = task_event(history=[{"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}])
        assert (await play(snapshot, status(S.TASK_STATE_COMPLETED))).calls == [(TaskState.COMPLETED,)]

    async def test_everything_in_one_task(self) -> None:
        task = task_event(
            S.TASK_STATE_COMPLETED,
            artifacts=[{"artifactId": "a", "parts": [{"text": "x"}]}],
            history=[
                {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
                {"messageId": "a-1", "role": "ROLE_AGENT", "parts": [{"text": "thinking"}]},
            ],
            metadata={"cost": 2},
        )
        task.status.message.CopyFrom(spoken("done", "a-2"))
        updates = await play(task)
        assert updates.calls == [
            (TaskState.WORKING, "thinking"),
            ("a", ["x"], False, False),
            (TaskState.COMPLETED, "done"),
        ]
        assert updates.metadata == [b'{"cost":2}']

    async def test_what_was_reported_is_not_reported_again(self) -> None:
        events: list[Event] = [
            status(S.TASK_STATE_WORKING, spoken("on it", "a-1")),
            chunk("a", "1"),
            chunk("a", "2", append=True, last=True),
            status(S.TASK_STATE_COMPLETED, spoken("done", "a-2"), metadata={"n": 1}),
        ]
        task = task_event(
            S.TASK_STATE_COMPLETED,
            artifacts=[{"artifactId": "a", "parts": [{"text": "1"}, {"text": "2"}]}],
            history=[{"messageId": "a-1", "role": "ROLE_AGENT", "parts": [{"text": "on it"}]}],
            metadata={"n": 1},
        )
        task.status.message.CopyFrom(spoken("done", "a-2"))
        assert (await play(*events, task, task)).calls == (await play(*events)).calls

    async def test_changed_artifact_is_replaced(self) -> None:
        task = task_event(S.TASK_STATE_WORKING, artifacts=[{"artifactId": "a", "parts": [{"text": "new"}]}])
        assert (await play(status(S.TASK_STATE_WORKING), chunk("a", "old"), task)).calls[2:] == [
            ("a", ["new"], False, False)
        ]

    async def test_same_state_with_a_new_message(self) -> None:
        task = task_event(S.TASK_STATE_WORKING)
        task.status.message.CopyFrom(spoken("still on it", "a-2"))
        updates = await play(status(S.TASK_STATE_WORKING, spoken("on it", "a-1")), task)
        assert updates.calls == [(TaskState.WORKING, "on it"), (TaskState.WORKING, "still on it")]

    async def test_metadata_of_the_snapshot(self) -> None:
        updates = await play(task_event(metadata={"n": 1}))
        assert (updates.calls, updates.metadata) == ([(TaskState.SUBMITTED,)], [b'{"n":1}'])

    @pytest.mark.parametrize("state", [S.TASK_STATE_SUBMITTED, S.TASK_STATE_UNSPECIFIED, S.TASK_STATE_INPUT_REQUIRED])
    async def test_snapshot_of_a_follow_up_says_nothing(self, state: S.ValueType) -> None:
        snapshot = task_event(
            state,
            artifacts=[{"artifactId": "notes", "parts": [{"text": "one"}, {"text": "two"}]}],
            history=[{"messageId": "a-0", "role": "ROLE_AGENT", "parts": [{"text": "Who are you?"}]}],
            metadata={"n": 1},
        )
        assert (await play(snapshot, task=waiting())).calls == []

    async def test_append_to_an_artifact_of_an_earlier_turn_is_known(self) -> None:
        parts = [{"text": "one"}, {"text": "two"}, {"text": "three"}]
        snapshot = task_event(S.TASK_STATE_WORKING, artifacts=[{"artifactId": "notes", "parts": parts}])
        updates = await play(chunk("notes", "three", append=True), snapshot, task=waiting())
        assert updates.calls == [("notes", ["three"], True, False), (TaskState.WORKING,)]

    async def test_current_task_sent_back_changed(self) -> None:
        class Edits(AgentExecutor):
            async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
                task = context.current_task
                assert task is not None
                task.status.state = S.TASK_STATE_COMPLETED
                task.artifacts.add(artifact_id="b", parts=[pb.Part(text="x")])
                await event_queue.enqueue_event(task)

            async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
                """Nothing to do."""

        updates = Recorder()
        await PythonRuntime(Edits()).execute(make_run("hi", task=waiting()), updates)
        assert updates.calls == [("b", ["x"], False, False), (TaskState.COMPLETED,)]

    @pytest.mark.parametrize("change", [lambda t: setattr(t, "id", "x"), lambda t: setattr(t, "context_id", "x")])
    async def test_other_task_is_refused(self, change: Callable[[pb.Task], None]) -> None:
        task = task_event(S.TASK_STATE_COMPLETED)
        change(task)
        assert await refused(task) == []


class TestFailures:
    async def test_exception_reaches_the_host(self) -> None:
        class Breaks(Exits):
            async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
                await TaskUpdater(event_queue, TASK, CONTEXT).start_work()
                raise ValueError("secret")

        updates = Recorder()
        with pytest.raises(ValueError, match="secret"):
            await PythonRuntime(Breaks()).execute(make_run("hi"), updates)
        assert updates.calls == [(TaskState.WORKING,)]

    async def test_sys_exit_does_not_end_the_process(self) -> None:
        runtime = PythonRuntime(Exits())
        with pytest.raises(RuntimeError, match="exit"):
            await runtime.execute(make_run("hi"), Recorder())
        with pytest.raises(RuntimeError, match="exit"):
            await runtime.cancel(make_run("hi"), Recorder())
