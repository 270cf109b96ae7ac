"""The database server that a backup is made of or restored to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from a2a_host.backup.errors import BackupError
from a2a_host.services.accounts import service_account
from a2a_host.services.claim import claim, end_leftovers
from a2a_host.services.errors import ServiceError
from a2a_host.services.external import check_database
from a2a_host.services.processes import Process

_STOPPING = 20.0  # seconds


@contextmanager
def database_server(alone: bool) -> Iterator[None]:
    """PostgreSQL takes connections inside the block: DATABASE_URL's, or the embedded one of this DATA_DIR, which is
    started for the time if it does not run.

    `alone`: the host of this DATA_DIR must not run meanwhile. Raises ServiceError, BackupError.
    """
    if not settings.EMBEDDED_DATABASE:
        check_database(settings.DATABASE_URL)
        yield
        return
    layout = settings.LAYOUT
    if not alone and not (layout.postgres_data / "PG_VERSION").exists():
        raise BackupError(f"There is no database in {layout.data_dir}: set DATA_DIR, or DATABASE_URL")
    try:
        lock = claim(layout)
    except ServiceError:
        if alone:
            raise
        check_database(settings.DATABASE_URL)  # `manage.py up` holds the lock and runs it.
        yield
        return
    with lock:
        end_leftovers(layout)
        with _embedded_server():
            yield


@contextmanager
def _embedded_server() -> Iterator[None]:
    from a2a_host.services.postgres import postgres_service, wait_for_postgres

    layout = settings.LAYOUT
    process = Process(postgres_service(layout, service_account(layout.postgres_data)))
    try:
        wait_for_postgres(layout, process)
        yield
    finally:
        process.ask_to_stop()
        if not process.wait(_STOPPING):
            process.kill()
