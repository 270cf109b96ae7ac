"""manage.py restore FILE"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser

from a2a_host.backup.archive import opened
from a2a_host.backup.errors import BackupError
from a2a_host.backup.restoring import restore_backup
from a2a_host.backup.server import database_server
from a2a_host.services.errors import ServiceError
from protocol.errors import UnavailableError


class Command(BaseCommand):
    help = "Restore a backup into an empty database. The host must not run; afterwards, start it as ever."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Where from, and whether over what is there."""
        parser.add_argument("file", type=Path, help="what `manage.py backup` wrote")
        parser.add_argument("--force", action="store_true", help="drop everything that the database holds before")

    def handle(self, *args: Any, **options: Any) -> None:
        """Every error is one line."""
        try:
            with opened(options["file"].absolute()) as archive, database_server(alone=True):
                restore_backup(archive, options["force"], self.stdout.write)
                manifest = archive.manifest
        except (BackupError, ServiceError) as error:
            raise CommandError(str(error)) from error
        except UnavailableError as error:
            raise CommandError("The storage of files (CONTENT_STORAGE) does not answer: try again later") from error
        except OSError as error:
            raise CommandError(f"The backup could not be read or its files not be stored: {error.strerror}") from error
        except psycopg.Error as error:
            raise CommandError(f"The database failed: {type(error).__name__}") from error
        tasks = manifest.rows.get("tasks_app_task", 0)
        self.stdout.write(
            f"Restored {tasks} tasks and {manifest.files} files as of {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC."
        )
        if manifest.files_elsewhere:
            self.stdout.write("Files of big parts are where CONTENT_STORAGE was: set it as it was.")
