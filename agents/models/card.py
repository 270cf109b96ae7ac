"""What a card lists besides the agent's own fields: skills, extensions, notes for some callers."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from agents.models.agent import Agent
from agents.validators import validate_media_types, validate_not_blank, validate_params, validate_texts


class Skill(models.Model):
    """One skill on an agent's card (§4.4.5)."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="skills")
    position = models.PositiveIntegerField(default=0, help_text="Order on the card, smallest first.")
    skill_id = models.CharField(
        "id", max_length=100, validators=[validate_not_blank], help_text="Unique in this agent, such as order-status."
    )
    name = models.CharField(max_length=200, validators=[validate_not_blank])
    description = models.TextField(validators=[validate_not_blank])
    tags = models.JSONField(default=list, validators=[validate_texts], help_text="Keywords, at least one.")
    examples = models.JSONField(
        default=list, blank=True, validators=[validate_texts], help_text="Messages that this skill answers."
    )
    input_modes = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_media_types],
        help_text="Media types instead of the agent's. The agent takes what any of its skills takes.",
    )
    output_modes = models.JSONField(
        default=list, blank=True, validators=[validate_media_types], help_text="Media types instead of the agent's."
    )

    groups = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_texts],
        help_text="Empty: on every card. Otherwise only on the extended card of callers whose key is in one of these "
        "groups; * stands for every key.",
    )

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["agent", "skill_id"], name="agents_skill_once")]

    def __str__(self) -> str:
        return self.name


class AgentExtension(models.Model):
    """An extension of the protocol that an agent supports or requires (§4.4.4)."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="extensions")
    position = models.PositiveIntegerField(default=0, help_text="Order on the card, smallest first.")
    uri = models.CharField(
        "URI",
        max_length=500,
        validators=[
            RegexValidator(
                r"^[A-Za-z][A-Za-z0-9+.-]*:[!-+\--~]+\Z",
                "Use a URI, such as https://example.com/extensions/geo/v1: no white space, no comma, ASCII only.",
            )
        ],
        help_text="Name with version. Callers repeat it, to the letter, in A2A-Extensions.",
    )
    description = models.TextField(blank=True, help_text="How the agent uses the extension.")
    required = models.BooleanField(
        default=False, help_text="Messages of callers that do not name the extension are refused."
    )
    params = models.JSONField(
        default=dict, blank=True, validators=[validate_params], help_text="A JSON object, as the extension defines it."
    )

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.UniqueConstraint(fields=["agent", "uri"], name="agents_extension_once")]

    def __str__(self) -> str:
        return self.uri


class CardNote(models.Model):
    """A paragraph that some callers find at the end of the description, on the extended card (§3.1.11)."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="notes")
    position = models.PositiveIntegerField(default=0, help_text="Order on the card, smallest first.")
    text = models.TextField(validators=[validate_not_blank])
    groups = models.JSONField(
        default=list,
        blank=True,
        validators=[validate_texts],
        help_text="Only for callers whose key is in one of these groups. Empty: for every key.",
    )

    class Meta:
        ordering = ["position", "id"]
        verbose_name = "note on the extended card"
        verbose_name_plural = "notes on the extended card"

    def __str__(self) -> str:
        return self.text if len(self.text) <= 60 else f"{self.text[:59]}…"
