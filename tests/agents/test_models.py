"""What may be saved: every refusal names its field."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from agents.keys import hash_key
from agents.models import Agent, ApiKey, Skill
from agents.registration import clone_agent, register_agent
from tests.agents.conftest import ECHO, make_agent

pytestmark = pytest.mark.django_db
EXECUTORS = "tests.agents.executors"


def errors_of(**values: Any) -> dict[str, list[str]]:
    """What a new agent with these fields is refused for; nothing is stored then."""
    with pytest.raises(ValidationError) as caught:
        register_agent("agent", ECHO | values)
    assert not Agent.objects.exists()
    return caught.value.message_dict


@pytest.mark.parametrize("slug", ["", "-a", "a-", "A", "a b", "a/b", "a" * 64, "ü", "a\n"])
def test_bad_slug(slug: str) -> None:
    with pytest.raises(ValidationError) as caught:
        register_agent(slug, ECHO | {"name": "x"})
    assert list(caught.value.message_dict) == ["slug"] or slug == ""
    assert "slug" in caught.value.message_dict


@pytest.mark.parametrize("slug", ["a", "a" * 63, "0-9"])
def test_good_slug(slug: str) -> None:
    assert make_agent(slug).slug == slug


def test_one_agent_is_at_the_host_root() -> None:
    root = make_agent("first", is_root=True)
    with pytest.raises(ValidationError) as caught:
        make_agent("second", is_root=True)
    assert caught.value.message_dict == {"is_root": ["The agent first is there. Only one can be."]}
    assert [agent.slug for agent in Agent.objects.all()] == ["first"]
    root.full_clean()
    make_agent("second")
    with pytest.raises(IntegrityError, match="agents_one_root"), transaction.atomic():
        Agent.objects.update(is_root=True)


def test_versions_are_those_of_the_list() -> None:
    assert errors_of(versions="2.0") == {"versions": ["Value '2.0' is not a valid choice."]}


@pytest.mark.spec("4.4.1")
@pytest.mark.parametrize("field", ["name", "description", "version"])
def test_card_texts_are_not_blank(field: str) -> None:
    assert errors_of(**{field: ""}) == {field: ["This field cannot be blank."]}
    assert errors_of(**{field: "  "}) == {field: ["This field cannot be blank."]}


@pytest.mark.parametrize("field", ["default_input_modes", "default_output_modes"])
@pytest.mark.parametrize(
    ("modes", "text"),
    [
        ([], "This field cannot be blank."),
        ("text/plain", "Give a list of texts, none of them empty."),
        ([1], "Give a list of texts, none of them empty."),
        ([""], "Give a list of texts, none of them empty."),
        (["text"], "text is not a media type such as text/plain."),
        (["text/"], "text/ is not a media type such as text/plain."),
        (["text/plain", "a/b/c"], "a/b/c is not a media type such as text/plain."),
    ],
)
def test_bad_modes(field: str, modes: Any, text: str) -> None:
    assert errors_of(**{field: modes}) == {field: [text]}


@pytest.mark.parametrize("mode", ["*/*", "image/*", "text/plain; charset=utf-8", 'a/b;x="y z"', "application/a2a+json"])
def test_good_modes(mode: str) -> None:
    assert make_agent(default_input_modes=[mode]).default_input_modes == [mode]


@pytest.mark.parametrize(
    ("executor", "text"),
    [
        ("", "This field cannot be blank."),
        ("Class", "Give the dotted path of a class, such as package.module.Class."),
        ("a..B", "Give the dotted path of a class, such as package.module.Class."),
        ("no_such_module.Agent", "There is no module no_such_module on the import path (see AGENTS_DIR)."),
        ("json.no_such.Agent", "There is no module json.no_such on the import path (see AGENTS_DIR)."),
        (f"{EXECUTORS}.Missing", f"Module {EXECUTORS} has no class Missing."),
        ("json.dumps", "json.dumps is not a subclass of a2a.server.agent_execution.AgentExecutor."),
        ("json.JSONDecoder", "json.JSONDecoder is not a subclass of a2a.server.agent_execution.AgentExecutor."),
        (f"{EXECUTORS}.WithoutCancel", f"{EXECUTORS}.WithoutCancel does not implement cancel."),
        (
            f"{EXECUTORS}.NeedsArguments",
            "NeedsArguments() raises TypeError: NeedsArguments.__init__() missing 1 required positional argument: "
            "'model'",
        ),
        (f"{EXECUTORS}.NeedsEnvironment", "NeedsEnvironment() raises KeyError: 'MODEL_KEY'"),
        (f"{EXECUTORS}.ExitsOnConstruction", "ExitsOnConstruction() raises SystemExit: no model"),
        (
            "tests.agents.broken.missing_import.Agent",
            "Importing tests.agents.broken.missing_import raises ModuleNotFoundError: No module named "
            "'no_such_dependency'",
        ),
        (
            "tests.agents.broken.raises.Agent",
            "Importing tests.agents.broken.raises raises RuntimeError: cannot reach the model",
        ),
        ("tests.agents.broken.exits.Agent", "Importing tests.agents.broken.exits raises SystemExit"),
        (
            "tests.agents.broken.bad_name.Agent",
            "Importing tests.agents.broken.bad_name raises ImportError: cannot import name 'no_such_name' from "
            "'tests.agents.support'",
        ),
    ],
)
def test_bad_executor(executor: str, text: str) -> None:
    assert errors_of(kind="python", executor=executor) == {"executor": [text]}


def test_unknown_simulator() -> None:
    known = "echo, data, steps, hold, ask, auth, direct, boom, reject, wait, relay"
    assert errors_of(executor="ecko") == {"executor": [f"There is no simulator 'ecko'. There are: {known}."]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "llm"),
        ("execution", "thread"),
        ("timeout_seconds", 0),
        ("timeout_seconds", 604801),
        ("cancel_grace_seconds", 301),
        ("max_request_bytes", 1023),
        ("documentation_url", "javascript:alert(1)"),
        ("icon_url", "ftp://e.test/x"),
        ("provider_url", "not a url"),
    ],
)
def test_bad_field(field: str, value: Any) -> None:
    assert list(errors_of(**{field: value})) == [field]


def test_only_code_that_says_so_is_repeated() -> None:
    """Simulators do. The error names the field, also when it is the code that is changed."""
    repeatable, other = f"{EXECUTORS}.Repeatable", f"{EXECUTORS}.Greeter"
    for kind, executor in (("simulator", "echo"), ("python", repeatable)):
        agent, _ = register_agent("a", {"kind": kind, "executor": executor, "max_retries": 20})
        assert agent.max_retries == 20
    for values in ({"executor": other}, {"executor": other, "max_retries": 1}):
        with pytest.raises(ValidationError) as raised:
            register_agent("a", values)
        assert raised.value.message_dict == {
            "max_retries": [f"{other} does not say `repeatable = True`, so its lost runs are not repeated: use 0."]
        }
        assert Agent.objects.get().executor == repeatable
    agent, _ = register_agent("a", {"executor": other, "max_retries": 0})
    assert agent.executor == other


@pytest.mark.spec("4.4.2")
def test_provider_is_whole_or_absent() -> None:
    text = "A provider needs both, an organization and a URL."
    assert errors_of(provider_organization="Acme") == {"provider_url": [text]}
    assert errors_of(provider_url="https://e.test") == {"provider_organization": [text]}
    assert make_agent(provider_organization="Acme", provider_url="https://e.test").provider_url == "https://e.test"


@pytest.mark.spec("4.4.5")
@pytest.mark.parametrize(
    ("skill", "text"),
    [
        ({"tags": []}, "s: tags: This field cannot be blank."),
        ({"tags": ["a", ""]}, "s: tags: Give a list of texts, none of them empty."),
        ({"name": " "}, "s: name: This field cannot be blank."),
        ({"description": ""}, "s: description: This field cannot be blank."),
        ({"input_modes": ["x"]}, "s: input_modes: x is not a media type such as text/plain."),
        ({"examples": [3]}, "s: examples: Give a list of texts, none of them empty."),
    ],
)
def test_bad_skill(skill: dict[str, Any], text: str) -> None:
    good = {"skill_id": "s", "name": "n", "description": "d", "tags": ["t"]}
    with pytest.raises(ValidationError) as caught:
        register_agent("agent", ECHO, [good | skill])
    assert caught.value.message_dict == {"skills": [text]}
    assert not Agent.objects.exists()


def test_skill_ids_are_unique_in_an_agent() -> None:
    good = {"skill_id": "s", "name": "n", "description": "d", "tags": ["t"]}
    with pytest.raises(ValidationError) as caught:
        register_agent("agent", ECHO, [good, good])
    assert list(caught.value.message_dict) == ["skills"]
    assert not Agent.objects.exists()


def test_update_that_fails_changes_nothing() -> None:
    make_agent(name="Old")
    with pytest.raises(ValidationError):
        register_agent("echo", {"name": "New"}, [])
    agent = Agent.objects.get()
    assert agent.name == "Old"
    assert [skill.skill_id for skill in agent.skills.all()] == ["echo"]


def test_clone() -> None:
    agent = make_agent("a" * 60, open=True, is_root=True)
    agent.extensions.create(uri="urn:x", params={"a": 1})
    agent.notes.create(text="Note", groups=["staff"])
    skill = Skill.objects.get()
    copies = [clone_agent(agent) for _ in range(2)]
    assert [copy.slug for copy in copies] == ["a" * 58 + "-copy", "a" * 56 + "-copy-2"]
    for copy in copies:
        copy.refresh_from_db()
        copied = copy.skills.get()
        assert (copy.enabled, copy.open, copy.executor) == (False, True, "echo")
        assert (copied.skill_id, copied.tags, copied.pk != skill.pk) == (skill.skill_id, skill.tags, True)
        assert list(copy.extensions.values_list("uri", "params")) == [("urn:x", {"a": 1})]
        assert list(copy.notes.values_list("text", "groups")) == [("Note", ["staff"])]
        assert not copy.is_root
    agent.refresh_from_db()
    assert agent.enabled
    assert agent.skills.get() == skill


class TestUpdatedAt:
    """Last-Modified of the card moves with every change, also by SQL."""

    @pytest.mark.parametrize(
        "sql",
        [
            "UPDATE agents_agent SET name = 'x'",
            "UPDATE agents_skill SET name = 'x'",
            "DELETE FROM agents_skill",
            "INSERT INTO agents_agentextension (agent_id, position, uri, description, required, params) "
            "SELECT id, 0, 'urn:x', '', false, '{}' FROM agents_agent",
            "INSERT INTO agents_signingkey (kid, algorithm, state, private_key, public_jwk, created_at) "
            "VALUES ('k', 'ES256', 'active', '', '{}', now())",
        ],
    )
    def test_moves(self, sql: str) -> None:
        agent = make_agent()
        Agent.objects.all()
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE agents_agent DISABLE TRIGGER agents_touch")
            cursor.execute("UPDATE agents_agent SET updated_at = '2000-01-01T00:00:00Z'")
            cursor.execute("ALTER TABLE agents_agent ENABLE TRIGGER agents_touch")
            cursor.execute(sql)
        agent.refresh_from_db()
        assert agent.updated_at > timezone.now() - timedelta(minutes=5)

    def test_never_goes_back(self) -> None:
        agent = make_agent()
        ahead = timezone.now() + timedelta(hours=1)
        Agent.objects.update(updated_at=ahead)
        Skill.objects.update(name="x")
        agent.refresh_from_db()
        assert agent.updated_at == ahead


class TestApiKey:
    def test_only_the_hash_is_stored(self) -> None:
        row, key = ApiKey.issue("build server")
        row.refresh_from_db()
        assert key.startswith("a2a_")
        assert len(key) == 47
        assert (row.owner, row.prefix, row.digest) == ("build server", key[:8], hash_key(key))
        with connection.cursor() as cursor:
            cursor.execute("SELECT agents_apikey::text FROM agents_apikey")
            assert key not in cursor.fetchone()[0]

    def test_short_key_shows_nothing_of_itself(self) -> None:
        row, key = ApiKey.issue("x", key="secret")
        assert (key, row.prefix) == ("secret", "")

    @pytest.mark.parametrize("owner", ["anonymous", "Anonymous", " anonymous "])
    def test_anonymous_owns_no_key(self, owner: str) -> None:
        for fields in ({"name": "x", "owner": owner}, {"name": owner}):
            with pytest.raises(ValidationError) as caught:
                ApiKey.issue(**fields)
            assert caught.value.message_dict["owner"] == ["The owner anonymous is reserved for callers without a key."]
        assert not ApiKey.objects.exists()

    @pytest.mark.parametrize("owner", ["anonymous", ""])
    def test_the_database_says_so_too(self, owner: str) -> None:
        row, _ = ApiKey.issue("x")
        with pytest.raises(IntegrityError), transaction.atomic():
            ApiKey.objects.update(owner=owner)
        row.refresh_from_db()
        assert row.owner == "x"

    def test_name_is_unique(self) -> None:
        ApiKey.issue("x")
        with pytest.raises(ValidationError) as caught:
            ApiKey.issue("x", "other")
        assert list(caught.value.message_dict) == ["name"]
        assert ApiKey.objects.count() == 1

    def test_usable(self) -> None:
        now = timezone.now()
        assert ApiKey(enabled=True).usable
        assert ApiKey(enabled=True, expires_at=now + timedelta(minutes=1)).usable
        assert not ApiKey(enabled=True, expires_at=now).usable
        assert not ApiKey(enabled=False).usable
