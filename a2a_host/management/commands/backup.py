"""manage.py backup FILE"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from a2a_host.backup.errors import BackupError
from a2a_host.backup.making import make_backup
from a2a_host.backup.manifest import Manifest
from a2a_host.backup.server import database_server
from a2a_host.services.errors import ServiceError


class Command(BaseCommand):
    help = (
        "Write the whole host into one file: database, files of big parts and, if you wish, its keys. The host may run."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to, and whether with the keys."""
        parser.add_argument("file", type=Path, help="a new file, such as host-2026-01-31.tar")
        parser.add_argument(
            "--with-key",
            action="store_true",
            help="put the keys and the first password of DATA_DIR into it too: who has the file then has all secrets",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Every error is one line; an interrupted backup leaves nothing."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        path: Path = options["file"].absolute()
        try:
            with database_server(alone=False):
                manifest = make_backup(path, options["with_key"], self.stdout.write)
        except (BackupError, ServiceError) as error:
            raise CommandError(str(error)) from error
        except psycopg.Error as error:
            raise CommandError(f"The database could not be read: {type(error).__name__}") from error
        self._report(path, manifest)

    def _report(self, path: Path, manifest: Manifest) -> None:
        tasks, files = manifest.rows.get("tasks_app_task", 0), manifest.files
        size = path.stat().st_size
        self.stdout.write(f"Wrote {path}: {tasks} tasks, {files} files, {size} bytes.")
        if manifest.files_elsewhere:
            self.stdout.write("Files of big parts are in CONTENT_STORAGE, not in the backup: keep that too.")
        if settings.ENCRYPTION_KEYS:
            self.stdout.write("ENCRYPTION_KEYS is set in your environment and not in the backup: keep it too.")
        elif not manifest.keys:
            layout = settings.LAYOUT
            self.stdout.write(
                f"Not in the backup: {layout.encryption_key} and {layout.secret_key} (see --with-key). Keep them too: "
                "without the first one stored credentials of webhooks cannot be read."
            )
