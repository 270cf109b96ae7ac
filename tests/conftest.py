"""One embedded PostgreSQL and one Valkey for each process of the suite, in a folder of its own; nothing of the machine
is used.

Their addresses follow from DATA_DIR, so they are set here, before Django reads its settings, and the servers start with
the first test that needs them. How tests are dealt out to several processes is in tests/support/dealing.py.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import django
import pytest
from django.conf import settings
from xdist.remote import Producer

from tests.support.dealing import DealPortions, long_ones_first, number_of_processes

_OURS = (
    *("DATABASE_URL", "BROKER_URL", "PUBLIC_URL", "AGENTS_DIR", "HOST", "PORT", "GRPC_PORT", "DEBUG", "STATIC_ROOT"),
    *("CONTENT_STORAGE", "STORED_PART_BYTES", "FILE_URL_SECONDS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *("ALLOWED_HOSTS", "OUTBOUND_ALLOW", "OUTBOUND_DENY", "ENCRYPTION_KEYS", "TRUSTED_PROXIES"),
    *(
        "CSRF_TRUSTED_ORIGINS",
        "LOG_LEVEL",
        "LEASE_SECONDS",
        "KEEP_ALIVE_SECONDS",
        "SHUTDOWN_GRACE_SECONDS",
        "BUSY_POLL_MICROSECONDS",
    ),
    *("CONTENT_STORAGE", "STORED_PART_BYTES", "FILE_URL_SECONDS", "RETENTION_BATCH", "RETENTION_PAUSE"),
    *("RETENTION_SECONDS", "WEB_PROCESSES", "GRPC_PUBLIC_URL", "GRPC_TLS_CERT", "GRPC_TLS_KEY"),
)


def _set_up() -> Path:
    """Point the settings at a new folder, whatever the caller's environment says, and load them."""
    if settings.configured:
        raise pytest.UsageError(
            "Unset DJANGO_SETTINGS_MODULE: tests/conftest.py sets it once the services have a place."
        )
    for name in _OURS:
        os.environ.pop(name, None)
    folder = Path(tempfile.mkdtemp(prefix="a2a-host-tests-"))
    folder.chmod(0o711)
    os.environ |= {
        "DATA_DIR": str(folder),
        "SECRET_KEY": "only for tests",
        "ENCRYPTION_KEYS": "b25seSBmb3IgdGVzdHMsIDMyIGJ5dGVzIGluIGFsbC4=",
        "DJANGO_SETTINGS_MODULE": "a2a_host.settings",
    }
    django.setup()
    return folder


_FOLDER = _set_up()


def pytest_unconfigure() -> None:
    shutil.rmtree(_FOLDER, ignore_errors=True)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """What `-n auto` means."""
    return number_of_processes(config)


def pytest_xdist_setupnodes() -> None:
    """The processes inherit the environment, where this would make them read the settings before they have a place."""
    os.environ.pop("DJANGO_SETTINGS_MODULE")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> DealPortions:
    """What one process gets at a time."""
    return DealPortions(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One process has the order of the files."""
    if hasattr(config, "workerinput"):
        long_ones_first(items)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The suite's PostgreSQL 18: its DATABASE_URL. Tests of the ORM need only `db`."""
    from a2a_host.services.accounts import service_account
    from a2a_host.services.postgres import postgres_service, wait_for_postgres
    from a2a_host.services.processes import Process

    layout = settings.LAYOUT
    process = Process(postgres_service(layout, service_account(layout.postgres_data), durable=False))
    try:
        wait_for_postgres(layout, process)
        yield settings.DATABASE_URL
    finally:
        process.ask_to_stop()
        process.wait(5) or process.kill()


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """The suite's Valkey: its BROKER_URL."""
    from a2a_host.services.accounts import service_account
    from a2a_host.services.processes import Process
    from a2a_host.services.valkey import valkey_service, wait_for_valkey
    from tests.support.deployment import QUEUES

    layout = settings.LAYOUT
    service = valkey_service(layout, service_account(layout.postgres_data))
    process = Process(replace(service, command=[*service.command, "--databases", str(QUEUES)]))
    try:
        wait_for_valkey(layout, process)
        yield settings.BROKER_URL
    finally:
        process.ask_to_stop()
        process.wait(5) or process.kill()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres: str) -> None:
    """pytest-django calls this before it makes the test database."""
