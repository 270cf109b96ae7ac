"""The keys that sign cards (§8.4)."""

from __future__ import annotations

from django.db import models


class SigningKey(models.Model):
    """A key pair. The private half is a token of `agents.secrets`, and wiped when the key is retired."""

    class Algorithm(models.TextChoices):
        """JWS algorithms (RFC 7518 §3.1)."""

        ES256 = "ES256", "ES256 (ECDSA, P-256)"
        RS256 = "RS256", "RS256 (RSA, 3072 bits)"

    class State(models.TextChoices):
        NEXT = "next", "Next"
        ACTIVE = "active", "Active"
        RETIRED = "retired", "Retired"

    kid = models.CharField("key id", max_length=64, unique=True, editable=False)
    algorithm = models.CharField(max_length=10, choices=Algorithm.choices, default=Algorithm.ES256)
    state = models.CharField(max_length=10, choices=State.choices, default=State.NEXT, editable=False)
    private_key = models.TextField(blank=True, editable=False)
    public_jwk = models.JSONField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    activated_at = models.DateTimeField(null=True, blank=True, editable=False)
    retired_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=models.Q(state__in=["active", "next"]), name="agents_signing_key_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.algorithm} {self.kid[:8]}…"
