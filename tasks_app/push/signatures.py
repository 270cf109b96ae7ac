"""How a receiver knows that the host has sent a notification: the headers of a request.

Three ways, by `authentication.scheme` of the config: HMAC-SHA256 as the Standard Webhooks specification has it, with
`credentials` as the shared secret; JWT without credentials, signed with the key that signs the host's cards; any other
one as it is given (§4.3.3).
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.conf import settings

from agents.signing import Signer
from protocol.ids import new_id

HMAC_SHA256 = "HMAC-SHA256"
JWT = "JWT"
JWT_SECONDS = 300
"""How long a token is good for."""
_STANDARD_PREFIX = "whsec_"


class SigningError(Exception):
    """A notification cannot be signed. The message may be shown to people."""


@dataclass(frozen=True, slots=True)
class Letter:
    """What is signed: a body for a URL. `id` is the same whenever this event is sent."""

    id: str
    task_id: str
    url: str
    body: bytes
    at: datetime


def signs(scheme: str, credentials: str) -> str:
    """HMAC_SHA256 or JWT if that is what the host does for these; else "", and they are sent as they are."""
    if scheme.upper() == HMAC_SHA256:
        return HMAC_SHA256
    return JWT if scheme.upper() == JWT and not credentials else ""


def shared_secret(credentials: str) -> bytes:
    """The key of HMAC_SHA256: the bytes of the text, or what follows `whsec_` in base64.

    Raises ValueError for what follows it and is none.
    """
    if not credentials.startswith(_STANDARD_PREFIX):
        return credentials.encode()
    try:
        secret = b64decode(credentials.removeprefix(_STANDARD_PREFIX), validate=True)
    except NoBase64:
        secret = b""
    if not secret:
        raise ValueError(f"must have base64 after {_STANDARD_PREFIX}")
    return secret


def authorization(
    scheme: str, credentials: str, letter: Letter, signer: Callable[[], Signer | None]
) -> list[tuple[str, str]]:
    """The headers for a config's authentication. Raises SigningError without an active key of the host."""
    way = signs(scheme, credentials)
    if way == HMAC_SHA256:
        return _standard_webhook(shared_secret(credentials), letter)
    if way == JWT:
        key = signer()
        if key is None:
            raise SigningError("the host has no signing key")
        return [("Authorization", f"Bearer {_token(key, letter)}")]
    # A scheme without credentials says nothing.
    return [("Authorization", f"{scheme} {credentials}")] if scheme and credentials else []


def _standard_webhook(secret: bytes, letter: Letter) -> list[tuple[str, str]]:
    timestamp = str(int(letter.at.timestamp()))
    signed = f"{letter.id}.{timestamp}.".encode() + letter.body
    signature = b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
    return [("webhook-timestamp", timestamp), ("webhook-signature", f"v1,{signature}")]


def _token(signer: Signer, letter: Letter) -> str:
    issued = int(letter.at.timestamp())
    claims = {
        "iss": settings.PUBLIC_URL or f"http://{settings.HOST}:{settings.PORT}",
        "aud": letter.url,
        "iat": issued,
        "exp": issued + JWT_SECONDS,
        "jti": new_id(),
        "taskId": letter.task_id,
        "request_body_sha256": hashlib.sha256(letter.body).hexdigest(),
    }
    return signer.token(msgspec.json.encode(claims))
