"""Making and changing agents by program: what the admin's form does, for commands and the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import connection, transaction
from django.db.models import Model

from agents.models import SLUG_MAX, Agent, AgentExtension, CardNote, Skill
from agents.runtimes import factory
from agents.runtimes.errors import ExecutorError
from agents.runtimes.simulators import SIMULATORS

Rows = Sequence[Mapping[str, Any]]

# One registration at a time: two processes that seed one database must not both miss the same row.
_LOCK = 0x413241


@transaction.atomic
def register_agent(
    slug: str,
    values: Mapping[str, Any],
    skills: Rows | None = None,
    extensions: Rows | None = None,
    notes: Rows | None = None,
) -> tuple[Agent, bool]:
    """Create the agent `slug`, or change the fields named in `values` of the one that is there.

    `values`, `skills`, `extensions` and `notes` go by the models' field names; the last three, when given, replace all
    of their kind. A new agent gets a name from its slug, a description from its code and one skill, where they are not
    given. Returns the agent and whether it is new. Raises ValidationError, whose keys are fields or one of the three;
    then nothing is stored.
    """
    lock_registration()
    agent = Agent.objects.filter(slug=slug).first()
    created = agent is None
    if agent is None:
        agent = Agent(slug=slug)
        values = _defaults(slug, values) | dict(values)
        skills = skills or [_default_skill(slug, values)]
    for name, value in values.items():
        setattr(agent, name, value)
    agent.full_clean()
    agent.save()
    if skills is not None:
        check_skills([skill.get("groups") for skill in skills])
    for kind, rows in ((Skill, skills), (AgentExtension, extensions), (CardNote, notes)):
        if rows is not None:
            _replace(kind, agent, rows)
    return agent, created


@transaction.atomic
def clone_agent(agent: Agent) -> Agent:
    """A disabled copy with all that is on its card; its slug is the first free of `<slug>-copy`, `<slug>-copy-2`, …"""
    lock_registration()
    parts: list[Skill | AgentExtension | CardNote] = [*agent.skills.all(), *agent.extensions.all(), *agent.notes.all()]
    copy = Agent.objects.get(pk=agent.pk)
    copy.pk, copy.slug, copy.enabled, copy.is_root = None, _free_slug(agent.slug), False, False
    copy._state.adding = True
    copy.save()
    for part in parts:
        part.pk, part.agent = None, copy
        part._state.adding = True
        part.save()
    return copy


def set_enabled(agent: Agent, enabled: bool) -> bool:
    """Show an agent to callers or hide it; returns whether that changed anything."""
    return bool(Agent.objects.filter(pk=agent.pk).exclude(enabled=enabled).update(enabled=enabled))


def lock_registration() -> None:
    """Wait for the registrations of other processes. Held until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def title(slug: str) -> str:
    """`order-status` -> `Order status`."""
    return slug.replace("-", " ").replace("_", " ").strip().capitalize()


def one_line(error: ValidationError) -> str:
    """`executor: There is no module x. name: This field cannot be blank.`"""
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return " ".join(
        text if name == NON_FIELD_ERRORS else f"{name}: {text}"
        for name, texts in error.message_dict.items()
        for text in texts
    )


def _free_slug(slug: str) -> str:
    for number in count(1):
        suffix = "-copy" if number == 1 else f"-copy-{number}"
        free = slug[: SLUG_MAX - len(suffix)] + suffix
        if not Agent.objects.filter(slug=free).exists():
            break
    return free


def _defaults(slug: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a new agent says where its maker said nothing."""
    name = values.get("name") or title(slug)
    kind, executor = values.get("kind", Agent.Kind.PYTHON), values.get("executor", "")
    defaults: dict[str, Any] = {"name": name, "description": _summary(kind, executor) or name}
    if kind == Agent.Kind.SIMULATOR and executor in SIMULATORS:
        defaults["default_input_modes"] = list(SIMULATORS[executor].input_modes)
        defaults["default_output_modes"] = list(SIMULATORS[executor].output_modes)
    return defaults


def _summary(kind: str, executor: str) -> str:
    try:
        return factory.summarize(kind, executor)
    except ExecutorError:
        return ""  # full_clean says what is wrong with it


def _default_skill(slug: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A card needs a skill (§4.4.1): the agent as a whole."""
    simulator = SIMULATORS.get(values.get("executor", "")) if values.get("kind") == Agent.Kind.SIMULATOR else None
    return {
        "skill_id": slug,
        "name": values["name"],
        "description": values["description"],
        "tags": ["simulator", values["executor"]] if simulator else [slug],
        "examples": [simulator.example] if simulator else [],
    }


def check_skills(groups: Sequence[Any]) -> None:
    """A card needs a skill (§4.4.1), and the public card has only those without groups. Raises ValidationError."""
    if not groups:
        raise ValidationError({"skills": "An agent needs at least one skill."})
    if all(groups):
        raise ValidationError({"skills": "An agent needs at least one skill without groups, for its public card."})


_PARTS: dict[type[Model], tuple[str, str]] = {
    Skill: ("skills", "skill_id"),
    AgentExtension: ("extensions", "uri"),
    CardNote: ("notes", "text"),
}


def _replace(kind: type[Skill | AgentExtension | CardNote], agent: Agent, rows: Rows) -> None:
    field, name = _PARTS[kind]
    getattr(agent, field).all().delete()
    for position, values in enumerate(rows):
        part = kind(agent=agent, position=position, **values)
        try:
            part.full_clean()
        except ValidationError as error:
            raise ValidationError({field: f"{getattr(part, name)}: {one_line(error)}"}) from error
        part.save()
