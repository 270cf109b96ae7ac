"""Celery's entry points: doorbells for tasks of `worker` agents and for webhooks, and the sweep that beat asks for."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutdown

from tasks_app.execution.doorbell import DELIVER_PUSH, RUN_TASKS
from tasks_app.processes.process import get_host
from tasks_app.processes.worker import WorkerLoop
from tasks_app.retention import housekeeping
from tasks_app.retention.requests import KEEP_HOUSE

_loop: WorkerLoop | None = None


@worker_init.connect
def start_loop(**_: Any) -> None:
    """The worker process has one event loop for all its agents."""
    global _loop
    _loop = WorkerLoop()
    _loop.start()


@worker_shutdown.connect
def stop_loop(**_: Any) -> None:
    """Give running tasks a moment, then fail them with a reason."""
    if _loop is not None:
        _loop.stop()


@shared_task(name=RUN_TASKS, ignore_result=True, acks_late=True)
def run_tasks(rings: list[tuple[str, int]]) -> None:
    """Claim and run tasks, given as (id, attempt)."""
    if _loop is not None:
        _loop.run_tasks(rings)


@shared_task(name=DELIVER_PUSH, ignore_result=True, acks_late=True)
def deliver_push(task_ids: list[str]) -> None:
    """Tell the webhooks of tasks their news."""
    if _loop is not None:
        _loop.deliver_push(task_ids)


@shared_task(name=KEEP_HOUSE, ignore_result=True)
def keep_house() -> None:
    """Erase what was asked for and delete what is kept no longer. Returns at once."""
    if _loop is not None:
        _loop.call(_keep_house())


async def _keep_house() -> None:
    host = await get_host()
    host.spawn(housekeeping.keep_house(host))


@shared_task(name="tasks_app.sweep", ignore_result=True)
def sweep_tasks() -> None:
    """FAIL or queue again what nobody holds any more, and deliver what webhooks wait for."""
    if _loop is not None:
        _loop.sweep()


@shared_task(name="tasks_app.remove_unnamed_files", ignore_result=True)
def remove_unnamed_files() -> None:
    """Delete the files of writes that were lost."""
    if _loop is not None:
        _loop.remove_unnamed_files()
