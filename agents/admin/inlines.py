"""What a card lists, as parts of the agent's form."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.http import HttpRequest

from agents.admin_base import InlineFormSet, PlainFields, StackedInline
from agents.models import Agent, AgentExtension, CardNote, Skill


class SkillFormSet(InlineFormSet):
    """A card needs a skill (§4.4.1)."""

    default_error_messages = {
        **InlineFormSet.default_error_messages,
        "too_few_forms": "An agent needs at least one skill.",
    }

    def clean(self) -> None:
        """The public card has only skills without groups."""
        super().clean()
        kept = [form.cleaned_data for form in self.forms if form.is_valid() and form not in self.deleted_forms]
        if any(kept) and all(skill["groups"] for skill in kept if skill):
            raise ValidationError("An agent needs at least one skill without groups, for its public card.")


class SkillInline(PlainFields, StackedInline[Skill, Agent]):
    """The skills on the card."""

    model = Skill
    formset = SkillFormSet
    extra = 0
    min_num = 1
    fields = (
        ("skill_id", "name"),
        "description",
        ("tags", "examples"),
        ("input_modes", "output_modes"),
        "groups",
        "position",
    )
    ordering_field = "position"
    hide_ordering_field = True

    def get_formset(self, request: HttpRequest, obj: Agent | None = None, **kwargs: Any) -> Any:
        """The forms, of which one at least must be filled in."""
        return super().get_formset(request, obj, validate_min=True, **kwargs)


class ExtensionInline(PlainFields, StackedInline[AgentExtension, Agent]):
    """The extensions on the card (§4.4.4)."""

    model = AgentExtension
    extra = 0
    verbose_name = "extension of the protocol"
    verbose_name_plural = "extensions of the protocol"
    fields = (("uri", "required"), ("description", "params"), "position")
    ordering_field = "position"
    hide_ordering_field = True


class NoteInline(PlainFields, StackedInline[CardNote, Agent]):
    """Paragraphs of the extended card."""

    model = CardNote
    extra = 0
    fields = (("text", "groups"), "position")
    ordering_field = "position"
    hide_ordering_field = True
