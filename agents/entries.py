"""What each process holds in memory of agents and keys: everything that a call needs, so that it asks no database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from agents.media_types import MediaTypes
from agents.models import Agent, Skill
from agents.runtimes.base import Runtime
from agents.runtimes.factory import RuntimeSlot
from protocol.model import Part

TEXT_PLAIN = "text/plain"


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
        )


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
    streaming: bool
    push_notifications: bool
    kind: str
    executor: str
    execution: str
    timeout_seconds: int
    cancel_grace_seconds: int
    max_request_bytes: int
    open: bool
    shared_history: bool
    idempotent_sends: bool
    updated_at: datetime
    input_modes: MediaTypes
    output_modes: MediaTypes
    slot: RuntimeSlot = field(compare=False, repr=False)

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
    def of(cls, row: Agent, skills: list[Skill], slot: RuntimeSlot) -> AgentEntry:
        """The entry of a row and its skills."""
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
            streaming=row.streaming,
            push_notifications=row.push_notifications,
            kind=row.kind,
            executor=row.executor,
            execution=row.execution,
            timeout_seconds=row.timeout_seconds,
            cancel_grace_seconds=row.cancel_grace_seconds,
            max_request_bytes=row.max_request_bytes,
            open=row.open,
            shared_history=row.shared_history,
            idempotent_sends=row.idempotent_sends,
            updated_at=row.updated_at,
            input_modes=MediaTypes.of([*row.default_input_modes, *(m for s in skills for m in s.input_modes)]),
            output_modes=MediaTypes.of([*row.default_output_modes, *(m for s in skills for m in s.output_modes)]),
            slot=slot,
        )


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One API key that may be used now or until `expires_at`."""

    id: int
    owner: str
    expires_at: datetime | None
