"""Streams over WebSocket that go on where they broke off (docs/websocket.md)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.callers import Caller
from tests.websocket.line import FINAL, Line, open_line, saying, state


@pytest.mark.spec("3.1.6")
async def test_a_stream_goes_on_after_the_event_that_is_named(alice: Caller) -> None:
    """With the parameter `lastEventId` responses have the ids of their events; without it they are as ever."""
    given = saying("steps 12 30")
    async with open_line(alice, "steps") as line:
        await line.ask(1, "SendStreamingMessage", given | {"lastEventId": None})
        heard = [await line.reply(1) for _ in range(4)]
    assert [list(reply) for reply in heard] == [["jsonrpc", "id", "result", "eventId"]] * 4
    first = heard[0]["eventId"]
    assert [reply["eventId"] for reply in heard] == list(range(first, first + 4))
    task = heard[0]["result"]["task"]["id"]
    async with open_line(alice, "steps") as line:
        await line.ask("plain", "SubscribeToTask", {"id": task})
        last = {"lastEventId": heard[-1]["eventId"]}
        await line.ask("subscribe", "SubscribeToTask", {"id": task} | last)
        await line.ask("attach", "SendStreamingMessage", given | last)
        plain, *_ = await line.rest("plain")
        assert list(plain) == ["task"]
        stories = [await whole(line, id) for id in ("subscribe", "attach")]
        await line.ask("late", "SendStreamingMessage", given | {"lastEventId": str(first + 1)})
        stories.append(await whole(line, "late"))
    for ids, items in stories[:2]:
        assert ids == list(range(heard[-1]["eventId"], ids[-1] + 1))
        assert items[0]["task"]["artifacts"][0]["parts"] == [{"text": "chunk 1\n"}, {"text": "chunk 2\n"}]
        assert items[1:] == stories[2][1][-len(items) + 1 :]
    assert stories[2][0][0] == first + 1
    assert state(stories[2][1][-1]) == "COMPLETED"


async def whole(line: Line, id: str) -> tuple[list[int], list[dict[str, Any]]]:
    """The event ids and results of a stream."""
    replies = []
    while (reply := await line.reply(id))["result"] != FINAL:
        replies.append(reply)
    assert "eventId" not in reply
    return [reply["eventId"] for reply in replies], [reply["result"] for reply in replies]


@pytest.mark.parametrize("last", ["junk", -1, 1.5, "", True, [], 10**12, 99999])
async def test_what_is_no_event_id_is_ignored(alice: Caller, last: Any) -> None:
    async with open_line(alice, "hold") as line:
        await line.ask(1, "SendStreamingMessage", saying("hold") | {"lastEventId": last})
        task = (await line.reply(1))["result"]["task"]["id"]
        await line.ask(2, "SubscribeToTask", {"id": task, "lastEventId": last})
        assert list((await line.reply(2))["result"]) == ["task"]
        await line.call(3, "CancelTask", {"id": task})
        _, items = await whole(line, 2)
        assert state(items[-1]) == "CANCELED"
