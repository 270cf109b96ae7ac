"""Agents and API keys in memory, once per process.

Every change of a row, by any path, is announced on the PostgreSQL channel `CHANNEL` by triggers; the process's listener
answers with `load`. It reads everything again: the tables are small, and what was missed once is not missed for ever.
`fingerprint` tells whether something was missed.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from django.db import connection, transaction

from agents.entries import AgentEntry, KeyEntry
from agents.fingerprint import FINGERPRINT
from agents.models import Agent, ApiKey, SigningKey
from agents.runtimes.factory import RuntimeSlot
from agents.secrets import EncryptionError
from agents.signing import Signer, key_set
from agents.threads import in_thread
from protocol.errors import AgentNotFoundError

__all__ = ["CHANNEL", "AgentEntry", "KeyEntry", "Registry"]

logger = logging.getLogger(__name__)

CHANNEL = "a2a_agents"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading of the tables. It is replaced as a whole, so readers need no lock."""

    enabled: dict[str, AgentEntry]
    by_id: dict[int, AgentEntry]
    keys: dict[str, KeyEntry]
    root: AgentEntry | None = None
    signer: Signer | None = None
    key_set: bytes = b'{"keys":[]}'
    fingerprint: str = ""


class Registry:
    """What this process knows of agents and keys. Reading never touches the database.

    `runs` names the execution ("web" or "worker") whose agents run in this process: their code is imported with each
    load, so that no event loop waits for an import. Empty: code is imported when it is first run.
    """

    def __init__(self, runs: str = "") -> None:
        self.runs = runs
        self.used_keys: set[int] = set()
        self._snapshot = Snapshot({}, {}, {})
        self._lock = asyncio.Lock()
        self._asked = 0
        self._done = 0

    def get(self, slug: str) -> AgentEntry:
        """The enabled agent with this slug. Raises AgentNotFoundError, the same for unknown and disabled ones."""
        try:
            return self._snapshot.enabled[slug]
        except KeyError:
            raise AgentNotFoundError(slug) from None

    def by_id(self, agent_id: int) -> AgentEntry | None:
        """The agent with this primary key, also when it is disabled, so that its running tasks finish."""
        return self._snapshot.by_id.get(agent_id)

    @property
    def answer_limits(self) -> dict[int, int]:
        """The time in seconds for which tasks wait for an answer, by the agents that limit it."""
        limits = {entry.id: entry.answer_within_seconds for entry in self._snapshot.by_id.values()}
        return {agent_id: seconds for agent_id, seconds in limits.items() if seconds is not None}

    def key(self, digest: str) -> KeyEntry | None:
        """The enabled key with this SHA-256 (hex). Whether it has expired is for the caller to say."""
        return self._snapshot.keys.get(digest)

    def entries(self) -> list[AgentEntry]:
        """The enabled agents by slug."""
        return list(self._snapshot.enabled.values())

    @property
    def root(self) -> AgentEntry | None:
        """The enabled agent that also answers at the host root."""
        return self._snapshot.root

    @property
    def signer(self) -> Signer | None:
        """The active key of the host."""
        return self._snapshot.signer

    @property
    def key_set(self) -> bytes:
        """The JWK Set of the keys that sign, or did."""
        return self._snapshot.key_set

    @property
    def fingerprint(self) -> str:
        """What the query FINGERPRINT said when the tables were read last, or before what was read."""
        return self._snapshot.fingerprint

    async def load(self) -> None:
        """Read the tables, also again after a change. Entries that did not change stay the same objects, and reads that
        wait for each other become one."""
        self._asked += 1
        asked = self._asked
        async with self._lock:
            if self._done >= asked:
                return
            covers = self._asked
            await in_thread(self.load_sync)
            self._done = covers

    def load_sync(self) -> None:
        """`load` for code without an event loop."""
        snapshot = self._read()
        self._snapshot = snapshot
        for entry in snapshot.by_id.values():
            if self.runs and entry.enabled and entry.execution == self.runs:
                entry.slot.preload()

    def _read(self) -> Snapshot:
        with transaction.atomic():
            fingerprint = _fingerprint()  # First: what changes meanwhile is read, and looks like a change once more.
            agents = list(Agent.objects.prefetch_related("skills", "extensions", "notes").order_by("slug"))
            keys = list(ApiKey.objects.filter(enabled=True))
            signing_keys = list(SigningKey.objects.all())
        signer = self._signer(signing_keys)
        entries = [entry for agent in agents if (entry := self._readable_entry(agent, signer)) is not None]
        return Snapshot(
            enabled={entry.slug: entry for entry in entries if entry.enabled},
            by_id={entry.id: entry for entry in entries},
            keys={key.digest: KeyEntry(key.pk, key.owner, key.expires_at, frozenset(key.groups)) for key in keys},
            root=next((entry for entry in entries if entry.enabled and entry.is_root), None),
            signer=signer,
            key_set=key_set(signing_keys),
            fingerprint=fingerprint,
        )

    def _readable_entry(self, row: Agent, signer: Signer | None) -> AgentEntry | None:
        """The row's entry; None, and a line in the log, for one that only SQL can have written: the others go on."""
        try:
            return self._entry(row, signer)
        except (TypeError, AttributeError, KeyError):
            logger.exception("Agent %s cannot be read and is left out", row.slug)
            return None

    def _entry(self, row: Agent, signer: Signer | None) -> AgentEntry:
        """The row's entry; the one held now where nothing changed, so that what others cache with it stays valid."""
        held = self._snapshot.by_id.get(row.pk)
        if held is not None and held.slot.serves(row.kind, row.executor):
            entry = AgentEntry.of(row, held.slot, signer)
            return held if held == entry else entry
        return AgentEntry.of(row, RuntimeSlot(row.slug, row.kind, row.executor), signer)

    def _signer(self, keys: list[SigningKey]) -> Signer | None:
        """The active key, the signer held now if it is that of it; None, and a line in the log, if it is unreadable."""
        active = next((key for key in keys if key.state == SigningKey.State.ACTIVE), None)
        held = self._snapshot.signer
        if active is None or (held is not None and held.kid == active.kid):
            return held if active is not None else None
        try:
            return Signer.of(active)
        except (EncryptionError, ValueError, TypeError) as error:
            logger.error("Cards are not signed, since the key %s cannot be read: %s", active.kid, error)
            return None


def _fingerprint() -> str:
    with connection.cursor() as cursor:
        cursor.execute(FINGERPRINT)
        return str(cursor.fetchone()[0])
