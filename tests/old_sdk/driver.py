# mypy: ignore-errors
"""The last SDK of 0.3 as a program: commands in, what the client gives out, one line of JSON each.

    {"n": 1, "op": "send", "slug": "echo", "args": {…}}  →  {"n": 1, "event": {…}} …  {"n": 1, "end": true}
    and in the place of the end, {"n": 1, "error": "name of the exception", "text": "…"}

Runs in the environment of tests/old_sdk/requirements.txt. Commands run side by side.
Usage: driver.py BASE_URL TRANSPORT API_KEY
"""

from __future__ import annotations

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    PushNotificationConfig,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)


class Driver:
    """One caller. Each operation is named as the client names it, and yields what the client gives."""

    def __init__(self, base_url, transport, key):
        self._base_url = base_url
        self._transport = transport
        headers = {"authorization": f"Bearer {key}"}
        self._http = httpx.AsyncClient(trust_env=False, timeout=30, headers=headers)

    async def client(self, slug, streaming):
        """The client of an agent, made from its card."""
        card = await A2ACardResolver(self._http, f"{self._base_url}/agents/{slug}").get_agent_card()
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self._http,
            supported_transports=[self._transport],
            use_client_preference=True,
        )
        return ClientFactory(config).create(card)

    async def card(self, client, **_):
        yield client._card

    async def send(self, client, message, configuration=None, push=None):
        if push is not None:
            client._config.push_notification_configs = [PushNotificationConfig.model_validate(push)]
        given = None if configuration is None else MessageSendConfiguration.model_validate(configuration)
        async for event in client.send_message(Message.model_validate(message), configuration=given):
            if isinstance(event, tuple):
                task, update = event
                yield update or task
            else:
                yield event

    async def get(self, client, **params):
        yield await client.get_task(TaskQueryParams.model_validate(params))

    async def cancel(self, client, **params):
        yield await client.cancel_task(TaskIdParams.model_validate(params))

    async def resubscribe(self, client, **params):
        async for task, update in client.resubscribe(TaskIdParams.model_validate(params)):
            yield update or task

    async def set_config(self, client, **params):
        yield await client.set_task_callback(TaskPushNotificationConfig.model_validate(params))

    async def get_config(self, client, **params):
        yield await client.get_task_callback(GetTaskPushNotificationConfigParams.model_validate(params))

    async def run(self, n, op, slug, args, streaming=False):
        """One command to its end."""
        try:
            async for result in getattr(self, op)(await self.client(slug, streaming), **args):
                say({"n": n, "event": result.model_dump(mode="json", by_alias=True, exclude_none=True)})
        except Exception as error:
            say({"n": n, "error": type(error).__name__, "text": str(error)})
        else:
            say({"n": n, "end": True})


def say(line):
    """One line out."""
    print(json.dumps(line), flush=True)


async def main():
    """Until the input ends."""
    driver = Driver(*sys.argv[1:])
    running = set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        task = asyncio.create_task(driver.run(**json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)


asyncio.run(main())
