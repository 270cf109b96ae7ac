"""Taking a message in: as a new task, as the next turn of one, or as a repetition of what was accepted before."""

from __future__ import annotations

from msgspec import UNSET

from protocol import codec
from protocol.errors import ContentTypeNotSupportedError, PushNotificationNotSupportedError, UnavailableError
from protocol.model import TaskPushNotificationConfig
from protocol.requests import SendMessageRequest
from protocol.timestamps import now
from tasks_app.content.keeping import has_big
from tasks_app.execution.turn import Turn
from tasks_app.journal import Acceptance
from tasks_app.operations.call import Call
from tasks_app.operations.continuing import continue_task
from tasks_app.operations.creating import create_task
from tasks_app.operations.deadlines import asked_deadline, past_deadline
from tasks_app.operations.incoming import Accepted, Incoming, repeated, was_accepted
from tasks_app.operations.keeping import big_fingerprint
from tasks_app.push.config import check_config


async def accept_message(
    call: Call, request: SendMessageRequest, acknowledged: bool, metadata: str | None = None
) -> Accepted:
    """Store the message and start the agent; the message is committed before anything runs (§3.1.1).

    `acknowledged` says that the caller is going to be given a task before the agent has answered; an agent that
    delegates always is. `metadata`, a JSON object, is what a new task has before its agent adds to it. Raises
    ContentTypeNotSupportedError, PushNotificationNotSupportedError, TaskNotFoundError, UnsupportedOperationError for a
    task that has ended or is busy, InvalidParamsError for a wrong context, a repeated messageId with other content or
    a webhook that may not be called, and for big parts beyond a limit; UnavailableError in a process that ends, and
    without a storage for big parts. Then nothing was stored.
    """
    if call.host.draining and call.runs_here:
        raise UnavailableError(retry_after=1)
    call.check_extensions()
    _check_content(call, request)
    big = has_big(request.message.parts)
    acceptance = None
    # Of strangers without a common history, one could fetch another's answer with a guessed message.
    if call.entry.idempotent_sends and not call.is_stranger:
        digest = await big_fingerprint(request) if big else codec.fingerprint(request)
        acceptance = Acceptance(call.entry.id, call.caller.owner, request.message.message_id, digest)
    push_config = await _take_push_config(call, request)
    turn = Turn(
        configuration=request.configuration,
        metadata=request.metadata,
        extensions=sorted(call.extensions),
        authenticated=call.caller.authenticated,
        acknowledged=acknowledged or call.parent_id is not None,
        answered=call.answered,
    )
    incoming = Incoming(request, turn, acceptance, push_config, asked_deadline(request), big)
    if incoming.deadline is not None and incoming.deadline <= now():
        if await was_accepted(call, incoming):
            return await repeated(call, acceptance)
        if call.version != "tasks":
            raise past_deadline()
        incoming.deadline = None  # The task REST dialect keeps it as a note, such as the date in its own examples.
    if request.message.task_id:
        return await continue_task(call, incoming)
    return await create_task(call, incoming, metadata)


def _check_content(call: Call, request: SendMessageRequest) -> None:
    for part in request.message.parts:
        if not call.entry.accepts_part(part):
            raise ContentTypeNotSupportedError(part.media_type)


async def _take_push_config(call: Call, request: SendMessageRequest) -> TaskPushNotificationConfig | None:
    """The checked webhook of a request, taken out of it: its secrets are no business of the agent or of the turn that
    is stored."""
    if request.configuration is UNSET or request.configuration.task_push_notification_config is UNSET:
        return None
    if not call.entry.push_notifications:
        raise PushNotificationNotSupportedError
    config = request.configuration.task_push_notification_config
    signer = call.host.registry.signer
    await check_config(config, call.host.outbound, signer, "configuration.taskPushNotificationConfig.")
    request.configuration.task_push_notification_config = UNSET
    return config
