"""What the audit log says of a cancel by a person that does not come to its end."""

from __future__ import annotations

import pytest
from django.db import DatabaseError

from agents.threads import in_thread
from protocol.errors import A2AError, InternalError, UnavailableError
from protocol.states import TaskState
from tasks_app.execution import cancelling
from tasks_app.models import AuditEntry
from tasks_app.operations import send_message
from tasks_app.pages.answering import _cancel
from tests.tasks_app.world import World, ask, request, soon

LINES = "SELECT actor, action, task_id, detail FROM tasks_app_auditentry"


async def ask_to_cancel(world: World) -> AuditEntry:
    """The line of the audit log with which a cancel of a waiting task begins."""
    entry = await world.add_agent(ask)
    task = (await soon(send_message(world.call(entry), request()))).record
    line: AuditEntry = await in_thread(
        lambda: AuditEntry.objects.create(
            actor="ada", action="task.cancel", agent=entry.slug, task_id=task.id, detail="Asked to cancel it."
        )
    )
    return line


@pytest.mark.parametrize(
    ("error", "reason"),
    [(UnavailableError(retry_after=5), "the database was away"), (InternalError(), "something went wrong in the host")],
)
async def test_the_line_says_why_a_task_could_not_be_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch, error: A2AError, reason: str
) -> None:
    line = await ask_to_cancel(world)
    host = world.hosts[0]

    async def fail(task_id: str) -> None:
        raise error

    if isinstance(error, UnavailableError):
        monkeypatch.setattr(host.store, "load", fail)
    else:
        monkeypatch.setattr(cancelling, "_TRIES", 0)  # as if the task had gone on in other hands each time
    with pytest.raises(type(error)):
        await soon(_cancel(host, line))
    monkeypatch.undo()
    expected = ("ada", "task.cancel", line.task_id, f"Could not be cancelled: {reason}.")
    assert await world.query(LINES) == [expected]
    assert (await world.load(line.task_id)).state is TaskState.INPUT_REQUIRED


async def test_a_line_that_cannot_be_completed_stays_as_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The cancel is done all the same, and nobody is told that it was not."""
    line = await ask_to_cancel(world)

    def fail(**_: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(line, "save", fail)
    record = await soon(_cancel(world.hosts[0], line))
    assert record.state is TaskState.CANCELED
    assert await world.query(LINES) == [("ada", "task.cancel", line.task_id, "Asked to cancel it.")]
    assert "stays as asked for: DatabaseError" in caplog.text
