"""DATABASE_URL: Django's settings of a PostgreSQL URL as libpq reads it, with all of libpq's parameters."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

_NETWORK: dict[str, Any] = {
    "connect_timeout": 5,  # seconds, for each address of the host
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 8000,  # milliseconds
}
"""A network that swallows packets says nothing: a connection of which nothing is heard for 8 s is over, whether
something is on its way or not. Parameters of the URL come before these; Unix sockets know none but the first."""


def database_settings(url: str) -> dict[str, Any]:
    """An entry of DATABASES. Raises ImproperlyConfigured, without a word of the URL but for parameters' names."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise ImproperlyConfigured("DATABASE_URL must start with postgresql://")
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ImproperlyConfigured(_complaint(url)) from None
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    database: dict[str, Any] = {setting: given.pop(name, "") for setting, name in names.items()}
    return {"ENGINE": "django.db.backends.postgresql", **database, "OPTIONS": _NETWORK | given}


def _complaint(url: str) -> str:
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    strange = [name for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True) if name not in known]
    if strange:
        return f"DATABASE_URL has parameters that libpq does not know: {', '.join(strange)}"
    return "DATABASE_URL is no URL that libpq can read"
