"""One request to a webhook, and what came of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agents.outbound.client import OutboundClient
from agents.outbound.rules import OutboundError, OutboundRules
from agents.secrets import EncryptionError, decrypt
from agents.signing import Signer
from protocol.timestamps import now
from tasks_app.push.excerpts import excerpt
from tasks_app.push.notifications import Notification
from tasks_app.push.places import Places
from tasks_app.push.queue import AGAIN, TEST, Claim, Outcome
from tasks_app.push.signatures import Letter, SigningError, authorization

logger = logging.getLogger(__name__)

_PURPOSES = {AGAIN: "redelivery", TEST: "test"}


@dataclass(frozen=True, slots=True)
class Errand:
    """What is to be sent to whom; `kind` is one of EVENT, AGAIN, TEST, and `attempt` counts from 1."""

    claim: Claim
    kind: int
    attempt: int
    notification: Notification


class Poster:
    """Sends requests for one process and event loop."""

    def __init__(
        self, rules: OutboundRules, signer: Callable[[], Signer | None], clock: Callable[[], datetime | None]
    ) -> None:
        self._client = OutboundClient(rules)
        self._places = Places()
        self._signer = signer
        self._clock = clock

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def post(self, errand: Errand) -> Outcome:
        """Send one notification. Raises NoPlaceError when too many other requests hang; then nothing was sent."""
        claim = errand.claim
        async with self._places.place(claim.url, failing=errand.attempt > 1):
            at = self._clock() or now()
            started = time.monotonic()
            status, error, response = await self._exchange(errand, at)
            took = round((time.monotonic() - started) * 1000)
        seq = 0 if errand.kind == TEST else errand.notification.seq
        return Outcome(claim, errand.kind, seq, errand.attempt, at, took, status, error, response)

    async def _exchange(self, errand: Errand, at: datetime) -> tuple[int | None, str, str]:
        """(status, error, excerpt of the answer): an empty error means that the receiver took it."""
        claim, sent = errand.claim, errand.notification
        try:
            token, credentials = (decrypt(text) if text else "" for text in (claim.token, claim.credentials))
            letter = Letter(_id_of(errand), claim.task_id, claim.url, sent.body, at)
            signed = authorization(claim.scheme, credentials, letter, self._signer)
            headers = [("Content-Type", sent.content_type), *_marks(errand, letter), *_token(token), *signed]
            reply = await self._client.request("POST", claim.url, headers, sent.body)
        except (OutboundError, SigningError) as error:
            return None, str(error), ""
        except EncryptionError as error:
            logger.error("The webhook %s: %s", claim.name, error)
            return None, "the stored credentials cannot be decrypted", ""
        answer = excerpt(reply.body, [token, credentials, *(value for _, value in signed)])
        return reply.status, "" if reply.accepted else f"HTTP {reply.status}", answer


def _id_of(errand: Errand) -> str:
    """The same whenever this event is sent, so that a receiver knows it again; without a dot, since what is signed has
    dots between its parts."""
    claim = errand.claim
    return (
        f"{claim.task_id}-test-{claim.number}" if errand.kind == TEST else f"{claim.task_id}-{errand.notification.seq}"
    )


def _marks(errand: Errand, letter: Letter) -> list[tuple[str, str]]:
    purpose = _PURPOSES.get(errand.kind)
    return [("webhook-id", letter.id), *([("X-A2A-Notification-Purpose", purpose)] if purpose else [])]


def _token(token: str) -> list[tuple[str, str]]:
    return [("X-A2A-Notification-Token", token)] if token else []
