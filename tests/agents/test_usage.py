"""The usage counters in the admin."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.models import Agent, Usage
from tests.agents.conftest import make_agent

pytestmark = pytest.mark.django_db
LIST = "/admin/agents/usage/"


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("admin"))
    return client


@pytest.fixture
def agent() -> Agent:
    agent = make_agent()
    add(agent, "JSONRPC", "1.0", "SendMessage", "alice", calls=120, errors=3, day=20)
    add(agent, "JSONRPC", "1.0", "GetTask", "bob", calls=5, errors=0, day=28)
    add(agent, "JSONRPC", "0.3", "SendMessage", "alice", calls=7, errors=7, day=2)
    return agent


def add(
    agent: Agent, binding: str, version: str, operation: str, caller: str, *, calls: int, errors: int, day: int
) -> None:
    Usage.objects.create(
        agent=agent,
        binding=binding,
        version=version,
        operation=operation,
        caller=caller,
        calls=calls,
        errors=errors,
        first_seen=datetime(2026, 1, 1, 12, 30, tzinfo=UTC),
        last_seen=datetime(2026, 11, day, 12, 30, tzinfo=UTC),
    )


def cells(page: str) -> list[list[str]]:
    """The cells of the table on an agent's page, without markup."""
    body = page.partition('class="agents-usage"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = body.split("<tr>")[1:]
    return [[cell.partition("</td>")[0].split(">")[-1] for cell in row_of(row)] for row in rows]


def row_of(row: str) -> list[str]:
    return [cell.replace("</a>", "") for cell in row.split("<td>")[1:]]


def test_an_agents_page_sums_up_versions_and_bindings(browser: Client, agent: Agent) -> None:
    page = browser.get(f"/admin/agents/agent/{agent.pk}/change/").content.decode()
    assert cells(page) == [
        ["1.0", "JSONRPC", "125", "3", "2", "2026-01-01 12:30", "2026-11-28 12:30"],
        ["0.3", "JSONRPC", "7", "7", "1", "2026-01-01 12:30", "2026-11-02 12:30"],
    ]


def test_each_row_leads_to_its_operations_and_callers(browser: Client, agent: Agent) -> None:
    query = {"agent__id__exact": agent.pk, "version__exact": "0.3", "binding__exact": "JSONRPC"}
    page = browser.get(f"/admin/agents/agent/{agent.pk}/change/").content.decode()
    link = "&amp;".join(f"{name}={value}" for name, value in query.items())
    assert f'href="{LIST}?{link}"' in page
    found = browser.get(LIST, query).context["cl"].result_list
    assert [(one.operation, one.caller, one.calls, one.errors) for one in found] == [("SendMessage", "alice", 7, 7)]


def test_an_agent_that_nobody_called(browser: Client) -> None:
    page = browser.get(f"/admin/agents/agent/{make_agent().pk}/change/").content.decode()
    assert "Not called yet." in page


def test_nobody_adds_or_edits_counters(browser: Client, agent: Agent) -> None:
    assert browser.get(f"{LIST}add/").status_code == 403
    one = Usage.objects.first()
    assert one is not None
    assert browser.post(f"{LIST}{one.pk}/change/", {"calls": "0"}).status_code == 403
    assert Usage.objects.get(pk=one.pk).calls == one.calls
    assert len(browser.get(LIST).context["cl"].result_list) == 3


def test_counters_may_be_deleted_and_go_with_their_agent(browser: Client, agent: Agent) -> None:
    one = Usage.objects.get(version="0.3")
    action = {"action": "delete_selected", "_selected_action": [one.pk], "post": "yes"}
    assert browser.post(LIST, action).status_code == 302
    assert not Usage.objects.filter(version="0.3").exists()
    browser.post(f"/admin/agents/agent/{agent.pk}/delete/", {"post": "yes"})
    assert (Agent.objects.count(), Usage.objects.count()) == (0, 0)


def test_a_key_of_its_own_opens_the_list(client: Client, agent: Agent) -> None:
    reader = User.objects.create_user("reader", is_staff=True)
    client.force_login(reader)
    assert client.get(LIST).status_code == 403
    reader.user_permissions.add(Permission.objects.get(codename="view_usage"))
    assert client.get(LIST).status_code == 200
