"""The list of agents, with what somebody needs to call them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.entries import VERSIONS, AgentEntry
from agents.interfaces import interfaces
from agents.models import Agent
from agents.public_url import base_url_of
from agents.runtimes.factory import RuntimeSlot
from protocol.card import AgentInterface
from tasks_app.pages import counts, states
from tasks_app.pages.access import staff_page

_ENVELOPE = '\'{"jsonrpc":"2.0","id":1,"method":"%s","params":{"message":{"messageId":"\'$(date +%%s%%N)\'",%s}}}\''
_BODIES = {
    "1.0": _ENVELOPE % ("SendMessage", '"role":"ROLE_USER","parts":[{"text":"hello"}]'),
    "0.3": _ENVELOPE % ("message/send", '"kind":"message","role":"user","parts":[{"kind":"text","text":"hello"}]'),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """An agent with its addresses and the number of its tasks by state."""

    agent: Agent
    endpoint: str
    card: str
    interfaces: list[AgentInterface]
    curl: str
    tallies: list[tuple[states.Look, int]]

    @property
    def total(self) -> int:
        """All tasks of the agent."""
        return sum(tasks for _, tasks in self.tallies)

    @property
    def tallies_version(self) -> str:
        """Another text whenever a number changed."""
        return "-".join(f"{look.number}.{tasks}" for look, tasks in self.tallies)


@require_safe
@staff_page
def agent_list(request: HttpRequest) -> HttpResponse:
    """All agents, enabled ones first. `?q=` searches slug, name and description."""
    text = request.GET.get("q", "").replace("\x00", "")[:200].strip()
    agents = Agent.objects.prefetch_related("skills", "extensions", "notes").order_by("-enabled", "slug")
    if text:
        agents = agents.filter(Q(slug__icontains=text) | Q(name__icontains=text) | Q(description__icontains=text))
    tallies = counts.by_agent()
    base = base_url_of(request)
    entries = [_entry(agent, base, tallies.get(agent.pk, {})) for agent in agents]
    return render(request, "catalog/list.html", {"entries": entries, "q": text, "page": "agents"})


def _entry(agent: Agent, base: str, tasks: dict[int, int]) -> Entry:
    endpoint = f"{base}/agents/{agent.slug}"
    return Entry(
        agent,
        endpoint,
        f"{endpoint}/.well-known/agent-card.json",
        interfaces(AgentEntry.of(agent, RuntimeSlot(agent.slug, agent.kind, agent.executor)), base),
        curl(base, agent),
        [(look, tasks[look.number]) for look in states.LOOKS if tasks.get(look.number)],
    )


def curl(base: str, agent: Agent) -> str:
    """A shell line that sends the agent a message with a fresh id each time it is pasted."""
    version = VERSIONS[agent.versions][0]
    lines = [
        f"curl {shlex.quote(f'{base}/agents/{agent.slug}')}",
        "-H 'Content-Type: application/json'",
        f"-H 'A2A-Version: {version}'",
        *([] if agent.open else ['-H "Authorization: Bearer $A2A_KEY"']),
        f"-d {_BODIES[version]}",
    ]
    return " \\\n  ".join(lines)
