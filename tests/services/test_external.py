"""`manage.py up` on services that somebody else runs, and what it says when they are not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.services.copies import Copy, free_port
from tests.services.test_up import send
from tests.support.deployment import QUEUES

pytestmark = pytest.mark.timeout(400)  # Whole hosts start here.


@pytest.fixture
def empty_database(postgres: str) -> Iterator[str]:
    """The URL of a new database on the suite's PostgreSQL."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE elsewhere")
        yield postgres.replace("/a2a?", "/elsewhere?")
        connection.execute("DROP DATABASE elsewhere WITH (FORCE)")


def test_nothing_embedded_is_started(start: Callable[..., Copy], empty_database: str, broker: str) -> None:
    elsewhere = {"DATABASE_URL": empty_database, "BROKER_URL": f"{broker}?virtual_host={QUEUES - 1}"}
    copy = start(**elsewhere).wait_ready()
    assert copy.lines[:2] == ["Using the PostgreSQL of DATABASE_URL", "Using the broker of BROKER_URL"]
    assert sorted(copy.pids()) == ["grpc", "web", "worker"]
    assert not (copy.data_dir / "postgres").exists()
    task = send(copy, "steps-worker", "steps 1 1")["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"

    another = start("another", **elsewhere).wait_ready()
    assert another.credentials["admin_password"] is None  # The admin of the first keeps the password.
    assert another.lines[-2] == "Admin: user admin was there before, with the password it had"
    assert "result" in send(another, "order-agent", "hello", copy.credentials["api_key"])


def test_an_unreachable_database_is_one_line(start: Callable[..., Copy]) -> None:
    port = free_port()
    copy = start(DATABASE_URL=f"postgresql://somebody:secret@127.0.0.1:{port}/a2a")
    assert copy.wait_end() == 1
    assert copy.lines[0] == "Using the PostgreSQL of DATABASE_URL"
    assert len(copy.lines) == 2
    assert copy.lines[1].startswith("a2a-host: DATABASE_URL is unreachable: connection failed: ")
    assert "secret" not in copy.lines[1]
    assert not (copy.data_dir / "valkey").exists()


def test_an_unreachable_broker_is_one_line(start: Callable[..., Copy]) -> None:
    port = free_port()
    copy = start(BROKER_URL=f"redis://:secret@127.0.0.1:{port}/0")
    assert copy.wait_end() == 1
    assert copy.lines[0] == "Using the broker of BROKER_URL"
    assert len(copy.lines) == 2
    assert copy.lines[1].startswith("a2a-host: BROKER_URL is unreachable: ")
    assert "secret" not in copy.lines[1]
    assert not (copy.data_dir / "postgres").exists()


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("PORT", "eighty", "a2a-host: PORT must be a number from 1 to 65535, got eighty"),
        ("GRPC_PORT", "x", "a2a-host: GRPC_PORT must be a number from 0 to 65535, got x"),
        ("DATABASE_URL", "mysql://x/y", "a2a-host: DATABASE_URL must start with postgresql://"),
        (
            "DATABASE_URL",
            "postgresql://u:secret@h/d?conn_max_age=3&sslmode=require",
            "a2a-host: DATABASE_URL has parameters that libpq does not know: conn_max_age",
        ),
        ("AGENTS_DIR", "/nowhere", "a2a-host: AGENTS_DIR is not a folder: /nowhere"),
        ("PUBLIC_URL", "example.org", "a2a-host: PUBLIC_URL must start with http:// or https://, got example.org"),
        ("GRPC_PUBLIC_URL", "x", "a2a-host: GRPC_PUBLIC_URL must be host:port, such as example.com:443, got x"),
        ("BUSY_POLL_MICROSECONDS", "-1", "a2a-host: BUSY_POLL_MICROSECONDS must be a number from 0 to 100000, got -1"),
        ("WEB_PROCESSES", "two", "a2a-host: WEB_PROCESSES must be a number from 1 to 64, got two"),
        ("RETENTION_BATCH", "0", "a2a-host: RETENTION_BATCH must be a number from 1 to 100000, got 0"),
        ("STORED_PART_BYTES", "1k", "a2a-host: STORED_PART_BYTES must be a number from 1024 to 2147483647, got 1k"),
        ("KEEP_ALIVE_SECONDS", "x", "a2a-host: KEEP_ALIVE_SECONDS must be a number of seconds above 0, got x"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "a2a-host: TRUSTED_PROXIES: 10.0.0.1/8 has host bits set"),
        ("DATA_DIR", "/proc/nowhere", "a2a-host: [Errno 2] No such file or directory: '/proc/nowhere'"),
    ],
)
def test_a_wrong_setting_is_one_line(start: Callable[..., Copy], name: str, value: str, line: str) -> None:
    copy = start(**{name: value})
    assert copy.wait_end() == 1
    assert copy.lines == [line]


def test_one_port_for_two_servers_is_one_line(start: Callable[..., Copy]) -> None:
    port = str(free_port())
    copy = start(PORT=port, GRPC_PORT=port)
    assert copy.wait_end() == 1
    assert copy.lines == [f"a2a-host: PORT and GRPC_PORT must differ, both are {port}"]
