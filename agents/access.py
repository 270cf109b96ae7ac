"""Who is calling (§7.4): API keys as Bearer tokens or in a header of their own."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from agents.entries import AgentEntry
from agents.keys import ANONYMOUS, hash_key
from agents.models import ApiKey
from agents.registry import Registry
from agents.runtimes.base import Caller
from agents.threads import in_thread
from protocol.errors import UnauthenticatedError

API_KEY_HEADER = "X-API-Key"
CHALLENGE = 'Bearer realm="a2a-host"'
CHALLENGE_INVALID = f'{CHALLENGE}, error="invalid_token"'
LAST_USED_PRECISION = timedelta(minutes=1)


def authenticate(
    registry: Registry, entry: AgentEntry, authorization: str | None, api_key_header: str | None
) -> Caller:
    """The caller of an agent: see `identify`. Raises UnauthenticatedError also when an agent that is not open gets no
    key."""
    caller = identify(registry, authorization, api_key_header)
    if not (entry.open or caller.authenticated):
        raise UnauthenticatedError(CHALLENGE)
    return caller


def identify(registry: Registry, authorization: str | None, api_key_header: str | None) -> Caller:
    """The caller behind the values of `Authorization` and `X-API-Key`; a Bearer token counts before the other.

    Raises UnauthenticatedError for a wrong, disabled or expired key, whatever the agent: a caller who means to be known
    is never served as somebody else.
    """
    key = _bearer(authorization) or api_key_header
    if key:
        return _caller(registry, key)
    if authorization:
        raise UnauthenticatedError(CHALLENGE_INVALID)
    return Caller(ANONYMOUS)


def may_call(entry: AgentEntry, caller: Caller) -> bool:
    """Whether a caller who is known already may call an agent: what `authenticate` asks for."""
    return entry.open or caller.authenticated


def _caller(registry: Registry, key: str) -> Caller:
    known = registry.key(hash_key(key))
    if known is None or (known.expires_at is not None and known.expires_at <= timezone.now()):
        raise UnauthenticatedError(CHALLENGE_INVALID)
    registry.used_keys.add(known.id)
    return Caller(known.owner, authenticated=True, groups=known.groups)


def _bearer(authorization: str | None) -> str | None:
    """The token of `Bearer <token>` (RFC 9110 §11.1: the scheme's case does not count), None for anything else."""
    if not authorization:
        return None
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


async def flush_last_used(registry: Registry, now: datetime | None = None) -> int:
    """Write when the keys used since the last flush were used, to the minute. Returns how many rows changed.

    For a timer of the host; calls only note the key's id. Ids are kept for the next flush when the database is away.
    """
    used, registry.used_keys = registry.used_keys, set()
    if not used:
        return 0
    now = now or timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_PRECISION)
    try:
        return await in_thread(lambda: ApiKey.objects.filter(stale, pk__in=used).update(last_used_at=now))
    except BaseException:
        registry.used_keys |= used
        raise
