"""What `manage.py up` does to the database before the host runs on it. All of it may be done again."""

from __future__ import annotations

import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from a2a_host.services.files import ADMIN_USERNAME, Credentials, ensure_credentials

_LOCK = 0xA2A405  # Of this database, for pg_advisory_lock: hosts that share it come one after the other.


def prepare_database() -> Credentials:
    """Migrate, make the first administrator and seed; returns the credentials of this DATA_DIR."""
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as lock:
        lock.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        if _is_behind():
            call_command("migrate", interactive=False, verbosity=0)
        credentials = _ensure_admin()
        call_command("seed", api_key=credentials.api_key, verbosity=0)
    connection.close()
    return credentials


def _is_behind() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _ensure_admin() -> Credentials:
    """The file comes first: a password that was set but not written down would be lost."""
    users = get_user_model().objects
    exists = users.filter(username=ADMIN_USERNAME).exists()
    credentials = ensure_credentials(settings.LAYOUT, admin_exists=exists)
    if not exists and credentials.admin_password is not None:
        users.create_superuser(credentials.admin_username, password=credentials.admin_password)
    return credentials
