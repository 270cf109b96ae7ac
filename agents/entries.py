"""What each process holds in memory of agents and keys: everything that a call needs, so that it asks no database."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime

from agents.media_types import MediaTypes
from agents.models import Agent, AgentExtension, CardNote, Skill
from agents.runtimes.base import Runtime
from agents.runtimes.factory import RuntimeSlot
from agents.signing import Signer
from protocol.model import Part

TEXT_PLAIN = "text/plain"
VERSIONS: dict[str, tuple[str, ...]] = {
    Agent.Versions.BOTH: ("1.0", "0.3"),
    Agent.Versions.V1_0: ("1.0",),
    Agent.Versions.V0_3: ("0.3",),
}


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """One skill as the card says it (§4.4.5)."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...]
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Skill) -> SkillEntry:
        """The entry of a row."""
        return cls(
            id=row.skill_id,
            name=row.name,
            description=row.description,
            tags=tuple(row.tags),
            examples=tuple(row.examples),
            input_modes=tuple(row.input_modes),
            output_modes=tuple(row.output_modes),
            groups=tuple(row.groups),
        )


@dataclass(frozen=True, slots=True)
class ExtensionEntry:
    """One extension as the card says it (§4.4.4); `params` is the text of a JSON object, "" for none."""

    uri: str
    description: str
    required: bool
    params: str

    @classmethod
    def of(cls, row: AgentExtension) -> ExtensionEntry:
        """The entry of a row."""
        return cls(row.uri, row.description, row.required, json.dumps(row.params) if row.params else "")


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """One note on the extended card."""

    text: str
    groups: tuple[str, ...]

    @classmethod
    def of(cls, row: CardNote) -> NoteEntry:
        """The entry of a row."""
        return cls(row.text, tuple(row.groups))


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One agent as a process knows it. Two entries are equal when nothing that callers can notice differs."""

    id: int
    slug: str
    enabled: bool
    name: str
    description: str
    version: str
    documentation_url: str
    icon_url: str
    provider_organization: str
    provider_url: str
    default_input_modes: tuple[str, ...]
    default_output_modes: tuple[str, ...]
    skills: tuple[SkillEntry, ...]
    extensions: tuple[ExtensionEntry, ...]
    extension_uris: frozenset[str]
    required_extensions: tuple[str, ...]
    notes: tuple[NoteEntry, ...]
    versions: tuple[str, ...]
    """Versions of A2A that the agent is served in, such as ("1.0", "0.3"), the preferred one first."""
    extended_card: bool
    is_root: bool
    streaming: bool
    push_notifications: bool
    kind: str
    executor: str
    execution: str
    timeout_seconds: int
    cancel_grace_seconds: int
    max_request_bytes: int
    deadline_seconds: int
    max_retries: int
    answer_within_seconds: int | None
    large_parts: str
    max_task_bytes: int
    max_stored_bytes: int | None
    open: bool
    shared_history: bool
    idempotent_sends: bool
    updated_at: datetime
    input_modes: MediaTypes
    output_modes: MediaTypes
    signer: Signer | None
    """What signs the agent's cards."""
    slot: RuntimeSlot = field(compare=False, repr=False)

    @property
    def groups(self) -> frozenset[str]:
        """The groups that make a difference to the extended card."""
        parts: list[SkillEntry | NoteEntry] = [*self.skills, *self.notes]
        return frozenset(group for part in parts for group in part.groups)

    @property
    def has_extended_card(self) -> bool:
        """Whether there is anything that only some callers see (§3.1.11)."""
        return bool(self.notes or any(skill.groups for skill in self.skills))

    @property
    def runtime(self) -> Runtime:
        """What runs behind the agent; one instance per process, built on first use. Never raises."""
        return self.slot.get()

    def accepts(self, media_type: str) -> bool:
        """Whether the agent or one of its skills takes this media type; the message does not say which skill it
        is for (§3.1.1, ContentTypeNotSupportedError)."""
        return media_type in self.input_modes

    def accepts_part(self, part: Part) -> bool:
        """Whether the agent takes a part. Only text has a media type of its own when none is given; data and files
        without one contradict nothing on the card."""
        if part.media_type:
            return part.media_type in self.input_modes
        return not isinstance(part.text, str) or TEXT_PLAIN in self.input_modes

    @classmethod
    def of(cls, row: Agent, slot: RuntimeSlot, signer: Signer | None = None) -> AgentEntry:
        """The entry of a row and of the rows that hang on it; `signer` has the host's active key.

        Raises KeyError for what only SQL can have written.
        """
        skills = list(row.skills.all())
        return cls(
            id=row.pk,
            slug=row.slug,
            enabled=row.enabled,
            name=row.name,
            description=row.description,
            version=row.version,
            documentation_url=row.documentation_url,
            icon_url=row.icon_url,
            provider_organization=row.provider_organization,
            provider_url=row.provider_url,
            default_input_modes=tuple(row.default_input_modes),
            default_output_modes=tuple(row.default_output_modes),
            skills=tuple(SkillEntry.of(skill) for skill in skills),
            extensions=tuple(ExtensionEntry.of(extension) for extension in row.extensions.all()),
            extension_uris=frozenset(extension.uri for extension in row.extensions.all()),
            required_extensions=tuple(extension.uri for extension in row.extensions.all() if extension.required),
            notes=tuple(NoteEntry.of(note) for note in row.notes.all()),
            versions=VERSIONS[row.versions],
            extended_card=row.extended_card,
            is_root=row.is_root,
            streaming=row.streaming,
            push_notifications=row.push_notifications,
            kind=row.kind,
            executor=row.executor,
            execution=row.execution,
            timeout_seconds=row.timeout_seconds,
            cancel_grace_seconds=row.cancel_grace_seconds,
            max_request_bytes=row.max_request_bytes,
            deadline_seconds=row.deadline_seconds,
            max_retries=row.max_retries,
            answer_within_seconds=row.answer_within_seconds,
            large_parts=row.large_parts,
            max_task_bytes=row.max_task_bytes,
            max_stored_bytes=row.max_stored_bytes,
            open=row.open,
            shared_history=row.shared_history,
            idempotent_sends=row.idempotent_sends,
            updated_at=row.updated_at,
            input_modes=MediaTypes.of([*row.default_input_modes, *(m for s in skills for m in s.input_modes)]),
            output_modes=MediaTypes.of([*row.default_output_modes, *(m for s in skills for m in s.output_modes)]),
            signer=signer if row.sign_card else None,
            slot=slot,
        )


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One API key that may be used now or until `expires_at`."""

    id: int
    owner: str
    expires_at: datetime | None
    groups: frozenset[str] = frozenset()
