"""manage.py agent register|list|enable|disable"""

from __future__ import annotations

from argparse import BooleanOptionalAction
from collections.abc import Callable
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.models import Agent
from agents.registration import one_line, register_agent, set_enabled, title

# Option -> field of the model. An option that is not given leaves its field alone.
TEXTS = {
    "--name": ("name", "name on the card; for a new agent made from SLUG"),
    "--description": ("description", "what the agent does; for a new agent the first line of the class's docstring"),
    "--version": ("version", "the agent's own version (1.0.0)"),
    "--documentation-url": ("documentation_url", "where people read more"),
    "--icon-url": ("icon_url", "a square picture"),
    "--provider": ("provider_organization", "who offers the agent; needs --provider-url"),
    "--provider-url": ("provider_url", "web site of the provider"),
}
NUMBERS = {
    "--timeout": ("timeout_seconds", "seconds that one run may take (3600)"),
    "--cancel-grace": ("cancel_grace_seconds", "seconds that a cancelled run has to end by itself (5)"),
    "--deadline": ("deadline_seconds", "seconds within which a message has to be dealt with, queue and all (86400)"),
    "--max-retries": ("max_retries", "how often a run is repeated whose process died (0)"),
    "--answer-within": ("answer_within_seconds", "seconds that a task may wait for input (for ever)"),
    "--max-request-bytes": ("max_request_bytes", "largest request body in bytes (8388608)"),
    "--max-task-bytes": ("max_task_bytes", "most bytes in files of one task (1073741824)"),
    "--max-stored-bytes": ("max_stored_bytes", "most bytes in files of all its tasks (no limit)"),
    "--keep-completed": ("keep_completed_days", "days that a COMPLETED task is kept (for ever)"),
    "--keep-failed": ("keep_failed_days", "days that a FAILED task is kept (for ever)"),
    "--keep-canceled": ("keep_canceled_days", "days that a CANCELED task is kept (for ever)"),
    "--keep-rejected": ("keep_rejected_days", "days that a REJECTED task is kept (for ever)"),
}
CHOICES = {
    "--execution": ("execution", Agent.Execution.values, "where it runs (web)"),
    "--large-parts": ("large_parts", Agent.LargeParts.values, "how callers are given parts in files (inline)"),
    "--versions": ("versions", Agent.Versions.values, "versions of A2A that it is served in (both)"),
}
SWITCHES = {
    "--streaming": ("streaming", "callers may stream (on)"),
    "--push": ("push_notifications", "callers may register webhooks (on)"),
    "--idempotent": ("idempotent_sends", "the same messageId sent twice gives one task (on)"),
    "--open": ("open", "anonymous callers are served, and share one history unless --no-shared-history (off)"),
    "--shared-history": ("shared_history", "anonymous callers share one history"),
    "--extended-card": ("extended_card", "callers with a key may get a card with more on it (off)"),
    "--sign-card": ("sign_card", "cards are signed when the host has a signing key (on)"),
    "--root": ("is_root", "the agent also answers at the host's own address (off)"),
    "--enabled": ("enabled", "whether the agent is there for callers (on)"),
}
MODES = {
    "--input-mode": ("default_input_modes", "a media type that the agent takes, repeatable (text/plain)"),
    "--output-mode": ("default_output_modes", "a media type that the agent gives, repeatable (text/plain)"),
}
PARTS = {
    "--skill": ("ID[:NAME[:DESCRIPTION]]", "a skill on the card"),
    "--skill-for": (
        "GROUP[,GROUP]=ID[:NAME[:DESCRIPTION]]",
        "a skill on the extended card of keys in a group; * is every key",
    ),
    "--note": ("TEXT", "a paragraph on the extended card of every key"),
    "--note-for": ("GROUP[,GROUP]=TEXT", "a paragraph on the extended card of keys in a group"),
    "--extension": ("URI", "an extension of the protocol that the agent supports"),
    "--required-extension": ("URI", "one that callers have to support too"),
}


