"""Who only has to know whether a task is there, or how it is, reads neither its history nor its artifacts."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from agents.runtimes.base import Run, Updates
from protocol.errors import TaskNotFoundError
from protocol.model import TaskPushNotificationConfig
from protocol.requests import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
)
from protocol.states import TaskState
from tasks_app import operations
from tasks_app.execution.host import Host
from tasks_app.operations import send_message
from tasks_app.tables.record import TaskRecord
from tests.tasks_app.world import BOB, World, chunk, request, say, soon, until


def count_loads(host: Host, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of tasks that are read as a whole from now on."""
    loads: list[str] = []
    load = host.store.load

    async def counted(task_id: str) -> TaskRecord | None:
        loads.append(task_id)
        return await load(task_id)

    monkeypatch.setattr(host.store, "load", counted)
    return loads


async def test_a_row_is_the_task_without_what_may_be_large(world: World) -> None:
    async def act(run: Run, updates: Updates) -> None:
        await updates.artifact(chunk("x"))
        await updates.status(TaskState.INPUT_REQUIRED, say("well?"))

    entry = await world.add_agent(act)
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    whole = await world.load(task_id)
    assert (len(whole.history), len(whole.chunks)) == (1, 1)
    store = world.hosts[0].store
    assert await store.load_row(task_id) == replace(whole, history=[], chunks=[])
    assert await store.load_row("absent") is None
    assert await world.call(entry).find_task(task_id) == replace(whole, history=[], chunks=[])
    with pytest.raises(TaskNotFoundError):
        await world.call(entry, BOB).find_task(task_id)


async def test_push_configs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = await world.add_agent(push_notifications=True)
    task_id = (await soon(send_message(world.call(entry), request()))).record.id
    loads = count_loads(world.hosts[0], monkeypatch)
    given = TaskPushNotificationConfig(task_id=task_id, id="c", url="https://93.184.216.34/")
    find = GetTaskPushNotificationConfigRequest(task_id=task_id, id="c")
    everything = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    delete = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="c")

    async def use(call: operations.Call) -> None:
        made = await operations.create_push_config(call, given)
        assert made.cursor == (await world.query("SELECT last_seq FROM tasks_app_task"))[0][0] > 0
        assert (await operations.get_push_config(call, find)).url == "https://93.184.216.34/"
        assert len((await operations.list_push_configs(call, everything)).configs) == 1
        await operations.delete_push_config(call, delete)

    await soon(use(world.call(entry)))
    before = await world.dump()
    stranger = world.call(entry, BOB)
    for work in (
        operations.create_push_config(stranger, given),
        operations.get_push_config(stranger, find),
        operations.list_push_configs(stranger, everything),
        operations.delete_push_config(stranger, delete),
    ):
        with pytest.raises(TaskNotFoundError):
            await soon(work)
    assert (loads, await world.dump()) == ([], before)


async def test_a_cancel_that_waits_for_code_elsewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it goes on is asked again and again: here for two seconds."""
    over = asyncio.Event()

    async def deaf(run: Run, updates: Updates) -> None:
        await updates.status(TaskState.WORKING)
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()

    monkeypatch.setattr("tasks_app.execution.cancelling._ASK_AGAIN_SECONDS", 0.05)
    other = await world.start_host()
    entry = await world.add_agent(deaf, cancel_grace_seconds=1)
    task_id = (await soon(send_message(world.call(entry), request(immediately=True)))).record.id
    monkeypatch.setattr(world.hosts[0].behaviours, "on_cancel", forget)
    loads = count_loads(other, monkeypatch)
    call = world.call(entry, host=other)
    try:
        record = await soon(operations.cancel_task(call, CancelTaskRequest(id=task_id)))
    finally:
        over.set()
    assert record.state is TaskState.CANCELED
    assert loads == [task_id] * 3, "when it is asked for, after the wait, and as it is at the end"
    await until(lambda: not world.hosts[0].executions, "its code to end")


async def forget(task_id: str) -> None:
    """A process that does not hear of a cancel."""
