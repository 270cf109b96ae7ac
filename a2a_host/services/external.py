"""Services that somebody else runs: can they be used? Asked before anything of ours starts."""

from __future__ import annotations

import time

import psycopg
from kombu import Connection

from a2a_host.services.errors import ServiceError

_PATIENCE = 6.0  # seconds for a database that is just coming up
_OLDEST = 14


def check_database(url: str) -> None:
    """Raises ServiceError unless `url` leads to a PostgreSQL 14 or newer within a few seconds."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            with psycopg.connect(url, connect_timeout=3) as connection:
                version = connection.info.server_version
            break
        except psycopg.Error as error:
            if time.monotonic() + 0.5 > deadline:
                raise ServiceError(f"DATABASE_URL is unreachable: {_one_line(error)}") from error
            time.sleep(0.5)
    if version < _OLDEST * 10000:
        raise ServiceError(f"DATABASE_URL is PostgreSQL {version // 10000}, at least {_OLDEST} is needed")


def check_broker(url: str) -> None:
    """Raises ServiceError unless the broker at `url` takes a connection within a few seconds."""
    try:
        with Connection(url, connect_timeout=5) as connection:
            connection.ensure_connection(max_retries=3, interval_max=1, timeout=6)
    except Exception as error:  # Every transport has errors of its own.
        raise ServiceError(f"BROKER_URL is unreachable: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
