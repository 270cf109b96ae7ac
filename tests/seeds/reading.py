"""How the tests of the documents send and read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from tests.support.callers import Caller


def post(caller: Caller, path: str, body: str, headers: Mapping[str, str]) -> httpx.Response:
    """A request of a document, with the caller's key."""
    return caller.client.post(caller.web.url + path, content=body.encode(), headers=keyed(caller, headers))


def keyed(caller: Caller, headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with the caller's key."""
    return {**headers, "Authorization": f"Bearer {caller.key}"}


def stream(caller: Caller, path: str, body: str, headers: Mapping[str, str]) -> list[tuple[str, Any]]:
    """(name, data) of all events that answer a request; "" for an event without a name."""
    url = caller.web.url + path
    with caller.client.stream("POST", url, content=body.encode(), headers=keyed(caller, headers)) as response:
        if not response.headers["content-type"].startswith("text/event-stream"):
            response.read()
            raise AssertionError(response.text)
        return list(events(response))


def events(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    """(name, data) of each event of an open response."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))
        elif not line:
            name = ""
