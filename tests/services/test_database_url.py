"""DATABASE_URL as libpq reads it: what it says reaches every connection of the host."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg.conninfo import conninfo_to_dict

from a2a_host.database_url import database_settings
from tasks_app.tables import database

DEFAULTS = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "4",
    "keepalives_interval": "2",
    "keepalives_count": "2",
    "tcp_user_timeout": "8000",
}


def dsn_of(url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the journal and the readers connect with when this is DATABASE_URL."""
    django = {"TIME_ZONE": "UTC", "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False, "AUTOCOMMIT": True}
    wrapper = DatabaseWrapper(database_settings(url) | django)
    monkeypatch.setattr(database, "connections", {"default": wrapper})
    return {name: str(value) for name, value in conninfo_to_dict(database.database_dsn()).items()}


def test_a_plain_url_gets_the_timeouts_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dsn_of("postgresql://me:p%23w@db.example:5433/tasks", monkeypatch) == DEFAULTS | {
        "host": "db.example",
        "port": "5433",
        "user": "me",
        "password": "p#w",
        "dbname": "tasks",
        "client_encoding": "utf8",
        "options": "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off",
    }


def test_what_the_url_says_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "target_session_attrs": "read-write",
        "channel_binding": "require",
        "sslmode": "verify-full",
        "sslcrl": "/etc/crl.pem",
        "application_name": "tasks",
        "keepalives": "0",
        "connect_timeout": "30",
        "tcp_user_timeout": "0",
    }
    query = "&".join(f"{name}={value}" for name, value in said.items())
    found = dsn_of(f"postgres://me@one:1,two:2/tasks?{query}&options=-c%20statement_timeout%3D9s", monkeypatch)
    assert {name: found[name] for name in said} == said
    assert (found["host"], found["port"]) == ("one,two", "1,2")
    assert found["options"].startswith("-c statement_timeout=9s -c plan_cache_mode=")
    assert found["keepalives_idle"] == DEFAULTS["keepalives_idle"]


def test_the_folder_of_a_socket_is_a_host() -> None:
    found = database_settings("postgresql://a2a@/a2a?host=%2Frun%2Fa2a&port=5432")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("/run/a2a", "5432", "a2a")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("mysql://u:secret@h/d", "DATABASE_URL must start with postgresql://"),
        (
            "postgresql://u:secret@h/d?conn_max_age=60&sslmode=require&pool=1",
            "DATABASE_URL has parameters that libpq does not know: conn_max_age, pool",
        ),
        ("postgresql://u:sec%zzret@h/d", "DATABASE_URL is no URL that libpq can read"),
        ("postgresql://u:secret@[::1/d", "DATABASE_URL is no URL that libpq can read"),
    ],
)
def test_what_libpq_does_not_know_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        database_settings(url)
    assert str(refused.value) == complaint
