"""Versions, extensions, extended cards, the agent at the host root, and keys that sign cards.

Triggers announce changes and move Last-Modified as those of 0002 do. The active signing key is a part of every card
that is signed, so its change moves the Last-Modified of those.
"""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import agents.validators

KEY_COLUMNS = "name, owner, prefix, digest, enabled, expires_at"

FORWARDS = f"""
DROP TRIGGER agents_announce ON agents_apikey;
CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OF {KEY_COLUMNS}, groups OR DELETE OR TRUNCATE ON agents_apikey
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();
CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON agents_agentextension
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();
CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON agents_cardnote
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();
CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON agents_signingkey
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();

CREATE TRIGGER agents_touch AFTER INSERT OR UPDATE OR DELETE ON agents_agentextension
    FOR EACH ROW EXECUTE FUNCTION agents_skill_touch();

CREATE FUNCTION agents_signing_key_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agents_agent SET updated_at = now() WHERE sign_card;
    RETURN NULL;
END $$;
CREATE TRIGGER agents_touch AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON agents_signingkey
    FOR EACH STATEMENT EXECUTE FUNCTION agents_signing_key_touch();
"""

BACKWARDS = f"""
DROP TRIGGER agents_touch ON agents_signingkey;
DROP FUNCTION agents_signing_key_touch();
DROP TRIGGER agents_touch ON agents_agentextension;
DROP TRIGGER agents_announce ON agents_signingkey;
DROP TRIGGER agents_announce ON agents_cardnote;
DROP TRIGGER agents_announce ON agents_agentextension;
DROP TRIGGER agents_announce ON agents_apikey;
CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OF {KEY_COLUMNS} OR DELETE OR TRUNCATE ON agents_apikey
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_announce"),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentExtension",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField(default=0, help_text="Order on the card, smallest first.")),
                (
                    "uri",
                    models.CharField(
                        help_text="Name with version. Callers repeat it, to the letter, in A2A-Extensions.",
                        max_length=500,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z][A-Za-z0-9+.-]*:[!-+\\--~]+\\Z",
                                "Use a URI, such as https://example.com/extensions/geo/v1: no white space, no comma, ASCII only.",
                            )
                        ],
                        verbose_name="URI",
                    ),
                ),
                ("description", models.TextField(blank=True, help_text="How the agent uses the extension.")),
                (
                    "required",
                    models.BooleanField(
                        default=False, help_text="Messages of callers that do not name the extension are refused."
                    ),
                ),
                (
                    "params",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="A JSON object, as the extension defines it.",
                        validators=[agents.validators.validate_params],
                    ),
                ),
            ],
            options={
                "ordering": ["position", "id"],
            },
        ),
        migrations.CreateModel(
            name="CardNote",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField(default=0, help_text="Order on the card, smallest first.")),
                ("text", models.TextField(validators=[agents.validators.validate_not_blank])),
                (
                    "groups",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Only for callers whose key is in one of these groups. Empty: for every key.",
                        validators=[agents.validators.validate_texts],
                    ),
                ),
            ],
            options={
                "verbose_name": "note on the extended card",
                "verbose_name_plural": "notes on the extended card",
                "ordering": ["position", "id"],
            },
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kid", models.CharField(editable=False, max_length=64, unique=True, verbose_name="key id")),
                (
                    "algorithm",
                    models.CharField(
                        choices=[("ES256", "ES256 (ECDSA, P-256)"), ("RS256", "RS256 (RSA, 3072 bits)")],
                        default="ES256",
                        max_length=10,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("next", "Next"), ("active", "Active"), ("retired", "Retired")],
                        default="next",
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("private_key", models.TextField(blank=True, editable=False)),
                ("public_jwk", models.JSONField(editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("activated_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("retired_at", models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.AddField(
            model_name="agent",
            name="extended_card",
            field=models.BooleanField(
                default=False,
                help_text="Callers with a key may get a card that also has the notes below and the skills of their groups.",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="is_root",
            field=models.BooleanField(
                default=False,
                help_text="The agent also answers at the host's own address, without /agents/SLUG. One agent at most.",
                verbose_name="at the host root",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="sign_card",
            field=models.BooleanField(
                default=True, help_text="Sign the cards with the host's active signing key, if there is one."
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="versions",
            field=models.CharField(
                choices=[("both", "1.0 and 0.3, in one card"), ("1.0", "1.0 only"), ("0.3", "0.3 only")],
                default="both",
                help_text="Versions of A2A that the agent is served in. A request in another one is refused.",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="groups",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="Groups of the caller; they decide what the extended cards of agents show.",
                validators=[agents.validators.validate_texts],
            ),
        ),
        migrations.AddField(
            model_name="skill",
            name="groups",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="Empty: on every card. Otherwise only on the extended card of callers whose key is in one of these groups; * stands for every key.",
                validators=[agents.validators.validate_texts],
            ),
        ),
        migrations.AddConstraint(
            model_name="agent",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_root", True)), fields=("is_root",), name="agents_one_root"
            ),
        ),
        migrations.AddField(
            model_name="agentextension",
            name="agent",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="extensions", to="agents.agent"
            ),
        ),
        migrations.AddField(
            model_name="cardnote",
            name="agent",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="notes", to="agents.agent"
            ),
        ),
        migrations.AddConstraint(
            model_name="signingkey",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["active", "next"])), fields=("state",), name="agents_signing_key_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="agentextension",
            constraint=models.UniqueConstraint(fields=("agent", "uri"), name="agents_extension_once"),
        ),
        migrations.RunSQL(FORWARDS, BACKWARDS),
    ]
