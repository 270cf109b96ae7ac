"""Webhooks for tests of deliveries that run in this process: tasks with one config, and how far it is."""

from __future__ import annotations

import asyncio
from typing import Any

from agents.registry import AgentEntry
from agents.runtimes.base import Run, Updates
from protocol.model import TaskPushNotificationConfig
from protocol.states import TaskState
from tasks_app import operations
from tasks_app.push.delivery import Deliverer
from tests.tasks_app.world import PATIENCE, World, chunk, request, say

COLUMNS = "cursor, last_seq, due_at IS NOT NULL, lease_until IS NOT NULL, attempts, last_error"


async def steps(run: Run, updates: Updates) -> None:
    """WORKING, two chunks, COMPLETED."""
    await updates.status(TaskState.WORKING)
    await updates.artifact(chunk("a"))
    await updates.artifact(chunk("b"), append=True, last_chunk=True)
    await updates.status(TaskState.COMPLETED, say("done"))


async def tell(world: World, entry: AgentEntry, url: str, **fields: Any) -> str:
    """Send a message with a webhook; the id of the task, which has ended or waits."""
    config = TaskPushNotificationConfig(url=url, **fields)
    answer = await operations.send_message(world.call(entry), request(push_config=config))
    return answer.record.id


async def row(world: World, task_id: str) -> tuple[Any, ...]:
    """The columns of a task's only config."""
    ((*columns,),) = await world.query(f"SELECT {COLUMNS} FROM tasks_app_pushconfig WHERE task_id = %s", [task_id])
    return tuple(columns)


async def wait_for_row(world: World, task_id: str, *expected: Any) -> None:
    """Wait until the config of a task is so."""
    async with asyncio.timeout(PATIENCE):
        while await row(world, task_id) != expected:  # noqa: ASYNC110 another connection changes it
            await asyncio.sleep(0.01)


async def all_done(world: World, task_id: str) -> tuple[Any, ...]:
    """The columns of a config that has had everything."""
    last_seq = (await world.load(task_id)).last_seq
    return (last_seq, last_seq, False, False, 0, "")


async def idle(delivery: Deliverer) -> None:
    """Wait until no delivery runs."""
    async with asyncio.timeout(PATIENCE):
        while delivery._running:
            await asyncio.wait(delivery._running)
