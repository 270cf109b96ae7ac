"""manage.py apikey create|list|disable"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.models import ApiKey
from agents.registration import one_line

MAX_DAYS = 36_500


class Command(BaseCommand):
    help = "Make and disable API keys. A key is printed once, when it is made."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand each."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="create|list|disable")
        create = actions.add_parser("create", help="Make a key; it is the last line of the output.")
        create.add_argument("name", help="what you call the key")
        create.add_argument("--owner", default="", help="the principal that tasks belong to (NAME)")
        create.add_argument(
            "--group", action="append", default=[], help="a group of the caller, for extended cards; repeatable"
        )
        create.add_argument("--expires-days", type=int, metavar="N", help="refuse the key after N days")
        actions.add_parser("list", help="List all keys, without the keys themselves.")
        disable = actions.add_parser("disable", help="Refuse a key from now on.")
        disable.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Dispatch; every error is one line."""
        action = options["action"]
        if action == "create":
            self.create(options["name"], options["owner"], options["expires_days"], options["group"])
        elif action == "list":
            self.list()
        else:
            self.disable(options["name"])

    def create(self, name: str, owner: str, days: int | None, groups: list[str]) -> None:
        """Make a key and print it last."""
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(f"expires-days: Give 1 to {MAX_DAYS}.")
        expires_at = None if days is None else timezone.now() + timedelta(days=days)
        try:
            row, key = ApiKey.issue(name, owner, expires_at, groups=groups)
        except ValidationError as error:
            raise CommandError(one_line(error)) from error
        until = f", until {expires_at:%Y-%m-%d %H:%M} UTC" if expires_at else ""
        self.stdout.write(f"API key {row.name} for owner {row.owner}{until}. It is not shown again:")
        self.stdout.write(key)

    def list(self) -> None:
        """One line per key."""
        for row in ApiKey.objects.all():
            state = "usable" if row.usable else "expired" if row.enabled else "disabled"
            used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never used"
            self.stdout.write(f"{row.name:24} {state:9} {row.prefix:9} {used:17} {row.owner}")

    def disable(self, name: str) -> None:
        """Refuse a key."""
        if not ApiKey.objects.filter(name=name).update(enabled=False):
            raise CommandError(f"name: There is no API key {name}.")
        self.stdout.write(f"{name} is disabled.")
