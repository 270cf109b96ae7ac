"""A host whose parts are big from 4 KiB on, with its files on disk, and another one with them in S3."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from tests.content.s3 import BUCKET, S3Server, client, s3_server
from tests.support.callers import Caller, make_client
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.receiver import Receiver

BIG = 4096
"""STORED_PART_BYTES of the hosts."""
AGENTS = [
    ("mirror", "Mirror"),
    ("mirror-urls", "Mirror", "--large-parts", "url"),
    ("mirror-worker", "Mirror", "--execution", "worker"),
    ("chunks", "Chunks"),
    ("asking", "Asking"),
    ("answering", "Answering"),
    ("flooding", "Flooding", "--max-task-bytes", "60000"),
    ("narrow", "Mirror", "--max-task-bytes", "16000"),
    ("roomy", "Mirror", "--execution", "worker", "--max-request-bytes", "100000000"),
    ("idle", "Idle", "--execution", "worker", "--max-request-bytes", "100000000"),
    ("full", "Mirror", "--max-stored-bytes", "40000"),
]
_ROWS = """SELECT p.id, task_id, size, digest, media_type, filename FROM tasks_app_storedpart p
    JOIN tasks_app_task t ON t.id = p.task_id WHERE t.owner = %s ORDER BY p.id"""
_ALL_IDS = "SELECT id FROM tasks_app_storedpart"
_STRAY_IDS = (
    "SELECT id FROM tasks_app_storedpart p WHERE NOT EXISTS (SELECT FROM tasks_app_task t WHERE t.id = p.task_id)"
)


@dataclass(slots=True)
class Site:
    """One host. `remote` is the S3 server if its files are there."""

    deployment: Deployment
    web: Web
    remote: S3Server | None
    environment: dict[str, str]

    def names(self) -> set[str]:
        """The ids of all files in the storage."""
        if self.remote is None:
            return {path.name for path in Path(settings.LAYOUT.parts).rglob("*") if path.is_file()}
        pages = client(self.remote).get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return {found["Key"].rpartition("/")[2] for page in pages for found in page.get("Contents", ())}

    def remove(self, part_id: str) -> None:
        """Delete a file behind the host's back."""
        if self.remote is None:
            (Path(settings.LAYOUT.parts) / part_id[-2:] / part_id).unlink()
        else:
            client(self.remote).delete_object(Bucket=BUCKET, Key=f"parts/{part_id[-2:]}/{part_id}")

    def rows(self, caller: Caller) -> list[tuple[Any, ...]]:
        """(id, task, size, digest, media type, filename) of a caller's files."""
        return self.deployment.query(_ROWS, [caller.owner])

    def strays(self) -> set[str]:
        """Ids of files without a row, and of rows without a task."""
        names = self.names()
        known = {part_id for (part_id,) in self.deployment.query(_ALL_IDS)}
        return (names - known) | {part_id for (part_id,) in self.deployment.query(_STRAY_IDS)}

    @contextmanager
    def no_new_files(self, caller: Caller) -> Iterator[None]:
        """What a caller does inside leaves neither a file nor a row of one. Tasks of others may go on meanwhile."""
        strays, rows = self.strays(), self.rows(caller)
        yield
        assert self.strays() <= strays
        assert self.rows(caller) == rows


@pytest.fixture(scope="package")
def receiver() -> Iterator[Receiver]:
    """A webhook receiver at an address that the host may call."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="package", params=["disk", "s3"])
def site(request: pytest.FixtureRequest, postgres: str, broker: str, receiver: Receiver) -> Iterator[Site]:
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        remote = pool.submit(stack.enter_context, s3_server()) if request.param == "s3" else None
        deployment = stack.enter_context(Deployment(postgres, broker))
        deployment.add_keys({key_of(number): owner_of(number) for number in range(100)})
        registered = pool.submit(deployment.run, *(("agent", "register", *words(agent)) for agent in AGENTS))
        server = remote.result() if remote else None
        environment = {"STORED_PART_BYTES": str(BIG), "OUTBOUND_ALLOW": f"127.0.0.1:{receiver.port}"}
        environment |= server.environment if server else {}
        web = deployment.start_web(**environment)
        registered.result()
        card = f"{web.agent_url('full')}/.well-known/agent-card.json"
        wait_until(lambda: httpx.get(card, trust_env=False).status_code == 200, "the agents")
        yield Site(deployment, web, server, environment)


def words(agent: tuple[str, ...]) -> tuple[str, ...]:
    """Of the command that registers an agent."""
    slug, executor, *options = agent
    modes = ("--input-mode", "*/*", "--output-mode", "*/*")
    return (slug, "--executor", f"tests.content.executors.{executor}", "--open", *modes, *options)


@pytest.fixture(scope="package")
def http() -> Iterator[httpx.Client]:
    with make_client() as client:
        yield client


_numbers = iter(range(100))


@pytest.fixture
def alice(http: httpx.Client, site: Site) -> Caller:
    number = next(_numbers)
    return Caller(http, site.deployment, site.web, owner_of(number), key_of(number))


def owner_of(number: int) -> str:
    """The principal behind the key with this number."""
    return f"uploader-{number:03}"


def key_of(number: int) -> str:
    """A key that has been stored."""
    return f"a2a_key-of-the-uploader-number-{number:03}"


def encoded(content: bytes) -> str:
    """Base64 as callers send it."""
    return base64.b64encode(content).decode()


on_disk = pytest.mark.parametrize("site", ["disk"], indirect=True)
"""For what is the same wherever the files are."""
