"""Agents that come, change and go while the host runs: live within a second, in every process, without a restart."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.errors import AgentCardResolutionError
from a2a.types import GetTaskRequest
from a2a.utils.constants import TransportProtocol

from protocol.ids import new_id
from tests.sdk.caller import SdkCaller, say, state, texts
from tests.sdk.conftest import AGENTS_DIR, register
from tests.support.deployment import Deployment, Web, wait_until

A_SECOND = 1.0


@pytest.fixture
def binding() -> str:
    """The bindings do not differ in this."""
    return TransportProtocol.JSONRPC.value


@pytest.fixture(scope="module")
def second_web(deployment: Deployment) -> Web:
    """Another web process on the same database."""
    return deployment.start_web(AGENTS_DIR=AGENTS_DIR)


@pytest.fixture
def slug(deployment: Deployment, web: Web) -> str:
    """A new agent, live, that was registered while the host runs."""
    slug = f"new-{new_id()[-12:]}"
    (line,) = register(deployment, ("agent", "register", slug, "--executor", "sdk_agents.Speller", "--name", "New"))
    assert line == f"Registered {slug}: sdk_agents.Speller, /agents/{slug}, API key.\n"
    wait_for_card(web, slug, name="New")
    return slug


def wait_for_card(web: Web, slug: str, **members: Any) -> None:
    """Return when the card has these members, within a second. No members: when there is no card any more."""

    def shown() -> bool:
        response = httpx.get(f"{web.agent_url(slug)}/.well-known/agent-card.json", trust_env=False)
        if response.status_code == 404:
            return not members
        return bool(members) and members.items() <= response.json().items()

    wait_until(shown, f"the card with {members}", patience=A_SECOND)


async def test_a_new_agent_answers(alice: SdkCaller, slug: str) -> None:
    assert texts(await alice.say(slug, "a b")) == [["a", "b"]]


@pytest.mark.parametrize("execution", ["web", "worker"])
async def test_an_edited_agent_runs_its_new_code(
    alice: SdkCaller, deployment: Deployment, slug: str, execution: str
) -> None:
    before = await alice.say(slug, "a b")
    edit = ("--executor", "sdk_agents.Shouter", "--execution", execution, "--no-streaming", "--name", "Loud")
    (line,) = register(deployment, ("agent", "register", slug, *edit))
    assert line == f"Updated {slug}: sdk_agents.Shouter, /agents/{slug}, API key.\n"
    wait_for_card(alice.web, slug, name="Loud")
    card = await A2ACardResolver(alice.http, alice.web.agent_url(slug)).get_agent_card()
    assert not card.capabilities.streaming
    after = await alice.say(slug, "a b")
    assert (state(after), texts(after)) == ("COMPLETED", [["A B"]])
    assert await (await alice.at(slug)).get_task(GetTaskRequest(id=before.id)) == before


async def test_a_disabled_agent_is_gone_and_comes_back(alice: SdkCaller, deployment: Deployment, slug: str) -> None:
    client = await alice.at(slug)
    task = await alice.say(slug, "a b")
    assert register(deployment, ("agent", "disable", slug)) == [f"{slug} is disabled.\n"]
    wait_for_card(alice.web, slug)
    with pytest.raises(AgentCardResolutionError) as gone:
        await alice.at(slug)
    assert gone.value.status_code == 404
    for call in (say(client, "a b"), client.get_task(GetTaskRequest(id=task.id))):
        with pytest.raises(Exception, match="404"):
            await call
    assert deployment.query("SELECT count(*) FROM tasks_app_task WHERE owner = %s", [alice.owner]) == [(1,)]
    assert register(deployment, ("agent", "enable", slug)) == [f"{slug} is enabled.\n"]
    wait_for_card(alice.web, slug, name="New")
    assert await client.get_task(GetTaskRequest(id=task.id)) == task


async def test_every_process_sees_what_the_database_is_told(
    alice: SdkCaller, deployment: Deployment, slug: str, second_web: Web
) -> None:
    """Whoever writes the row: a second after its commit all web processes know it."""
    deployment.query("UPDATE agents_agent SET name = 'Renamed' WHERE slug = %s", [slug])
    committed = time.monotonic()
    for web in (alice.web, second_web):
        wait_for_card(web, slug, name="Renamed")
    assert time.monotonic() - committed < A_SECOND
