"""A push config as it is stored, with its secrets encrypted, and as callers see it, without them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET

from agents.outbound.rules import ForbiddenUrlError, OutboundRules
from agents.secrets import encrypt
from agents.signing import Signer
from protocol.errors import InvalidParamsError, Violation
from protocol.ids import new_id
from protocol.model import AuthenticationInfo, TaskPushNotificationConfig
from protocol.timestamps import now
from tasks_app.push.signatures import HMAC_SHA256, JWT, shared_secret, signs

SECRET_MAX = 4096
CONFIGS_MAX = 50
"""Of one task: each of its events is a request to every one of them."""

_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")  # a token (RFC 9110 §5.6.2)
_HEADER_VALUE = re.compile(rf"(?:[!-~](?:[ -~]{{0,{SECRET_MAX - 2}}}[!-~])?)?")

# One with the same id takes its predecessor's place: what that one had not delivered goes to the new address. The
# raised claim stops who delivers for the old one. What a person has paused stays so.
REPLACE = """url = excluded.url, token = excluded.token, scheme = excluded.scheme, credentials = excluded.credentials,
        version = excluded.version, claim = p.claim + 1, lease_until = NULL, attempts = 0, failing_since = NULL,
        last_error = '', disabled_reason = '', disabled_at = NULL, resend = ARRAY[]::int[],
        due_at = CASE WHEN p.cursor < p.last_seq AND p.paused_at IS NULL THEN now() END"""


@dataclass(frozen=True, slots=True)
class StoredConfig:
    """A row. `token` and `credentials` are encrypted, "" for none; `version` is that of the protocol.

    `cursor` is the seq that delivery begins after.
    """

    task_id: str
    config_id: str
    url: str
    token: str
    scheme: str
    credentials: str
    version: str
    created_at: datetime
    cursor: int

    def shown(self) -> TaskPushNotificationConfig:
        """What callers may see of it: neither the token nor the credentials (§13.2)."""
        authentication = AuthenticationInfo(scheme=self.scheme) if self.scheme else UNSET
        return TaskPushNotificationConfig(
            task_id=self.task_id, id=self.config_id, url=self.url, authentication=authentication
        )


def sealed(config: TaskPushNotificationConfig, task_id: str, dialect: str, cursor: int) -> StoredConfig:
    """A checked config as a row, with an id of the server's unless it has one (§3.1.7).

    `dialect` names the binding and version of the call. Raises EncryptionError.
    """
    authentication = config.authentication
    scheme, credentials = ("", "") if authentication is UNSET else (authentication.scheme, authentication.credentials)
    return StoredConfig(
        task_id=task_id,
        config_id=config.id or new_id(),
        url=config.url,
        token=encrypt(config.token) if config.token else "",
        scheme=scheme,
        credentials=encrypt(credentials) if credentials else "",
        version=dialect.rpartition("/")[2],
        created_at=now(),
        cursor=cursor,
    )


async def check_config(
    config: TaskPushNotificationConfig, rules: OutboundRules, signer: Signer | None, prefix: str = ""
) -> None:
    """Raises InvalidParamsError for a URL that may not be called, for what no HTTP header can hold, and for a signature
    that cannot be made. `signer` is the host's key, None without one.

    `prefix` is the path of the config in the request, with its dot.
    """
    violations = []
    if not _HEADER_VALUE.fullmatch(config.token):
        violations.append(Violation(f"{prefix}token", _UNFIT))
    authentication = config.authentication
    if authentication is not UNSET:
        if not _SCHEME.fullmatch(authentication.scheme):
            violations.append(Violation(f"{prefix}authentication.scheme", "is not the name of an HTTP scheme"))
        if not _HEADER_VALUE.fullmatch(authentication.credentials):
            violations.append(Violation(f"{prefix}authentication.credentials", _UNFIT))
        if not violations:
            violations += _signature_violations(authentication, signer, f"{prefix}authentication.")
    if not violations:
        try:
            await rules.check(config.url)
        except ForbiddenUrlError as error:
            violations.append(Violation(f"{prefix}url", str(error)))
    if violations:
        raise InvalidParamsError(violations)


_UNFIT = f"must be at most {SECRET_MAX} printable ASCII characters without a space at either end"


def _signature_violations(authentication: AuthenticationInfo, signer: Signer | None, prefix: str) -> list[Violation]:
    way = signs(authentication.scheme, authentication.credentials)
    if way == JWT and signer is None:
        return [Violation(f"{prefix}scheme", "cannot be JWT, since this host has no signing key")]
    if way != HMAC_SHA256:
        return []
    if not authentication.credentials:
        return [Violation(f"{prefix}credentials", f"must hold the shared secret of {HMAC_SHA256}")]
    try:
        shared_secret(authentication.credentials)
    except ValueError as error:
        return [Violation(f"{prefix}credentials", str(error))]
    return []
