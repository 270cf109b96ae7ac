"""manage.py agent, apikey and seed."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.keys import hash_key
from agents.models import Agent, ApiKey, SigningKey, Skill

pytestmark = pytest.mark.django_db
GREETER = "tests.agents.executors.Greeter"


def run(*arguments: str, **options: Any) -> list[str]:
    """Lines that a command prints."""
    out = StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue().splitlines()


def fail(*arguments: str) -> str:
    """What a command that fails says in its one line; manage.py ends with exit code 1."""
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    assert caught.value.returncode == 1
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestRegister:
    def test_defaults(self) -> None:
        lines = run("agent", "register", "order-helper", "--executor", GREETER)
        assert lines == [f"Registered order-helper: {GREETER}, /agents/order-helper, API key."]
        agent = Agent.objects.get()
        assert (agent.name, agent.description) == (
            "Order helper",
            "The shape of the SDK's samples: a Task for new ones, then an updater.",
        )
        assert (agent.kind, agent.executor, agent.execution) == ("python", GREETER, "web")
        assert (agent.enabled, agent.streaming, agent.push_notifications, agent.idempotent_sends) == (True,) * 4
        assert (agent.open, agent.shared_history) == (False, False)
        assert (agent.default_input_modes, agent.default_output_modes) == (["text/plain"], ["text/plain"])
        skill = agent.skills.get()
        assert (skill.skill_id, skill.name, skill.tags) == ("order-helper", "Order helper", ["order-helper"])
        assert skill.description == agent.description

    def test_every_option(self) -> None:
        run(
            *("agent", "register", "a", "--executor", GREETER, "--execution", "worker", "--open"),
            *("--name", "N", "--description", "D", "--version", "2", "--documentation-url", "https://e.test/d"),
            *("--icon-url", "https://e.test/i", "--provider", "Acme", "--provider-url", "https://e.test"),
            *("--timeout", "60", "--cancel-grace", "2", "--max-request-bytes", "2048"),
            *("--deadline", "70", "--answer-within", "80", "--max-task-bytes", "4096", "--max-stored-bytes", "8192"),
            *("--keep-completed", "1", "--keep-failed", "2", "--keep-canceled", "3", "--keep-rejected", "4"),
            *("--large-parts", "url"),
            *("--no-streaming", "--no-push", "--no-idempotent", "--no-enabled"),
            *("--versions", "1.0", "--extended-card", "--no-sign-card", "--root"),
            *("--input-mode", "text/plain", "--input-mode", "image/*", "--output-mode", "application/json"),
            *("--skill", "ask:Ask me:Answers: all of them", "--skill", "just-id", "--skill", "named:Named"),
        )
        agent = Agent.objects.get()
        values = {name: value for name, value in vars(agent).items() if name not in {"_state", "id"}}
        assert values == {
            "slug": "a",
            "enabled": False,
            "name": "N",
            "description": "D",
            "version": "2",
            "documentation_url": "https://e.test/d",
            "icon_url": "https://e.test/i",
            "provider_organization": "Acme",
            "provider_url": "https://e.test",
            "default_input_modes": ["text/plain", "image/*"],
            "default_output_modes": ["application/json"],
            "streaming": False,
            "push_notifications": False,
            "kind": "python",
            "executor": GREETER,
            "execution": "worker",
            "timeout_seconds": 60,
            "cancel_grace_seconds": 2,
            "max_request_bytes": 2048,
            "deadline_seconds": 70,
            "max_retries": 0,
            "answer_within_seconds": 80,
            "large_parts": "url",
            "max_task_bytes": 4096,
            "max_stored_bytes": 8192,
            "keep_completed_days": 1,
            "keep_failed_days": 2,
            "keep_canceled_days": 3,
            "keep_rejected_days": 4,
            "open": True,
            "shared_history": True,
            "idempotent_sends": False,
            "versions": "1.0",
            "extended_card": True,
            "sign_card": False,
            "is_root": True,
            "created_at": agent.created_at,
            "updated_at": agent.updated_at,
        }
        assert list(agent.skills.values_list("skill_id", "name", "description", "tags")) == [
            ("ask", "Ask me", "Answers: all of them", ["ask"]),
            ("just-id", "Just id", "Just id", ["just-id"]),
            ("named", "Named", "Named", ["named"]),
        ]

    def test_parts_of_the_card(self) -> None:
        run(
            *("agent", "register", "a", "--executor", GREETER),
            *("--skill", "ask", "--skill-for", "staff, ops=more:More:All = more", "--skill-for", "*=known"),
            *("--note", "For all.", "--note-for", "staff=a=b"),
            *("--extension", "urn:x:1", "--required-extension", "urn:y"),
        )
        agent = Agent.objects.get()
        assert list(agent.skills.values_list("skill_id", "name", "description", "groups")) == [
            ("ask", "Ask", "Ask", []),
            ("more", "More", "All = more", ["staff", "ops"]),
            ("known", "Known", "Known", ["*"]),
        ]
        assert list(agent.notes.values_list("text", "groups")) == [("For all.", []), ("a=b", ["staff"])]
        assert list(agent.extensions.values_list("uri", "required")) == [("urn:x:1", False), ("urn:y", True)]
        run("agent", "register", "a", "--note", "New.")
        assert list(agent.notes.values_list("text", flat=True)) == ["New."]
        assert agent.skills.count() == 3
        assert agent.extensions.count() == 2

    @pytest.mark.parametrize(
        ("option", "value", "error"),
        [
            ("--skill-for", "staff=more", "skills: An agent needs at least one skill without groups"),
            ("--skill-for", "more", "skill-for: Give GROUP=..., not more"),
            ("--note-for", "=more", "note-for: Give GROUP=..., not =more"),
            ("--note", " ", "notes:  : text: This field cannot be blank."),
            ("--extension", "no uri", "extensions: no uri: uri: Use a URI"),
            ("--required-extension", "urn:a,b", "extensions: urn:a,b: uri: Use a URI"),
        ],
    )
    def test_parts_that_break_a_rule(self, option: str, value: str, error: str) -> None:
        assert fail("agent", "register", "a", "--executor", GREETER, option, value).startswith(error)
        assert not Agent.objects.exists()

    def test_again_changes_what_is_given_and_nothing_else(self) -> None:
        run("agent", "register", "a", "--executor", GREETER, "--open", "--name", "Old", "--skill", "s:S")
        lines = run("agent", "register", "a", "--name", "New")
        assert lines == [f"Updated a: {GREETER}, /agents/a, open."]
        agent = Agent.objects.get()
        assert (agent.name, agent.open, agent.shared_history) == ("New", True, True)
        assert agent.skills.get().skill_id == "s"
        run("agent", "register", "a", "--no-open", "--skill", "t:T")
        agent.refresh_from_db()
        assert (agent.open, agent.shared_history) == (False, False)
        assert agent.skills.get().skill_id == "t"

    def test_simulator(self) -> None:
        run("agent", "register", "my-data", "--simulator", "data", "--open", "--no-shared-history")
        agent = Agent.objects.get()
        assert (agent.kind, agent.executor, agent.default_input_modes) == ("simulator", "data", ["*/*"])
        assert (agent.open, agent.shared_history) == (True, False)
        assert agent.skills.get().tags == ["simulator", "data"]

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (
                ["a", "--executor", "nope.Agent"],
                "executor: There is no module nope on the import path (see AGENTS_DIR).",
            ),
            (["a"], "executor: This field cannot be blank."),
            (
                ["A b", "--simulator", "echo"],
                "slug: Use 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends.",
            ),
            (
                ["a", "--simulator", "echo", "--input-mode", "text"],
                "default_input_modes: text is not a media type such as text/plain.",
            ),
            (
                ["a", "--simulator", "echo", "--timeout", "0"],
                "timeout_seconds: Ensure this value is greater than or equal to 1.",
            ),
            (
                ["a", "--simulator", "echo", "--skill", "s", "--skill", "s"],
                "skills: s: Skill with this Agent and Id already exists.",
            ),
        ],
    )
    def test_errors_name_the_field(self, arguments: list[str], text: str) -> None:
        assert fail("agent", "register", *arguments) == text
        assert not Agent.objects.exists()


class TestSwitches:
    def test_disable_and_enable(self) -> None:
        run("agent", "register", "a", "--simulator", "echo")
        assert run("agent", "disable", "a") == ["a is disabled."]
        assert not Agent.objects.get().enabled
        assert run("agent", "enable", "a") == ["a is enabled."]
        assert Agent.objects.get().enabled

    def test_unknown_agent(self) -> None:
        assert fail("agent", "enable", "nobody") == "slug: There is no agent nobody."

    def test_list(self) -> None:
        run("agent", "register", "b", "--simulator", "echo", "--open")
        run("agent", "register", "a", "--executor", GREETER, "--execution", "worker", "--no-enabled")
        assert [line.split() for line in run("agent", "list")] == [
            ["a", "disabled", "worker", "API", "key", "python", GREETER],
            ["b", "enabled", "web", "open", "simulator", "echo"],
        ]


class TestApiKey:
    def test_the_key_is_the_last_line(self) -> None:
        lines = run("apikey", "create", "laptop", "--owner", "alice", "--expires-days", "30")
        row = ApiKey.objects.get()
        assert hash_key(lines[-1]) == row.digest
        assert (row.name, row.owner) == ("laptop", "alice")
        assert row.expires_at is not None
        assert abs(row.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=5)
        assert lines[:-1] == [
            f"API key laptop for owner alice, until {row.expires_at:%Y-%m-%d %H:%M} UTC. It is not shown again:"
        ]

    def test_groups(self) -> None:
        run("apikey", "create", "laptop", "--group", "staff", "--group", "ops")
        assert ApiKey.objects.get().groups == ["staff", "ops"]

    def test_owner_is_the_name_by_default(self) -> None:
        assert run("apikey", "create", "laptop")[0] == "API key laptop for owner laptop. It is not shown again:"

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["x", "--owner", "anonymous"], "owner: The owner anonymous is reserved for callers without a key."),
            (["taken"], "name: API key with this Name already exists."),
            ([""], "name: This field cannot be blank. An API key needs an owner other than anonymous."),
            (["x", "--expires-days", "0"], "expires-days: Give 1 to 36500."),
        ],
    )
    def test_errors_name_the_field(self, arguments: list[str], text: str) -> None:
        ApiKey.issue("taken")
        assert fail("apikey", "create", *arguments) == text
        assert ApiKey.objects.count() == 1

    def test_list_and_disable(self) -> None:
        for name, expires_at in (("a", None), ("b", timezone.now()), ("c", None)):
            ApiKey.issue(name, "alice", expires_at, key=f"{name}2a_0123456789012345678901234567")
        assert run("apikey", "disable", "c") == ["c is disabled."]
        assert [line.split() for line in run("apikey", "list")] == [
            ["a", "usable", "a2a_0123", "never", "used", "alice"],
            ["b", "expired", "b2a_0123", "never", "used", "alice"],
            ["c", "disabled", "c2a_0123", "never", "used", "alice"],
        ]
        assert fail("apikey", "disable", "d") == "name: There is no API key d."


class TestSeed:
    KEY = "a2a_0123456789012345678901234567"

    def test_new_installation(self, settings: Settings) -> None:
        settings.HOST = "127.0.0.1"
        run("seed", api_key=self.KEY)
        simulators = ["ask", "auth", "boom", "data", "direct", "echo", "hold", "reject", "relay", "steps", "wait"]
        in_web = Agent.objects.filter(execution="web", open=True, shared_history=True, kind="simulator", enabled=True)
        assert [agent.slug for agent in in_web] == simulators
        assert [agent.executor for agent in in_web] == simulators
        in_workers = Agent.objects.filter(execution="worker", open=True, shared_history=True)
        assert [(agent.slug, agent.executor) for agent in in_workers] == [
            ("hold-worker", "hold"),
            ("steps-worker", "steps"),
            ("wait-worker", "wait"),
        ]
        key = ApiKey.objects.get()
        assert (key.name, key.owner, key.digest, key.usable) == ("default", "admin", hash_key(self.KEY), True)

    def test_order_agent(self) -> None:
        run("seed")
        agent = Agent.objects.get(slug="order-agent")
        assert (agent.name, agent.description, agent.executor) == ("order-agent", "处理订单查询与退款", "echo")
        assert (agent.open, agent.streaming, agent.push_notifications) == (False, True, False)
        skill = agent.skills.get()
        assert (skill.skill_id, skill.name, skill.description) == ("order-status", "订单查询", "按订单号查询状态")
        assert (skill.tags, skill.examples) == (["order"], ["查询订单 123"])

    @pytest.mark.parametrize(("agent", "modes"), [("echo", ["text/plain"]), ("data", ["*/*"])])
    def test_media_types(self, agent: str, modes: list[str]) -> None:
        run("seed")
        assert Agent.objects.get(slug=agent).default_input_modes == modes

    @pytest.mark.parametrize(
        ("host", "is_open"),
        [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("10.0.0.1", False), ("", False)],
    )
    def test_open_on_loopback_only(self, settings: Settings, host: str, is_open: bool) -> None:
        settings.HOST = host
        run("seed")
        echo = Agent.objects.get(slug="echo")
        assert (echo.open, echo.shared_history) == (is_open, is_open)

    def test_again_creates_what_is_missing_and_changes_nothing(self) -> None:
        run("seed", api_key=self.KEY)
        Agent.objects.filter(slug="echo").update(name="Mine", enabled=False, open=False)
        Agent.objects.filter(slug="data").delete()
        Skill.objects.filter(agent__slug="ask").update(name="Mine")
        ApiKey.objects.update(enabled=False, name="renamed")
        before = list(Agent.objects.order_by("pk").values())
        assert run("seed", api_key=self.KEY) == ["Seeded data."]
        assert list(Agent.objects.exclude(slug="data").order_by("pk").values()) == before
        assert Skill.objects.get(agent__slug="ask").name == "Mine"
        assert (ApiKey.objects.get().enabled, ApiKey.objects.get().name) == (False, "renamed")
        assert run("seed", api_key=self.KEY) == ["Nothing to seed."]
        assert run("seed", verbosity=0) == []

    def test_second_installation_on_the_same_database(self) -> None:
        run("seed", api_key=self.KEY)
        other = "a2a_other6789012345678901234567"
        assert run("seed", api_key=other) == ["Seeded an API key."]
        assert list(ApiKey.objects.values_list("name", "owner", "digest")) == [
            ("default", "admin", hash_key(self.KEY)),
            ("default a2a_othe", "admin", hash_key(other)),
        ]


class TestSigningKey:
    def test_a_life(self) -> None:
        (first,) = run("signingkey", "generate")
        (second,) = run("signingkey", "generate", "--algorithm", "RS256")
        kid, other = first.split()[0], second.split()[0]
        assert (first, second) == (f"{kid} ES256 active", f"{other} RS256 next")
        assert fail("signingkey", "generate") == "There is a next key already. Rotate, and it signs."
        assert run("signingkey", "rotate") == [f"{other} RS256 active"]
        assert run("signingkey", "list") == [f"{other} RS256 active", f"{kid} ES256 retired"]
        assert run("signingkey", "retire", other[:8]) == [f"{other} RS256 retired"]

    def test_errors(self, settings: Settings) -> None:
        assert fail("signingkey", "rotate") == "There is no signing key yet. Generate one."
        assert fail("signingkey", "retire", "x") == "kid: 0 keys start with x."
        settings.ENCRYPTION_KEYS = ["no key"]
        assert fail("signingkey", "generate").startswith("ENCRYPTION_KEYS must hold Fernet keys")
        assert not SigningKey.objects.exists()
