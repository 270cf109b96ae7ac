"""The agents of the documents, written for the a2a-sdk as people would."""

from __future__ import annotations

import asyncio

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types.a2a_pb2 import Part, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

FORECAST = [
    {"date": "2023-10-01", "temperature": 20, "condition": "晴天"},
    {"date": "2023-10-02", "temperature": 18, "condition": "多云"},
]
REPORT = "## 合规分析报告\n\n根据您提供的合同内容..."


class Base(AgentExecutor):
    """What all of them share."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.start_work()
        await self.work(context, updater)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        raise NotImplementedError


class Weather(Base):
    """The forecast for a place and dates that come as data."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        assert context.message is not None
        asked = [MessageToDict(part.data) for part in context.message.parts if part.WhichOneof("content") == "data"]
        assert asked == [{"location": "巴黎", "dates": {"start": "2023-10-01", "end": "2023-10-07"}}], asked
        await updater.add_artifact([Part(data=ParseDict({"forecast": FORECAST}, Value()))], artifact_id="art-001")


class Compliance(Base):
    """A report as text and file, with progress on the way. A message that begins with `wait` is never done."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        await updater.update_status(TaskState.TASK_STATE_WORKING, metadata={"progress": 0.45})
        if context.get_user_input().startswith("wait"):
            await asyncio.get_running_loop().create_future()
        await updater.add_artifact(
            [
                Part(text=REPORT, metadata={"language": "zh-CN", "word_count": 2847}),
                Part(raw=b"%PDF-1.4\n", filename="compliance_report.pdf", media_type="application/pdf"),
            ],
            artifact_id="report",
            name="compliance_report",
            metadata={"confidence": 0.92},
        )


class Translation(Base):
    """Translates, into one answer that it knows."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        await updater.add_artifact([Part(text="服务协议")], artifact_id="translation")
