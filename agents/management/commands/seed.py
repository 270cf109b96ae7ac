"""manage.py seed: the simulators, an agent that needs a key, and the first API key."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from agents.keys import hash_key, shown_part
from agents.models import Agent, ApiKey
from agents.registration import lock_registration, register_agent, title
from agents.runtimes.simulators import SIMULATORS

KEY_NAME = "default"
KEY_OWNER = "admin"
IN_WORKERS = ("steps", "hold", "wait")

ORDER_AGENT = {
    "kind": Agent.Kind.SIMULATOR,
    "executor": "echo",
    "name": "order-agent",
    "description": "处理订单查询与退款",
    "push_notifications": False,
}
ORDER_SKILL = {
    "skill_id": "order-status",
    "name": "订单查询",
    "description": "按订单号查询状态",
    "tags": ["order"],
    "examples": ["查询订单 123"],
}


class Command(BaseCommand):
    help = "Create the agents and the API key of a new installation, as far as they are missing. Changes nothing else."

    def add_arguments(self, parser: CommandParser) -> None:
        """The key is made by whoever keeps it."""
        parser.add_argument("--api-key", default="", help="a key to store, with the owner admin")

    @transaction.atomic
    def handle(self, *args: Any, api_key: str = "", **options: Any) -> None:
        """Create what is missing; agents that exist are a person's business."""
        lock_registration()
        made = [slug for slug, values, skills in seeds() if make(slug, values, skills)]
        if api_key and make_key(api_key):
            made.append("an API key")
        if options["verbosity"]:
            self.stdout.write(f"Seeded {', '.join(made)}." if made else "Nothing to seed.")


def seeds() -> list[tuple[str, dict[str, Any], list[dict[str, Any]] | None]]:
    """Slug, fields and skills of every agent of a new installation."""
    is_open = is_loopback(settings.HOST)
    access = {"open": is_open, "shared_history": is_open}
    simulators = [(name, simulator(name) | access, None) for name in SIMULATORS]
    workers = [
        (f"{name}-worker", simulator(name) | access | {"execution": Agent.Execution.WORKER}, None)
        for name in IN_WORKERS
    ]
    return [*simulators, *workers, ("order-agent", dict(ORDER_AGENT), [ORDER_SKILL])]


def simulator(name: str) -> dict[str, Any]:
    """Fields of a simulator's agent."""
    return {"kind": Agent.Kind.SIMULATOR, "executor": name}


def make(slug: str, values: dict[str, Any], skills: list[dict[str, Any]] | None) -> bool:
    """Register an agent unless its slug is taken."""
    if Agent.objects.filter(slug=slug).exists():
        return False
    register_agent(slug, {"name": title(slug)} | values, skills)
    return True


def make_key(key: str) -> bool:
    """Store a key unless it is there. The name of another installation's key on the same database is left to it."""
    if ApiKey.objects.filter(digest=hash_key(key)).exists():
        return False
    taken = ApiKey.objects.filter(name=KEY_NAME).exists()
    ApiKey.issue(f"{KEY_NAME} {shown_part(key)}" if taken else KEY_NAME, KEY_OWNER, key=key)
    return True


def is_loopback(host: str) -> bool:
    """Whether a server that listens on `host` is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
