"""Callers with rights and tasks of their own, and what the database holds of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.deployment import Deployment, Web
from tests.support.grpc_peer import GrpcPeer
from tests.support.peers import PEERS, JsonRpcPeer, Peer, RestPeer
from tests.support.refusals import Refused

_TASKS = """SELECT id, state, version, last_seq, message_count, attempt FROM tasks_app_task
    WHERE owner = %s ORDER BY id"""
_ROWS = """SELECT (SELECT count(*) FROM tasks_app_message m JOIN tasks_app_task t ON t.id = m.task_id WHERE owner = %s),
    (SELECT count(*) FROM tasks_app_event e JOIN tasks_app_task t ON t.id = e.task_id WHERE owner = %s),
    (SELECT count(*) FROM tasks_app_receipt WHERE owner = %s),
    (SELECT count(*) FROM tasks_app_pushconfig p JOIN tasks_app_task t ON t.id = p.task_id WHERE owner = %s)"""


def make_client() -> httpx.Client:
    """Of httpx, for many threads and nothing but loopback."""
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    return httpx.Client(trust_env=False, verify=False, timeout=30, limits=limits)


class Caller:
    """Somebody with an API key (None: nobody in particular), in front of one web process."""

    def __init__(self, client: httpx.Client, deployment: Deployment, web: Web, owner: str, key: str | None) -> None:
        self.client = client
        self.web = web
        self.owner = owner
        self.key = key
        self._deployment = deployment

    def before(self, web: Web) -> Caller:
        """The same caller in front of another web process."""
        return Caller(self.client, self._deployment, web, self.owner, self.key)

    @property
    def headers(self) -> dict[str, str]:
        """What every request of this caller has."""
        bearer = {"authorization": f"Bearer {self.key}"} if self.key else {}
        return {"a2a-version": "1.0"} | bearer

    def at(self, slug: str, binding: str) -> Peer:
        """An agent in the binding `jsonrpc`, `rest` or `grpc`."""
        if binding == "grpc":
            return self.grpc(slug)
        return PEERS[binding](self.client, self.web.port, slug, self.headers)

    def jsonrpc(self, slug: str) -> JsonRpcPeer:
        """An agent in the JSON-RPC binding."""
        return JsonRpcPeer(self.client, self.web.port, slug, self.headers)

    def rest(self, slug: str) -> RestPeer:
        """An agent in the HTTP+JSON binding."""
        return RestPeer(self.client, self.web.port, slug, self.headers)

    def grpc(self, slug: str) -> GrpcPeer:
        """An agent in the gRPC binding, of the gRPC process that was started first."""
        return GrpcPeer(self.client, self._deployment.grpc_servers[0].port, slug, self.headers)

    def stored(self) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
        """This caller's tasks as they are in the database, and how many rows hang on them."""
        tasks = self._deployment.query(_TASKS, [self.owner])
        return tasks, self._deployment.query(_ROWS, [self.owner] * 4)[0]

    @contextmanager
    def nothing_stored(self) -> Iterator[None]:
        """Whatever happens inside leaves nothing new of this caller in the database."""
        before = self.stored()
        yield
        assert self.stored() == before

    @contextmanager
    def refused(self, reason: str, *fields: str) -> Iterator[pytest.ExceptionInfo[Refused]]:
        """The call inside is refused for this reason, for these fields, and leaves nothing behind."""
        with self.nothing_stored(), self.refused_while_running(reason, *fields) as refusal:
            yield refusal

    @contextmanager
    def refused_while_running(self, reason: str, *fields: str) -> Iterator[pytest.ExceptionInfo[Refused]]:
        """The same while tasks of the caller run and store what they do."""
        with pytest.raises(Refused) as refusal:
            yield refusal
        assert (refusal.value.reason, refusal.value.fields) == (reason, list(fields))
