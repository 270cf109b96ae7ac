"""The reference: an echo agent on the public server of `a2a-sdk`, with its own PostgreSQL task store.

Runs in a virtual environment of its own (reference-requirements.txt), started by servers.py. Environment:
REFERENCE_DSN (postgresql+asyncpg://…), REFERENCE_PORT. Texts: `hold SECONDS` works that long, any other is echoed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from sqlalchemy.ext.asyncio import create_async_engine  # type: ignore[import-not-found]
from starlette.applications import Starlette  # type: ignore[import-not-found]

POOL = 20  # connections; more do not make it faster


class Echo(AgentExecutor):
    """What the host's `echo` and `hold` simulators do, in the SDK's words."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        assert context.message is not None
        assert context.task_id
        assert context.context_id
        task = pb.Task(
            id=context.task_id,
            context_id=context.context_id,
            status=pb.TaskStatus(state=pb.TaskState.TASK_STATE_SUBMITTED),
            history=[context.message],
        )
        task.status.timestamp.GetCurrentTime()
        await event_queue.enqueue_event(task)
        updates = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updates.start_work()
        if text.startswith("hold "):
            await asyncio.sleep(float(text.split()[1]))
        await updates.add_artifact([pb.Part(text=text)], name="echo")
        await updates.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id
        assert context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = pb.AgentCard(
    name="Echo",
    description="Returns the text that it was sent as an artifact.",
    version="1.0.0",
    supported_interfaces=[
        pb.AgentInterface(
            url=f"http://127.0.0.1:{os.environ['REFERENCE_PORT']}/rpc",
            protocol_binding="JSONRPC",
            protocol_version="1.0",
        )
    ],
    capabilities=pb.AgentCapabilities(streaming=True, push_notifications=False),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[pb.AgentSkill(id="echo", name="Echo", description="echoes", tags=["echo"])],
)
store = DatabaseTaskStore(create_async_engine(os.environ["REFERENCE_DSN"], pool_size=POOL, max_overflow=0))


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Create the store's table before the first call, not during it."""
    await store.initialize()
    yield


app = Starlette(
    lifespan=lifespan,
    routes=[
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(DefaultRequestHandler(agent_executor=Echo(), task_store=store, agent_card=card), "/rpc"),
    ],
)
