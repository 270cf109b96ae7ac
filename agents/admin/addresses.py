"""URLs of agents, to read and to copy."""

from __future__ import annotations

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.models import Agent


def endpoint(agent: Agent) -> str:
    """URL of the agent; only its path while no public URL is set: the browser knows the rest."""
    return f"{settings.PUBLIC_URL}/agents/{agent.slug}"


def card(agent: Agent) -> str:
    """URL of the card, or its path."""
    return f"{endpoint(agent)}/.well-known/agent-card.json"


def copyable(url: str) -> SafeString:
    """A URL to read and a button to copy it. copy.js makes a path absolute."""
    return format_html('<code data-url="{}">{}</code> {}', url, url, copy_button("Copy", url))


def copy_button(label: str, text: str) -> SafeString:
    """A button that copies a URL or another text."""
    return format_html(
        '<button type="button" class="agents-copy" data-copy="{}" title="{}" aria-label="Copy {}">{}</button>',
        text,
        text,
        label.lower() if label != "Copy" else "this URL",
        label,
    )