class Command(BaseCommand):
    help = "Register and switch agents. Changes are live in every process within a second."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand each."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="register|list|enable|disable")
        register = actions.add_parser("register", help="Create an agent, or change what is given of one that exists.")
        add_register_arguments(register)
        actions.add_parser("list", help="List all agents.")
        for action in ("enable", "disable"):
            switch = actions.add_parser(action, help=f"{action.capitalize()} an agent.")
            switch.add_argument("slug")

    def handle(self, *args: Any, **options: Any) -> None:
        """Dispatch; every error is one line."""
        action = options["action"]
        if action == "register":
            self.register(options)
        elif action == "list":
            self.list()
        else:
            self.switch(options["slug"], enabled=action == "enable")

    def register(self, options: dict[str, Any]) -> None:
        """Create or change."""
        try:
            agent, created = register_agent(options["slug"], read_values(options), **read_parts(options))
        except ValidationError as error:
            raise CommandError(one_line(error)) from error
        verb = "Registered" if created else "Updated"
        self.stdout.write(f"{verb} {agent.slug}: {agent.executor}, /agents/{agent.slug}, {access(agent)}.")

    def list(self) -> None:
        """One line per agent."""
        for agent in Agent.objects.all():
            state = "enabled" if agent.enabled else "disabled"
            self.stdout.write(
                f"{agent.slug:24} {state:9} {agent.execution:7} {access(agent):8} {agent.kind:10} {agent.executor}"
            )

    def switch(self, slug: str, *, enabled: bool) -> None:
        """Enable or disable."""
        agent = Agent.objects.filter(slug=slug).first()
        if agent is None:
            raise CommandError(f"slug: There is no agent {slug}.")
        set_enabled(agent, enabled)
        self.stdout.write(f"{slug} is {'enabled' if enabled else 'disabled'}.")


def add_register_arguments(parser: CommandParser) -> None:
    """The options of `register`: one for each field of the form."""
    parser.add_argument("slug", help="part of every URL of the agent: /agents/SLUG")
    code = parser.add_mutually_exclusive_group()
    code.add_argument("--executor", metavar="PKG.MOD.CLASS", help="dotted path of an a2a-sdk AgentExecutor")
    code.add_argument("--simulator", metavar="NAME", help="a simulator, such as echo, instead of an executor")
    for option, (field, choices, text) in CHOICES.items():
        parser.add_argument(option, dest=field, choices=choices, help=text)
    for option, (metavar, text) in PARTS.items():
        parser.add_argument(option, action="append", metavar=metavar, help=f"{text}, repeatable; replaces all before")
    for option, (field, text) in TEXTS.items():
        parser.add_argument(option, dest=field, help=text)
    for option, (field, text) in NUMBERS.items():
        parser.add_argument(option, dest=field, type=int, help=text)
    for option, (field, text) in SWITCHES.items():
        parser.add_argument(option, dest=field, action=BooleanOptionalAction, default=None, help=text)
    for option, (field, text) in MODES.items():
        parser.add_argument(option, dest=field, action="append", metavar="TYPE/SUBTYPE", help=text)


def read_values(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that the command line names."""
    named = [row[0] for table in (TEXTS, NUMBERS, CHOICES, SWITCHES, MODES) for row in table.values()]
    values = {name: options[name] for name in named if options[name] is not None}
    if "open" in values:
        values.setdefault("shared_history", values["open"])
    if options["executor"] is not None:
        values |= {"kind": Agent.Kind.PYTHON, "executor": options["executor"]}
    if options["simulator"] is not None:
        values |= {"kind": Agent.Kind.SIMULATOR, "executor": options["simulator"]}
    return values


def read_parts(options: dict[str, Any]) -> dict[str, list[dict[str, Any]] | None]:
    """Skills, notes and extensions; None for what the command line does not name."""
    skills = _merged(options, "skill", "skill_for", read_skill)
    notes = _merged(options, "note", "note_for", lambda text: {"text": text})
    extensions = [{"uri": uri} for uri in options["extension"] or ()]
    extensions += [{"uri": uri, "required": True} for uri in options["required_extension"] or ()]
    named = options["extension"] is not None or options["required_extension"] is not None
    return {"skills": skills, "notes": notes, "extensions": extensions if named else None}


def _merged(
    options: dict[str, Any], for_all: str, for_groups: str, read: Callable[[str], dict[str, Any]]
) -> list[dict[str, Any]] | None:
    if options[for_all] is None and options[for_groups] is None:
        return None
    rows = [read(text) for text in options[for_all] or ()]
    for text in options[for_groups] or ():
        groups, equals, rest = text.partition("=")
        if not equals or not all(group.strip() for group in groups.split(",")):
            raise CommandError(f"{for_groups.replace('_', '-')}: Give GROUP=..., not {text}")
        rows.append(read(rest) | {"groups": [group.strip() for group in groups.split(",")]})
    return rows


def read_skill(text: str) -> dict[str, Any]:
    """`id:name:description`, the last two made from what is there."""
    skill_id, name, description = (*text.split(":", 2), "", "")[:3]
    name = name or title(skill_id)
    return {"skill_id": skill_id, "name": name, "description": description or name, "tags": [skill_id]}


def access(agent: Agent) -> str:
    """Who may call."""
    return "open" if agent.open else "API key"
