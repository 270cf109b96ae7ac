"""Streams of JSON-RPC as drafts of 1.0 show them: named events, and what happened beside the result of 1.0.

event: message                                        the task as it is, or what the agent said
data: {…, "result": {…}, "task": {"id": …, "status": …}}
data: {…, "result": {…}, "message": {"parts": […]}}
event: task                                           the whole task, once it has ended or waits for its caller
data: {…, "result": {…}, "task": {"id": …, "status": …, "artifacts": […]}}
"""

from __future__ import annotations

from msgspec import Raw

from a2a_host.bindings.sse import Frames
from protocol.dialects.drafts import Draft
from protocol.dialects.tagged import Members, encode, members_of, text_of
from protocol.model import Task
from protocol.states import SETTLED
from tasks_app.operations import Call, Frame, rendered

_AGENT = Raw(b'"ROLE_AGENT"')


class DraftFrames:
    """The frames of a stream, each with what drafts of 1.0 have in its place."""

    __slots__ = ("_call", "_draft", "_frames", "beside", "event", "headers")

    def __init__(self, frames: Frames, call: Call, draft: Draft) -> None:
        self._frames = frames
        self._call = call
        self._draft = draft
        self.event = self.beside = b""
        self.headers = frames.headers

    async def next(self) -> Frame | None:
        """See `Frames.next`."""
        frame = await self._frames.next()
        if frame is not None and frame.payload is not None:
            ((name, value),) = (members_of(frame.payload) or {}).items()
            whole, beside = await self._translated(name, members_of(value) or {}, value)
            self.event = b"event: task\n" if whole else b"event: message\n"
            self.beside = b"," + bytes(encode(beside))[1:-1]
        return frame

    @property
    def at_hand(self) -> bool:
        """See `Frames.at_hand`."""
        return self._frames.at_hand

    async def aclose(self) -> None:
        """See `Frames.aclose`."""
        await self._frames.aclose()

    async def _translated(self, name: str, members: Members, value: Raw) -> tuple[bool, Members]:
        """(whether it is the whole task, the members beside the result)."""
        if name == "message":
            return False, {"message": value}
        ids = {"taskId": members.get("taskId") or members["id"], "contextId": members["contextId"]}
        if name == "artifactUpdate":
            artifact = members_of(members["artifact"]) or {}
            return False, {"message": encode({"role": _AGENT, **ids, "parts": artifact["parts"]})}
        status = members["status"]
        if text_of((members_of(status) or {}).get("state")) in SETTLED:
            return True, {"task": Raw(await self._whole_task(text_of(ids["taskId"]) or ""))}
        return False, {"task": encode({"id": ids["taskId"], "contextId": ids["contextId"], "status": status})}

    async def _whole_task(self, task_id: str) -> bytes:
        record = await self._call.load_task(task_id)
        return self._draft.write(Task, await rendered(self._call, record))
