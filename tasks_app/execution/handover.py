"""Answers for runs that wait in their process (`Updates.answer`): who answers, in any process, gives the next attempt
of the task to the process that the row names, and tells it. A look at the rows finds what nobody was told of.

The process hands the message to the run that waits. If that run has ended meanwhile, it runs the turn as any other; if
the process itself has died, its lease is over soon and the sweep decides, as for every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.runtimes.base import Answer
from protocol.states import TaskState
from tasks_app.execution.claiming import claim_task
from tasks_app.execution.execution import Execution
from tasks_app.execution.turn import message_of, turn_of
from tasks_app.tables.record import TaskRecord

if TYPE_CHECKING:
    from tasks_app.execution.host import Host


async def take_answer(host: Host, task_id: str) -> None:
    """Go on with a task that was given to this process, unless that was done before."""
    record = await host.store.load(task_id)
    if record is None or record.worker != host.origin or record.state is not TaskState.WORKING:
        return
    if host.draining:
        await host.behaviours.hand_back([(task_id, record.attempt)])  # It has not begun here.
    elif resume(host, record, Answer(message_of(record), turn_of(record).answered)) is None:
        # Nothing waits here any more. The claim makes sure that the turn is run once, whoever else has read the row.
        await claim_task(host, task_id, record.attempt, given=True)


def resume(host: Host, record: TaskRecord, answer: Answer) -> Execution | None:
    """The run of a task in this process that has the newest attempt, if need be by handing it the answer; None if
    there is none that could."""
    execution = host.executions.get(record.id)
    if execution is None or execution.fenced:
        return None
    if execution.record.attempt >= record.attempt:
        return execution
    if not execution.waits:
        return None
    execution.resume(record.copy(), answer)
    return execution
