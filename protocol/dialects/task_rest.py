"""The task REST dialect: tasks as resources, as descriptions of A2A before its first version with a number had them.

    task      {"id", "sessionId", "status": {"state", "timestamp", "progress", "message"}, "artifacts", "metadata"}
    message   {"role": "user" or "agent", "parts", "metadata"}
    artifact  {"name", "description", "parts", "metadata"}
    event     a task or a part of one, with its "type": the state, or "artifact"

Parts name their type (`protocol.dialects.tagged`). Pure translations from and to 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import DecodeError, Raw

from protocol import codec
from protocol.dialects.tagged import (
    FILE_MEMBERS,
    Members,
    TaggedParts,
    encode,
    encode_items,
    items_of,
    members_of,
    note_repeated,
    text_of,
    type_of,
)
from protocol.errors import InvalidParamsError, Violation
from protocol.ids import new_id
from protocol.json_text import is_null
from protocol.protojson import read as read_json
from protocol.requests import GetExtendedAgentCardRequest, SendMessageRequest
from protocol.states import TaskState
from protocol.violations import Violations

VERSION: Final = "tasks"
"""In the place of a version: the dialect has none."""
CALLBACK: Final = "callback_url"
ESTIMATE: Final = "estimated_completion"
PROGRESS: Final = "progress"

# The dialect has no word for a refusal: to its clients, what was rejected has failed.
STATES: Final = {state: state.removeprefix("TASK_STATE_").lower().replace("_", "-") for state in TaskState} | {
    TaskState.REJECTED: "failed"
}
# What fields of a SendMessageRequest are called.
_NAMES: Final = {
    "message.contextId": "sessionId",
    "message.taskId": "id",
    "configuration.taskPushNotificationConfig.url": f"metadata.{CALLBACK}",
}
_ROLES: Final = {"user": "ROLE_USER", "agent": "ROLE_AGENT", "ROLE_USER": "ROLE_USER", "ROLE_AGENT": "ROLE_AGENT"}
_SPOKEN_ROLES: Final = {"ROLE_USER": Raw(b'"user"'), "ROLE_AGENT": Raw(b'"agent"')}
_number = msgspec.json.Decoder(float)
_json = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """A message of the dialect as 1.0 has it, and the metadata that its task keeps: a JSON object, None for none."""

    request: SendMessageRequest
    metadata: str | None


def read_task(body: bytes) -> TaskMessage:
    """The body of POST /tasks: a message with `sessionId` and `metadata` beside it.

    A missing messageId is made up. `metadata.callback_url` becomes a push config. Raises ParseError,
    InvalidParamsError with the fields as the dialect names them.
    """
    return _Reader(_object(body)).read("")


def read_message(body: bytes, task_id: str) -> TaskMessage:
    """The body of POST /tasks/{id}/messages: the same, or the message alone. Raises as `read_task`."""
    members = _object(body)
    if "message" in members or not members:
        return _Reader(members).read(task_id)
    try:
        return _Reader({"message": encode(members)}).read(task_id)
    except InvalidParamsError as error:
        found = [Violation(v.field.removeprefix("message."), v.description) for v in error.violations]
        raise InvalidParamsError(found) from None


def named(error: InvalidParamsError, names: Mapping[str, str] = _NAMES) -> InvalidParamsError:
    """The error with the fields as the dialect names them. `names` has those of one request besides."""
    names = {**_NAMES, **names}
    return InvalidParamsError([Violation(names.get(v.field, v.field), v.description) for v in error.violations])


def _object(body: bytes) -> Members:
    read_json(GetExtendedAgentCardRequest, body)  # of which nothing is read: it is JSON, no deeper than allowed
    members = members_of(body) or {}
    out = Violations()
    note_repeated(body or b"{}", members, "", out)
    out.finish()
    return members


class _Reader:
    """Makes a SendMessageRequest of the members of a request."""

    def __init__(self, members: Members) -> None:
        self._members = {name: value for name, value in members.items() if not is_null(value)}
        self._out = Violations()
        self._parts = TaggedParts(self._out)

    def read(self, task_id: str) -> TaskMessage:
        request: Members = {}
        if "message" in self._members:
            request["message"] = self._message(self._members["message"], task_id)
        kept = self._metadata(request)
        self._out.finish()
        if kept is not None:
            request["metadata"] = kept
        try:
            read = codec.decode(SendMessageRequest, encode(request))
        except InvalidParamsError as error:
            raise named(error, self._parts.names) from None
        return TaskMessage(read, None if kept is None else bytes(kept).decode())

    def _message(self, raw: Raw, task_id: str) -> Raw:
        message = members_of(raw)
        if message is None:
            return raw
        note_repeated(raw, message, "message", self._out)
        message = {name: value for name, value in message.items() if not is_null(value)}
        message.setdefault("messageId", Raw(_json(new_id())))
        message.pop("taskId", None)
        if task_id:
            message["taskId"] = Raw(_json(task_id))
        if "sessionId" in self._members:
            message["contextId"] = self._members["sessionId"]
        if "role" in message:
            message["role"] = self._role(message["role"])
        parts = items_of(message.get("parts"))
        if parts is not None:
            read = [self._parts.read(part, f"message.parts[{index}]") for index, part in enumerate(parts)]
            message["parts"] = encode_items(read)
        return encode(message)

    def _role(self, raw: Raw) -> Raw:
        role = _ROLES.get(text_of(raw) or "")
        if role != "ROLE_USER":
            self._out.add("message.role", "must be user")
        return Raw(_json(role))

    def _metadata(self, request: Members) -> Raw | None:
        """The metadata to keep; the address to call back goes into a push config."""
        raw = self._members.get("metadata")
        if raw is None:
            return None
        metadata = members_of(raw)
        if metadata is None:
            self._out.add("metadata", "must be an object")
            return None
        note_repeated(raw, metadata, "metadata", self._out)
        callback = metadata.pop(CALLBACK, None)
        if callback is not None and not is_null(callback):
            config = encode({"url": callback})
            request["configuration"] = encode({"taskPushNotificationConfig": config})
        return encode(metadata) if metadata else None


def write_task(task: bytes, more: dict[str, str] | None = None) -> bytes:
    """A task of the dialect from the JSON of a Task of 1.0. `more` goes into its metadata."""
    return bytes(encode(_task(members_of(task) or {}, more)))


def write_artifacts(task: bytes) -> bytes:
    """The artifacts of a Task of 1.0, as an array."""
    members = members_of(task) or {}
    return bytes(encode_items([_artifact(raw) for raw in items_of(members.get("artifacts")) or []]))


def write_messages(task: bytes) -> bytes:
    """What was said in a Task of 1.0, oldest first, as an array."""
    members = members_of(task) or {}
    said = items_of(members.get("history")) or []
    newest = (members_of(members["status"]) or {}).get("message")
    return bytes(encode_items([_message(raw) for raw in ([*said, newest] if newest is not None else said)]))


def write_notification(task: bytes) -> bytes:
    """What an event is told to a webhook with: the whole Task of 1.0 as it was then, with its state as the type."""
    return TaskEvents().write(b'{"task":%b}' % task)


class TaskEvents:
    """Writes the StreamResponses of one task, in their order, as events of the dialect."""

    def __init__(self) -> None:
        self._head: Members = {}
        self._progress = 0.0
        self._status: Members = {}

    def write(self, response: bytes) -> bytes:
        """One event; each has the status of the task as it was then."""
        ((name, raw),) = (members_of(response) or {}).items()
        update = members_of(raw) or {}
        if name == "task":
            return bytes(encode(self._begin(update)))
        self._progress = _progress(update.get("metadata"), self._progress)
        if name == "statusUpdate":
            self._status = _status(update["status"], self._progress)
            return self._event(self._status["state"])
        if name == "artifactUpdate":
            self._status["progress"] = Raw(_json(self._progress))
            flags: Members = {flag: update[flag] for flag in ("append", "lastChunk") if flag in update}
            return self._event(Raw(b'"artifact"'), {"artifact": _artifact(update["artifact"]), **flags})
        return self._event(Raw(b'"message"'), {"message": _message(raw)})

    def _begin(self, members: Members) -> Members:
        task = _task(members)
        self._head = {name: task[name] for name in ("id", "sessionId")}
        self._progress = _progress(members.get("metadata"), self._progress)
        self._status = members_of(task["status"]) or {}
        return {"type": self._status["state"], **task}

    def _event(self, kind: Raw, more: Members | None = None) -> bytes:
        return bytes(encode({"type": kind, **self._head, "status": encode(self._status), **(more or {})}))


def _task(task: Members, more: dict[str, str] | None = None) -> Members:
    metadata = members_of(task.get("metadata")) or {}
    status = _status(task["status"], _progress(task.get("metadata"), 0.0))
    written: Members = {"id": task["id"], "sessionId": task["contextId"], "status": encode(status)}
    artifacts = items_of(task.get("artifacts"))
    if artifacts:
        written["artifacts"] = encode_items([_artifact(raw) for raw in artifacts])
    metadata |= {name: Raw(_json(value)) for name, value in (more or {}).items()}
    if metadata:
        written["metadata"] = encode(metadata)
    return written


def _status(raw: Raw, progress: float) -> Members:
    """A status whose message is the text that the agent said."""
    status = members_of(raw) or {}
    state = TaskState(text_of(status["state"]) or "")
    written: Members = {"state": Raw(_json(STATES[state])), "timestamp": status["timestamp"]}
    written["progress"] = Raw(_json(1.0 if state is TaskState.COMPLETED else progress))
    message = members_of(status.get("message"))
    if message is not None:
        texts = [text for part in items_of(message["parts"]) or [] if (text := _text(part)) is not None]
        written["message"] = Raw(_json("\n".join(texts)))
    return written


def _text(part: Raw) -> str | None:
    return text_of((members_of(part) or {}).get("text"))


def _progress(metadata: Raw | None, otherwise: float) -> float:
    """The agent's `progress`, from 0 to 1, in the metadata of a task or an event."""
    given = (members_of(metadata) or {}).get(PROGRESS)
    try:
        value = otherwise if given is None else _number.decode(given)
    except DecodeError:
        return otherwise
    return value if 0 <= value <= 1 else otherwise


def _message(raw: Raw) -> Raw:
    message = members_of(raw) or {}
    kept: Members = {name: message[name] for name in ("messageId", "metadata") if name in message}
    role = _SPOKEN_ROLES[text_of(message["role"]) or ""]
    return encode({"role": role, "parts": _parts(message["parts"]), **kept})


def _artifact(raw: Raw) -> Raw:
    artifact = members_of(raw) or {}
    artifact["parts"] = _parts(artifact["parts"])
    return encode(artifact)


def _parts(raw: Raw) -> Raw:
    return encode_items([_part(part) for part in items_of(raw) or []])


def _part(raw: Raw) -> Raw:
    part = members_of(raw) or {}
    kind = type_of(part)
    if "raw" in part or "url" in part:
        file = {name: part.pop(new) for name, new in FILE_MEMBERS.items() if new in part}
        return encode({"type": kind, "file": encode(file), **part})
    return encode({"type": kind, **part})
