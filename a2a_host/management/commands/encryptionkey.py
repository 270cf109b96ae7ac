"""manage.py encryptionkey list|new|reencrypt|retire"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from a2a_host.services.files import write_private
from agents.secrets import EncryptionError, encryption_keys, fernets
from tasks_app.push.reencryption import holders, reencrypt

SETTLE_SECONDS = 60
"""How old the file must be before a key may go: a process that began to store a secret before it saw the newest key has
stored it by then."""


class Command(BaseCommand):
    help = "Manage the keys that encrypt stored secrets. The host may run; no process has to be restarted."

    def add_arguments(self, parser: CommandParser) -> None:
        """One subcommand each."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="list|new|reencrypt|retire")
        actions.add_parser("list", help="List the keys by fingerprint, and how many secrets each one holds.")
        actions.add_parser("new", help="Put a new key in front, and encrypt every secret with it.")
        actions.add_parser("reencrypt", help="Encrypt every secret with the first key, as after an interruption.")
        actions.add_parser("retire", help="Remove the keys that no secret needs any more.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Dispatch; every error is one line."""
        try:
            getattr(self, options["action"])()
        except EncryptionError as error:
            raise CommandError(str(error)) from error

    def list(self) -> None:
        """One line a key, the one that encrypts first."""
        held = holders()
        for number, key in enumerate(encryption_keys()):
            self.stdout.write(f"{fingerprint(key)} {'encrypts' if number == 0 else 'decrypts'} {held[number]} secrets")
        if held[None]:
            self.stdout.write(f"No key can read {held[None]} secrets.")

    def new(self) -> None:
        """A new first key."""
        key = Fernet.generate_key().decode()
        if settings.ENCRYPTION_KEYS:
            self.stdout.write(
                f"Put this key in front of those in ENCRYPTION_KEYS, with a comma, and restart the host:\n{key}\n"
                "With several copies put it behind them in every copy first: until then a copy cannot read it "
                "(docs/operations.md).\n"
                "Then run: manage.py encryptionkey reencrypt"
            )
            return
        keys = encryption_keys()
        fernets(keys)
        write_keys([key, *keys])
        self.stdout.write(f"{fingerprint(key)} encrypts from now on.")
        self.reencrypt()

    def reencrypt(self) -> None:
        """Use the first key everywhere."""
        self.stdout.write(f"Encrypted {reencrypt()} secrets with {fingerprint(encryption_keys()[0])}.")

    def retire(self) -> None:
        """Keep the first key only, if it reads everything."""
        first, *others = encryption_keys()
        if not others:
            raise CommandError("There is one key only.")
        path: Path = settings.LAYOUT.encryption_key
        if not settings.ENCRYPTION_KEYS and time.time() - path.stat().st_mtime < SETTLE_SECONDS:
            raise CommandError(
                f"The newest key is younger than {SETTLE_SECONDS} s: a process may be storing a secret with the one "
                "before it. Try again in a minute."
            )
        reencrypt()
        held = holders()
        if set(held) - {0}:
            raise CommandError(
                f"{held.total() - held[0]} secrets cannot be read with {fingerprint(first)}. Bring their key back, or "
                "delete or replace what they belong to."
            )
        gone = ", ".join(fingerprint(key) for key in others)
        if settings.ENCRYPTION_KEYS:
            self.stdout.write(f"No secret needs {gone} any more: remove all but the first from ENCRYPTION_KEYS.")
            return
        write_keys([first])
        self.stdout.write(f"Removed {gone}. Keep it as long as you keep backups from its time.")


def fingerprint(key: str) -> str:
    """What a key is called where people read, which says nothing of it."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def write_keys(keys: Sequence[str]) -> None:
    """Replace the file of keys in one step."""
    write_private(settings.LAYOUT.encryption_key, "".join(f"{key}\n" for key in keys))
