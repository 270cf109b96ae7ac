"""What clients do: sends of all kinds, streams, cancels, follow-ups, webhooks, the same message twice."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from protocol.ids import new_id
from tests.chaos.books import TERMINAL, WAITING, Ack, Leg, Stream, item_of
from tests.chaos.clients import Away, Broken, Refused
from tests.chaos.load import PATIENCE, Job, Person

STEPPING = ("steps", "steps-worker", "steps-again", "steps-worker-again")
HOLDING = ("hold", "hold-worker", "hold-again")
_LAST = TERMINAL | WAITING


class Letter:
    """A message that is sent until it is answered. `makes` as in Ack."""

    def __init__(self, agent: str, text: str, makes: tuple[str, ...] | None, task_id: str | None = None) -> None:
        self.agent = agent
        self.text = text
        self.makes = makes
        message: dict[str, Any] = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
        if task_id is not None:
            message["taskId"] = task_id
        self.params: dict[str, Any] = {"message": message}

    @property
    def message_id(self) -> str:
        found: str = self.params["message"]["messageId"]
        return found

    def configured(self, **configuration: Any) -> Letter:
        """The same with more configuration."""
        self.params.setdefault("configuration", {}).update(configuration)
        return self


async def send(person: Person, letter: Letter) -> dict[str, Any]:
    """Send until there is an answer, and note it; the task, or {} for a Message."""
    reply = await person.persist("send", lambda: person.at(letter.agent).send(letter.params))
    return note(person, letter, reply)


def note(person: Person, letter: Letter, reply: dict[str, Any]) -> dict[str, Any]:
    """Write down what a SendMessageResponse says."""
    task: dict[str, Any] = reply.get("task", {})
    person.books.acks.append(Ack(letter.agent, letter.message_id, task.get("id", ""), letter.makes))
    note_end(person, task)
    return task


def note_end(person: Person, task: dict[str, Any]) -> str:
    """The state of a task, written down if it is the end."""
    if not task:
        return ""
    state: str = task["status"]["state"].removeprefix("TASK_STATE_")
    if state in TERMINAL:
        person.books.ends.append((task["id"], state))
    return state


def stepping(person: Person, longest: int = 8, slowest: int = 60) -> Letter:
    """Some chunks, some time apart, in the web process or the worker."""
    count = person.dice.randint(1, longest)
    pause = person.dice.randint(0, slowest)
    chunks = tuple(f"chunk {number}\n" for number in range(1, count + 1))
    return Letter(person.dice.choice(STEPPING), f"steps {count} {pause}", chunks)


async def blocking(person: Person) -> None:
    """SendMessage, and wait for the end."""
    await send(person, stepping(person))


async def echo(person: Person) -> None:
    """The shortest task there is."""
    await send(person, Letter("echo", "hello", ("hello",)))


async def big(person: Person) -> None:
    """A text that is kept in a file on its way in and out, sometimes streamed, sometimes told to a webhook."""
    text = person.dice.choice("abcdef") * person.dice.randint(1025, 9000)
    letter = Letter("echo", text, (text,))
    if person.dice.random() < 0.3:
        await read_stream(person, letter)
    else:
        await send(person, tell_webhook(person, letter) if person.dice.random() < 0.4 else letter)


async def direct(person: Person) -> None:
    """Answered with a Message."""
    await send(person, Letter("direct", "hello", None))


async def immediate(person: Person) -> None:
    """SendMessage with returnImmediately; sometimes the task is asked for a moment later."""
    letter = stepping(person).configured(returnImmediately=True)
    task = await send(person, letter)
    if person.dice.random() < 0.5:
        note_end(person, await person.persist("get", lambda: person.at(letter.agent).get(task["id"])))


async def cancelling(person: Person) -> None:
    """A task that never ends by itself is cancelled, sometimes by two people at once."""
    letter = Letter(person.dice.choice(HOLDING), "hold", None).configured(returnImmediately=True)
    task = await send(person, letter)
    await asyncio.sleep(person.dice.choice((0.0, 0.05, 0.3)))
    presses = [cancel(person, letter.agent, task["id"]) for _ in range(person.dice.randint(1, 2))]
    await asyncio.gather(*presses)


async def racing(person: Person) -> None:
    """CancelTask at about the moment at which the task completes."""
    letter = Letter(person.dice.choice(STEPPING), "steps 1 1", ("chunk 1\n",)).configured(returnImmediately=True)
    task = await send(person, letter)
    await cancel(person, letter.agent, task["id"])


async def cancel(person: Person, agent: str, task_id: str) -> None:
    """CancelTask until it is answered; that the task has ended already is an answer."""
    try:
        task = await person.persist("cancel", lambda: person.at(agent).cancel(task_id))
    except Refused as refusal:
        if refusal.reason != "TASK_NOT_CANCELABLE":
            raise
        task = await person.persist("get", lambda: person.at(agent).get(task_id))
    if (state := note_end(person, task)) not in TERMINAL:
        person.books.unexpected.append(f"cancel of {task_id} was answered with {state}")


async def relaying(person: Person) -> None:
    """An agent has another one do the work; now and then it is cancelled, and with it the other."""
    if person.dice.random() < 0.5:
        other = stepping(person, longest=4)
        await send(person, Letter("relay", f"relay {other.agent} {other.text}", other.makes))
        return
    letter = Letter("relay", f"relay {person.dice.choice(HOLDING)} hold", None).configured(returnImmediately=True)
    task = await send(person, letter)
    await asyncio.sleep(person.dice.choice((0.0, 0.1, 0.5)))
    await cancel(person, letter.agent, task["id"])


async def following_up(person: Person) -> None:
    """A question is answered, now and then in a stream, to a run that has returned or to one that waits in its process;
    some are left open."""
    agent = person.dice.choice(("ask", "wait"))
    task = await send(person, Letter(agent, "book a table", None))
    state = note_end(person, task)
    if state != "INPUT_REQUIRED" or person.dice.random() < 0.2:
        return
    answer = Letter(agent, "at eight", ("at eight",), task["id"])
    if person.dice.random() < 0.3:
        await read_stream(person, answer)
    else:
        await send(person, answer)


async def hooked(person: Person) -> None:
    """A send with a webhook of its own."""
    letter = tell_webhook(person, stepping(person, slowest=20))
    await send(person, letter.configured(returnImmediately=person.dice.random() < 0.7))


def tell_webhook(person: Person, letter: Letter) -> Letter:
    """The same with a webhook at a path of its own."""
    path = f"/{letter.message_id}"
    config = {"url": f"{person.world.hook_url}{path}", "id": "own", "token": "secret"}
    person.books.hooks[path] = letter.message_id
    return letter.configured(taskPushNotificationConfig=config)


async def doubled(person: Person) -> None:
    """The same message at the same moment at all replicas, in several bindings."""
    letter = stepping(person, longest=3)
    letter.configured(returnImmediately=True)
    clients = [person.at(letter.agent), *(person.elsewhere(letter.agent, number) for number in range(2))]
    replies = await asyncio.gather(*(client.send(letter.params) for client in clients), return_exceptions=True)
    for reply in replies:
        if isinstance(reply, dict):
            note(person, letter, reply)
        elif not isinstance(reply, Broken | Away):
            raise reply
    await send(person, letter)


async def streaming(person: Person) -> None:
    """SendStreamingMessage, read to the end over as many connections as it takes."""
    await read_stream(person, stepping(person, longest=15, slowest=150))


async def read_stream(person: Person, letter: Letter) -> None:
    """Stream a send; after a break subscribe with what was heard last, here or elsewhere, or send again to attach."""
    stream: Stream | None = None
    seen: int | None = None
    async with asyncio.timeout(PATIENCE):
        while stream is None or not stream.ended:
            client = person.at(letter.agent)
            leg = Leg(client.name)
            attach = stream is None or person.dice.random() < 0.5
            leg.after = seen if person.dice.random() < 0.9 else None
            if stream is None or attach:
                frames = client.stream(letter.params, leg.after)
            else:
                frames = client.subscribe(stream.task_id, leg.after)
            try:
                async with aclosing(frames):
                    async for heard, response in frames:
                        if not leg.heard:
                            stream = _opened(person, letter, stream, leg, response, attach)
                        leg.heard.append(heard)
                        seen = heard.seq
                        _note_heard(person, stream, response)
            except (Broken, Away):
                pass
            except Refused as refusal:
                if refusal.reason != "UNSUPPORTED_OPERATION" or stream is None:
                    raise
                await _read_end(person, letter.agent, stream)
            if stream is None or not stream.ended:
                person.move()
                if person.dice.random() < 0.3:
                    person.draw()
                await asyncio.sleep(0.1)


def _opened(
    person: Person, letter: Letter, stream: Stream | None, leg: Leg, response: dict[str, Any], attach: bool
) -> Stream:
    """The stream that a leg belongs to, from the Task that it begins with."""
    if attach:
        note(person, letter, response)
    if stream is None:
        stream = Stream(response["task"]["id"])
        person.books.streams.append(stream)
    stream.legs.append(leg)
    return stream


def _note_heard(person: Person, stream: Stream | None, response: dict[str, Any]) -> None:
    item = item_of(response)
    if stream is None or item.state not in _LAST:
        return
    stream.ended = True
    if item.state in TERMINAL:
        person.books.ends.append((stream.task_id, item.state))


async def _read_end(person: Person, agent: str, stream: Stream) -> None:
    """Nothing to subscribe to: the task has ended meanwhile."""
    task = await person.persist("get", lambda: person.at(agent).get(stream.task_id))
    stream.ended = note_end(person, task) in TERMINAL


JOBS: tuple[Job, ...] = (
    *(blocking, echo, big, direct, immediate, cancelling, racing, relaying, following_up, hooked, hooked, doubled),
    *(streaming, streaming, streaming),
)
