"""manage.py erase"""

from __future__ import annotations

import asyncio
import getpass
from typing import Any

import psycopg
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from psycopg_pool import PoolTimeout

from agents.registration import one_line
from tasks_app.models import Erasure
from tasks_app.processes.process import make_host
from tasks_app.retention.erasing import UnfinishedError, run_erasure
from tasks_app.retention.requests import find, request_erasure
from tasks_app.retention.scope import Scope


class Command(BaseCommand):
    help = "Erase everything of one principal, or one context of an agent: tasks, files, webhooks, receipts, names."

    def add_arguments(self, parser: CommandParser) -> None:
        """What, and whether to ask."""
        parser.add_argument("--owner", default="", help="the principal, as tasks and API keys name it")
        parser.add_argument("--agent", default="", metavar="SLUG", help="of this agent only")
        parser.add_argument("--context", default="", metavar="ID", help="of this context only; needs --agent")
        parser.add_argument("--keys", action="store_true", help="delete the owner's API keys first")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what goes, ask, erase. Every error is one line."""
        scope = Scope(options["owner"], options["agent"], options["context"])
        try:
            scope.check()
            self._preview(scope, options["keys"])
            if not options["yes"]:
                self._confirm(scope)
            erasure = request_erasure(scope, f"manage.py erase ({_user()})", options["keys"])
        except ValidationError as error:
            raise CommandError(one_line(error)) from error
        try:
            done = asyncio.run(_run(erasure.pk))
        except UnfinishedError as error:
            raise CommandError(f"{error} A worker goes on with it by itself.") from error
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise CommandError(f"The database went away ({type(error).__name__}). A worker goes on.") from error
        self.stdout.write(f"Erased {done.tasks} tasks.")

    def _preview(self, scope: Scope, with_keys: bool) -> None:
        found = find(scope)
        for slug, owner, state, number in found.tasks:
            name = state.removeprefix("TASK_STATE_") if state.number else "direct replies"
            self.stdout.write(f"{slug:24} {owner:24} {name:15} {number}")
        keys = f", {found.keys} API keys" if with_keys else ""
        self.stdout.write(f"To erase: {found.total} tasks, {found.unfinished} of them cancelled first{keys}.")
        self.stdout.write(f"The audit log calls it {scope.reference}.")

    def _confirm(self, scope: Scope) -> None:
        try:
            typed = input(f"This cannot be undone. Type {scope.typed} to go on: ")
        except EOFError:
            typed = ""
        if typed != scope.typed:
            raise CommandError("Nothing was erased.")


async def _run(erasure_id: int) -> Erasure:
    """With a host that runs no agents: it cancels what runs in the others."""
    host = make_host("command")
    try:
        await host.start()
        return await run_erasure(host, erasure_id)
    finally:
        await host.stop()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown user"
