"""manage.py signingkey generate|rotate|retire|list"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.models import SigningKey
from agents.registration import one_line
from agents.secrets import EncryptionError
from agents.signing_keys import generate_signing_key, retire_signing_key, rotate_signing_keys


class Command(BaseCommand):
    help = "Manage the keys that sign agent cards. Changes are live in every process within a second."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand each."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="generate|rotate|retire|list")
        generate = actions.add_parser("generate", help="Make a key: the active one if there is none, else the next.")
        generate.add_argument("--algorithm", choices=SigningKey.Algorithm.values, default="ES256", help="(ES256)")
        actions.add_parser("rotate", help="Let the next key sign, and retire the active one.")
        retire = actions.add_parser("retire", help="Sign nothing with a key any more.")
        retire.add_argument("kid", help="key id, or the start of it")
        actions.add_parser("list", help="List all keys.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Dispatch; every error is one line."""
        try:
            if options["action"] == "generate":
                self.say(generate_signing_key(options["algorithm"]))
            elif options["action"] == "rotate":
                self.say(rotate_signing_keys())
            elif options["action"] == "retire":
                self.retire(options["kid"])
            else:
                self.list()
        except ValidationError as error:
            raise CommandError(one_line(error)) from error
        except EncryptionError as error:
            raise CommandError(str(error)) from error

    def retire(self, kid: str) -> None:
        """Retire the one key whose id starts so."""
        found = list(SigningKey.objects.filter(kid__startswith=kid)) if kid else []
        if len(found) != 1:
            raise CommandError(f"kid: {len(found)} keys start with {kid}.")
        retire_signing_key(found[0])
        self.say(found[0])

    def list(self) -> None:
        """One line per key."""
        for key in SigningKey.objects.all():
            self.say(key)

    def say(self, key: SigningKey) -> None:
        """One key."""
        self.stdout.write(f"{key.kid} {key.algorithm} {key.state}")
