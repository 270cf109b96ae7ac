"""Who is calling (§7.4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from agents.access import CHALLENGE, CHALLENGE_INVALID, authenticate, flush_last_used
from agents.models import ApiKey
from agents.registry import AgentEntry, Registry
from agents.runtimes.base import Caller
from protocol.errors import UnauthenticatedError
from tests.agents.conftest import make_agent

pytestmark = pytest.mark.spec("7.4")
ALICE = Caller("alice", authenticated=True)


@pytest.fixture
def key(db: None) -> str:
    return ApiKey.issue("laptop", "alice")[1]


@pytest.fixture
def closed(registry: Registry, key: str) -> AgentEntry:
    make_agent("closed")
    make_agent("open", open=True)
    registry.load_sync()
    return registry.get("closed")


@pytest.fixture
def opened(registry: Registry, closed: AgentEntry) -> AgentEntry:
    return registry.get("open")


def challenge(registry: Registry, entry: AgentEntry, authorization: str | None, header: str | None = None) -> str:
    """The challenge that a call is refused with; nothing is noted as used."""
    with pytest.raises(UnauthenticatedError) as caught:
        authenticate(registry, entry, authorization, header)
    assert str(caught.value) == "Authentication is required."
    assert registry.used_keys == set()
    return caught.value.challenge


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER   {}", " Bearer {} "])
def test_bearer(registry: Registry, closed: AgentEntry, key: str, form: str) -> None:
    assert authenticate(registry, closed, form.format(key), None) == ALICE


def test_header_of_its_own(registry: Registry, closed: AgentEntry, key: str) -> None:
    assert authenticate(registry, closed, None, key) == ALICE
    assert authenticate(registry, closed, "Basic dTpw", key) == ALICE
    assert authenticate(registry, closed, "", key) == ALICE


def test_bearer_counts_before_the_other_header(registry: Registry, closed: AgentEntry, key: str) -> None:
    assert authenticate(registry, closed, f"Bearer {key}", "wrong") == ALICE
    assert challenge(Registry(), closed, "Bearer wrong", key) == CHALLENGE_INVALID


@pytest.mark.parametrize("authorization", [None, ""])
def test_no_key(registry: Registry, closed: AgentEntry, opened: AgentEntry, authorization: str | None) -> None:
    assert challenge(registry, closed, authorization) == 'Bearer realm="a2a-host"' == CHALLENGE
    assert challenge(registry, closed, authorization, "") == CHALLENGE
    assert authenticate(registry, opened, authorization, None) == Caller("anonymous", authenticated=False)


@pytest.mark.parametrize(
    "authorization",
    ["Bearer wrong", "Bearer", "Bearer ", "Basic dTpw", "{key}", "Bearer {key}x", "Bearer {key} x", "Bearer \udcff"],
)
def test_wrong_key_on_any_agent(
    registry: Registry, closed: AgentEntry, opened: AgentEntry, key: str, authorization: str
) -> None:
    for entry in (closed, opened):
        given = authorization.format(key=key)
        assert challenge(registry, entry, given) == 'Bearer realm="a2a-host", error="invalid_token"'


def test_wrong_key_in_the_other_header(registry: Registry, opened: AgentEntry) -> None:
    assert challenge(registry, opened, None, "wrong") == CHALLENGE_INVALID


def test_disabled_key(registry: Registry, opened: AgentEntry, key: str) -> None:
    ApiKey.objects.update(enabled=False)
    registry.load_sync()
    assert challenge(registry, opened, f"Bearer {key}") == CHALLENGE_INVALID


def test_key_expires_without_a_reload(registry: Registry, opened: AgentEntry, key: str) -> None:
    ApiKey.objects.update(expires_at=timezone.now() + timedelta(hours=1))
    registry.load_sync()
    assert authenticate(registry, opened, f"Bearer {key}", None) == ALICE
    registry.used_keys.clear()
    ApiKey.objects.update(expires_at=timezone.now())
    registry.load_sync()
    assert challenge(registry, opened, f"Bearer {key}") == CHALLENGE_INVALID


def test_asks_no_database(
    registry: Registry, closed: AgentEntry, key: str, django_assert_num_queries: Callable[[int], object]
) -> None:
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        authenticate(registry, closed, f"Bearer {key}", None)


class TestLastUsed:
    def flush(self, registry: Registry, **later: int) -> int:
        return async_to_sync(flush_last_used)(registry, timezone.now() + timedelta(**later))

    def test_is_written_by_the_flush_once_a_minute(self, registry: Registry, closed: AgentEntry, key: str) -> None:
        other, _ = ApiKey.issue("unused")
        before = timezone.now()
        authenticate(registry, closed, f"Bearer {key}", None)
        row = ApiKey.objects.get(name="laptop")
        assert row.last_used_at is None
        assert self.flush(registry) == 1
        row.refresh_from_db()
        first = row.last_used_at
        assert first is not None
        assert before <= first <= timezone.now()
        assert self.flush(registry, hours=1) == 0

        authenticate(registry, closed, f"Bearer {key}", None)
        assert self.flush(registry, seconds=30) == 0
        authenticate(registry, closed, f"Bearer {key}", None)
        assert self.flush(registry, seconds=90) == 1
        row.refresh_from_db()
        other.refresh_from_db()
        assert row.last_used_at is not None
        assert row.last_used_at > first
        assert other.last_used_at is None

    def test_is_kept_when_the_database_refuses(self, registry: Registry, closed: AgentEntry, key: str) -> None:
        authenticate(registry, closed, f"Bearer {key}", None)
        used = set(registry.used_keys)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE agents_apikey DROP COLUMN last_used_at")
            with pytest.raises(DatabaseError):
                self.flush(registry)
            transaction.set_rollback(True)
        assert registry.used_keys == used
        assert self.flush(registry) == 1
