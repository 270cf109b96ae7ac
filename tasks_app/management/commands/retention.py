"""manage.py retention preview|apply"""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import filesizeformat
from psycopg_pool import PoolTimeout

from agents.models import Agent
from tasks_app.retention.connection import opened_store
from tasks_app.retention.keeping import Kept, apply_retention
from tasks_app.retention.preview import Expired, preview


class Command(BaseCommand):
    help = "Show or delete the tasks that their agents keep no longer (keep_*_days)."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand each."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="preview|apply")
        show = actions.add_parser("preview", help="Say what would be deleted now, and delete nothing.")
        apply = actions.add_parser("apply", help="Delete it now. The host does so every few minutes by itself.")
        for action in (show, apply):
            action.add_argument("--agent", metavar="SLUG", help="of this agent only")

    def handle(self, *args: Any, **options: Any) -> None:
        """Dispatch; every error is one line."""
        slug = options["agent"]
        if slug is not None and not Agent.objects.filter(slug=slug).exists():
            raise CommandError(f"agent: There is no agent {slug}.")
        if options["action"] == "preview":
            self.preview(slug)
        else:
            self.apply(slug)

    def preview(self, slug: str | None) -> None:
        """One line for each agent and state that has a limit."""
        found = list(preview(slug))
        for expired in found:
            self.stdout.write(line(expired))
        if not found:
            self.stdout.write("Every task is kept for ever: no agent has a limit (keep_completed_days and its kin).")

    def apply(self, slug: str | None) -> None:
        """Delete until nothing is left to delete."""
        try:
            kept = asyncio.run(_apply(slug))
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise CommandError(f"The database went away ({type(error).__name__}). Start again to go on.") from error
        rest = "" if kept.finished else " Another process deletes too, or a backup is being made: try again later."
        self.stdout.write(f"Deleted {kept.deleted} tasks.{rest}")


async def _apply(slug: str | None) -> Kept:
    async with opened_store() as store:
        return await apply_retention(store, slug=slug)


def line(expired: Expired) -> str:
    """A rule and what it lets go, for people."""
    rule = expired.rule
    text = f"{rule.slug:24} {rule.label:13} kept {rule.days} days: {expired.tasks} tasks to go"
    if expired.tasks:
        size = filesizeformat(expired.size).replace("\xa0", " ")
        text += f", the oldest of {expired.oldest:%Y-%m-%d}, {expired.rows} rows, about {size}"
    if expired.waiting:
        text += f"; {expired.waiting} of them wait for a webhook or a delegated task"
    return text
