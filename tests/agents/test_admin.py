"""The admin of agents and API keys, as a browser uses it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry, LogEntryManager
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.keys import hash_key
from agents.models import Agent, ApiKey, SigningKey, Skill
from agents.signing_keys import generate_signing_key
from tasks_app.models import Task
from tests.agents.conftest import make_agent

pytestmark = pytest.mark.django_db
GREETER = "tests.agents.executors.Greeter"
LIST, ADD = "/admin/agents/agent/", "/admin/agents/agent/add/"
SIGNING, ADD_SIGNING = "/admin/agents/signingkey/", "/admin/agents/signingkey/add/"
KEYS, ADD_KEY = "/admin/agents/apikey/", "/admin/agents/apikey/add/"

FORM: dict[str, Any] = {
    "slug": "helper",
    "enabled": "on",
    "name": "Helper",
    "version": "1.0.0",
    "description": "Helps.",
    "kind": "python",
    "executor": GREETER,
    "execution": "web",
    "streaming": "on",
    "push_notifications": "on",
    "idempotent_sends": "on",
    "default_input_modes": "text/plain\r\n\r\n image/* ",
    "default_output_modes": "text/plain",
    "timeout_seconds": "3600",
    "cancel_grace_seconds": "5",
    "max_request_bytes": "8388608",
    "deadline_seconds": "86400",
    "max_retries": "0",
    "large_parts": "inline",
    "max_task_bytes": "1073741824",
    "documentation_url": "e.test/docs",
    "icon_url": "",
    "provider_organization": "",
    "provider_url": "",
    "skills-TOTAL_FORMS": "1",
    "skills-INITIAL_FORMS": "0",
    "skills-MIN_NUM_FORMS": "1",
    "skills-MAX_NUM_FORMS": "1000",
    "skills-0-skill_id": "help",
    "skills-0-name": "Help",
    "skills-0-description": "Helps with all.",
    "skills-0-tags": "help\r\nall",
    "skills-0-examples": "How are you, today?",
    "skills-0-input_modes": "",
    "skills-0-output_modes": "",
    "skills-0-groups": "",
    "skills-0-position": "0",
    "versions": "both",
    "sign_card": "on",
    "extensions-TOTAL_FORMS": "0",
    "extensions-INITIAL_FORMS": "0",
    "notes-TOTAL_FORMS": "0",
    "notes-INITIAL_FORMS": "0",
}
SKILL = {name: value for name, value in FORM.items() if name.startswith("skills-0-")}
EXTENSION = {
    "extensions-TOTAL_FORMS": "1",
    "extensions-0-uri": "urn:geo:1",
    "extensions-0-required": "on",
    "extensions-0-description": "Where",
    "extensions-0-params": '{"unit": "m"}',
    "extensions-0-position": "0",
}
NOTE = {
    "notes-TOTAL_FORMS": "1",
    "notes-0-text": "For staff.",
    "notes-0-groups": "staff\r\nops",
    "notes-0-position": "0",
}


@pytest.fixture
def browser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("admin"))
    return client


def errors_of(browser: Client, **changes: str) -> dict[str, list[str]]:
    """Errors of the form by field, skills as `skills-0-tags`; nothing is stored then."""
    reply = browser.post(ADD, FORM | changes)
    assert reply.status_code == 200
    assert not Agent.objects.exists()
    context = reply.context
    errors = {name: list(texts) for name, texts in context["adminform"].form.errors.items()}
    for formset in context["inline_admin_formsets"]:
        for form in formset.formset.forms:
            errors |= {f"{form.prefix}-{name}": list(texts) for name, texts in form.errors.items()}
        if formset.formset.non_form_errors():
            errors["skills"] = list(formset.formset.non_form_errors())
    return errors


class TestAgentForm:
    def test_create(self, browser: Client) -> None:
        assert browser.get(ADD).status_code == 200
        assert browser.post(ADD, FORM).headers["Location"] == LIST
        agent = Agent.objects.get()
        assert (agent.slug, agent.executor, agent.enabled, agent.open) == ("helper", GREETER, True, False)
        assert agent.default_input_modes == ["text/plain", "image/*"]
        assert agent.documentation_url == "https://e.test/docs"
        skill = agent.skills.get()
        assert (skill.skill_id, skill.tags, skill.examples) == ("help", ["help", "all"], ["How are you, today?"])
        assert skill.input_modes == []

    def test_edit_shows_lists_as_lines_and_the_addresses(self, browser: Client) -> None:
        browser.post(ADD, FORM)
        agent = Agent.objects.get()
        url = reverse("admin:agents_agent_change", args=[agent.pk])
        page = browser.get(url).content.decode()
        assert "text/plain\nimage/*</textarea>" in page
        assert 'data-copy="/agents/helper"' in page
        assert 'data-copy="/agents/helper/.well-known/agent-card.json"' in page
        skill = agent.skills.get()
        edit = FORM | {
            "skills-INITIAL_FORMS": "1",
            "skills-0-id": str(skill.pk),
            "skills-0-agent": str(agent.pk),
            "name": "New",
        }
        assert browser.post(url, edit).headers["Location"] == LIST
        agent.refresh_from_db()
        assert (agent.name, agent.default_input_modes) == ("New", ["text/plain", "image/*"])
        change = LogEntry.objects.get(action_flag=2)
        assert change.get_change_message() == "Changed Name."

    @pytest.mark.parametrize(
        ("field", "value", "text"),
        [
            ("slug", "Bad Slug", "Use 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends."),
            ("name", "  ", "This field is required."),
            ("description", "", "This field is required."),
            ("executor", "nope.Agent", "There is no module nope on the import path (see AGENTS_DIR)."),
            ("executor", f"{GREETER}er", "Module tests.agents.executors has no class Greeterer."),
            ("executor", "", "This field is required."),
            ("default_input_modes", "text", "text is not a media type such as text/plain."),
            ("default_input_modes", " \n ", "This field is required."),
            ("timeout_seconds", "0", "Ensure this value is greater than or equal to 1."),
            ("provider_organization", "Acme", ""),
            ("skills-0-tags", "", "This field is required."),
            ("skills-0-input_modes", "x", "x is not a media type such as text/plain."),
        ],
    )
    def test_errors_name_the_field(self, browser: Client, field: str, value: str, text: str) -> None:
        expected = {field: [text]}
        if field == "provider_organization":
            expected = {"provider_url": ["A provider needs both, an organization and a URL."]}
        assert errors_of(browser, **{field: value}) == expected

    @pytest.mark.spec("4.4.4")
    def test_extensions_notes_and_groups(self, browser: Client) -> None:
        more = {name.replace("-0-", "-1-"): value for name, value in SKILL.items()}
        more |= {"skills-TOTAL_FORMS": "2", "skills-1-skill_id": "more", "skills-1-groups": "staff"}
        choices = {"versions": "1.0", "is_root": "on", "extended_card": "on", "sign_card": ""}
        reply = browser.post(ADD, FORM | EXTENSION | NOTE | more | choices)
        assert reply.headers["Location"] == LIST
        agent = Agent.objects.get()
        assert (agent.versions, agent.is_root, agent.extended_card, agent.sign_card) == ("1.0", True, True, False)
        assert list(agent.extensions.values_list("uri", "required", "params")) == [("urn:geo:1", True, {"unit": "m"})]
        assert list(agent.notes.values_list("text", "groups")) == [("For staff.", ["staff", "ops"])]
        assert list(agent.skills.values_list("skill_id", "groups")) == [("help", []), ("more", ["staff"])]
        page = browser.get(reverse("admin:agents_agent_change", args=[agent.pk])).content.decode()
        assert "staff\nops</textarea>" in page
        assert "{&quot;unit&quot;: &quot;m&quot;}" in page

    @pytest.mark.parametrize(
        ("field", "value", "text"),
        [
            ("extensions-0-uri", "", "This field is required."),
            ("extensions-0-uri", "no uri", "Use a URI, such as"),
            ("extensions-0-uri", "urn:a,b", "Use a URI, such as"),
            ("extensions-0-uri", "urn:ü", "Use a URI, such as"),
            ("extensions-0-params", "[1]", "Give a JSON object"),
            ("extensions-0-params", "{", "Enter a valid JSON."),
            ("extensions-0-params", '{"n": 9007199254740992}', "Whole numbers go from"),
            ("extensions-0-params", '{"n": [1e999]}', "Whole numbers go from"),
            ("extensions-0-params", '{"t": "\\u0000"}', "A text holds a null character."),
            ("notes-0-text", "", "This field is required."),
            ("versions", "2.0", "Select a valid choice."),
        ],
    )
    def test_errors_of_the_parts_name_the_field(self, browser: Client, field: str, value: str, text: str) -> None:
        errors = errors_of(browser, **EXTENSION | NOTE | {field: value})
        assert list(errors) == [field]
        assert errors[field][0].startswith(text)

    def test_an_extension_is_there_once(self, browser: Client) -> None:
        twice = EXTENSION | {name.replace("-0-", "-1-"): value for name, value in EXTENSION.items()}
        reply = browser.post(ADD, FORM | twice | {"extensions-TOTAL_FORMS": "2"})
        (formset,) = [f.formset for f in reply.context["inline_admin_formsets"] if f.formset.prefix == "extensions"]
        assert formset.non_form_errors() == ["Please correct the duplicate data for uri."]
        assert not Agent.objects.exists()

    def test_the_public_card_needs_a_skill(self, browser: Client) -> None:
        errors = errors_of(browser, **{"skills-0-groups": "staff"})
        assert errors == {"skills": ["An agent needs at least one skill without groups, for its public card."]}

    def test_a_second_root_is_refused_at_its_field(self, browser: Client) -> None:
        root = make_agent("root", is_root=True)
        reply = browser.post(ADD, FORM | {"is_root": "on"})
        assert reply.context["adminform"].form.errors == {"is_root": ["The agent root is there. Only one can be."]}
        assert list(Agent.objects.all()) == [root]
        changes = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(root.pk), "_save": "Save"}
        assert browser.post(LIST, changes).status_code == 302
        root.refresh_from_db()
        assert (root.enabled, root.is_root) == (False, True)

    @pytest.mark.spec("4.4.1")
    def test_an_agent_needs_a_skill(self, browser: Client) -> None:
        nothing = {name: "" for name in FORM if name.startswith("skills-0-") and not name.endswith("position")}
        errors = errors_of(browser, **nothing)
        assert errors.pop("skills") == ["An agent needs at least one skill."]
        required = ("skill_id", "name", "description", "tags")
        assert errors == {f"skills-0-{name}": ["This field is required."] for name in required}
        assert errors_of(browser, **{"skills-TOTAL_FORMS": "0"})["skills"] == ["An agent needs at least one skill."]

    def test_the_last_skill_cannot_be_removed(self, browser: Client) -> None:
        browser.post(ADD, FORM)
        agent, skill = Agent.objects.get(), Skill.objects.get()
        edit = FORM | {
            "skills-INITIAL_FORMS": "1",
            "skills-0-id": str(skill.pk),
            "skills-0-agent": str(agent.pk),
            "skills-0-DELETE": "on",
        }
        reply = browser.post(reverse("admin:agents_agent_change", args=[agent.pk]), edit)
        assert "An agent needs at least one skill." in reply.content.decode()
        assert Skill.objects.get() == skill

    def test_two_skills_cannot_share_an_id(self, browser: Client) -> None:
        second = {name.replace("-0-", "-1-"): value for name, value in FORM.items() if "-0-" in name}
        assert "skills" in errors_of(browser, **second, **{"skills-TOTAL_FORMS": "2"})


class TestAgentList:
    def test_shows_and_finds(self, browser: Client, settings: Settings) -> None:
        settings.PUBLIC_URL = "https://api.e.test"
        make_agent()
        make_agent("other", executor="data", description="Something else")
        page = browser.get(LIST).content.decode()
        assert 'data-copy="https://api.e.test/agents/echo"' in page
        assert 'data-copy="https://api.e.test/agents/other/.well-known/agent-card.json"' in page
        page = browser.get(LIST, {"q": "something"}).content.decode()
        assert "/agents/other" in page
        assert "/agents/echo" not in page
        page = browser.get(LIST, {"enabled__exact": "0"}).content.decode()
        assert "/agents/echo" not in page

    def test_toggle(self, browser: Client) -> None:
        agent = make_agent()
        data = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(agent.pk), "_save": "Save"}
        browser.post(LIST, data)
        agent.refresh_from_db()
        assert not agent.enabled
        browser.post(LIST, data | {"form-0-enabled": "on"})
        agent.refresh_from_db()
        assert agent.enabled

    def test_an_agent_whose_code_is_gone_can_be_switched_off(self, browser: Client) -> None:
        agent = make_agent()
        Agent.objects.update(executor="gone", name="Mine")
        data = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(agent.pk), "_save": "Save"}
        browser.post(LIST, data)
        agent.refresh_from_db()
        assert not agent.enabled

    def test_enable_and_disable(self, browser: Client) -> None:
        agents = [make_agent(), make_agent("off", enabled=False)]
        selected = [str(agent.pk) for agent in agents]
        reply = browser.post(LIST, {"action": "disable", "_selected_action": selected}, follow=True)
        assert [str(message) for message in reply.context["messages"]] == ["Disabled 1 of 2 agents."]
        assert not Agent.objects.filter(enabled=True).exists()
        browser.post(LIST, {"action": "enable", "_selected_action": selected})
        assert Agent.objects.filter(enabled=True).count() == 2
        assert [entry.get_change_message() for entry in LogEntry.objects.all()].count("Disabled.") == 1

    def test_what_cannot_be_noted_is_not_done(self, browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        """Act and log entry are one transaction."""
        agent, (key, _) = make_agent(), ApiKey.issue("alice", "alice")
        signing = generate_signing_key()
        acts = [
            (LIST, {"action": "disable", "_selected_action": [str(agent.pk)]}),
            (LIST, {"action": "clone", "_selected_action": [str(agent.pk)]}),
            (KEYS, {"action": "disable", "_selected_action": [str(key.pk)]}),
            (SIGNING, {"action": "retire", "_selected_action": [str(signing.pk)]}),
            (f"{SIGNING}rotate/", {}),
        ]

        def dies(*_: Any, **__: Any) -> None:
            raise RuntimeError("the process dies")

        monkeypatch.setattr(LogEntryManager, "log_actions", dies)
        for url, form in acts:
            with pytest.raises(RuntimeError, match="the process dies"):
                browser.post(url, form)
        assert list(Agent.objects.values_list("slug", "enabled")) == [("echo", True)]
        assert ApiKey.objects.get().enabled
        assert list(SigningKey.objects.values_list("kid", "state")) == [(signing.kid, "active")]

    def test_clone_opens_the_copy(self, browser: Client) -> None:
        agent = make_agent()
        reply = browser.post(LIST, {"action": "clone", "_selected_action": [str(agent.pk)]})
        copy = Agent.objects.get(slug="echo-copy")
        assert reply.headers["Location"] == reverse("admin:agents_agent_change", args=[copy.pk])
        assert not copy.enabled
        assert copy.skills.count() == 1

    def test_clone_of_many_stays_on_the_list(self, browser: Client) -> None:
        selected = [str(make_agent(slug).pk) for slug in ("a", "b")]
        reply = browser.post(LIST, {"action": "clone", "_selected_action": selected}, follow=True)
        assert [str(message) for message in reply.context["messages"]] == [
            "Made a-copy, b-copy, disabled until you enable them."
        ]

    def test_delete(self, browser: Client) -> None:
        agent = make_agent()
        url = reverse("admin:agents_agent_delete", args=[agent.pk])
        assert browser.post(url, {"post": "yes"}).headers["Location"] == LIST
        assert not Agent.objects.exists()

    def test_an_agent_with_tasks_cannot_be_deleted(self, browser: Client) -> None:
        agent = make_agent()
        now = timezone.now()
        Task.objects.create(
            id="t", agent=agent, owner="alice", context_id="c", state=3, status="{}", status_at=now, created_at=now
        )
        url = reverse("admin:agents_agent_delete", args=[agent.pk])
        assert browser.post(url, {"post": "yes"}).status_code == 403
        assert "Delete agent" not in browser.get(reverse("admin:agents_agent_change", args=[agent.pk])).content.decode()
        assert "delete_selected" not in browser.get(LIST).content.decode()
        assert Agent.objects.get() == agent


class TestApiKeys:
    def create(self, browser: Client, **changes: str) -> Any:
        return browser.post(
            ADD_KEY, {"name": "laptop", "owner": "alice", "expires_at_0": "", "expires_at_1": ""} | changes
        )

    def test_the_key_is_shown_once(self, browser: Client) -> None:
        assert "Save and add another" not in browser.get(ADD_KEY).content.decode()
        reply = self.create(browser)
        assert reply.status_code == 200
        assert "no-store" in reply.headers["Cache-Control"]
        found = re.search(r'<code id="api-key">(a2a_[\w-]{43})</code>', reply.content.decode())
        assert found is not None
        key = found.group(1)
        assert f'data-copy="{key}"' in reply.content.decode()
        row = ApiKey.objects.get()
        assert (row.name, row.owner, row.digest, row.prefix) == ("laptop", "alice", hash_key(key), key[:8])
        for url in (KEYS, reverse("admin:agents_apikey_change", args=[row.pk]), "/admin/"):
            assert key not in browser.get(url).content.decode()
        assert key not in str(list(LogEntry.objects.values()))
        assert key not in str(dict(browser.session))

    def test_owner_is_the_name_by_default(self, browser: Client) -> None:
        self.create(browser, owner="")
        assert ApiKey.objects.get().owner == "laptop"

    def test_anonymous_is_reserved(self, browser: Client) -> None:
        reply = self.create(browser, owner="anonymous")
        assert reply.context["adminform"].form.errors == {
            "owner": ["The owner anonymous is reserved for callers without a key."]
        }
        assert not ApiKey.objects.exists()

    def test_the_same_page_again_makes_no_second_key(self, browser: Client) -> None:
        self.create(browser)
        reply = self.create(browser)
        assert reply.context["adminform"].form.errors == {"name": ["API key with this Name already exists."]}
        assert ApiKey.objects.count() == 1

    def test_change(self, browser: Client) -> None:
        row, _ = ApiKey.issue("laptop", "alice")
        url = reverse("admin:agents_apikey_change", args=[row.pk])
        browser.post(url, {"name": "desk", "owner": "bob", "expires_at_0": "2030-01-02", "expires_at_1": "03:04:05"})
        row.refresh_from_db()
        assert (row.name, row.owner, row.enabled) == ("desk", "alice", False)
        assert row.expires_at is not None
        assert row.expires_at.isoformat() == "2030-01-02T03:04:05+00:00"

    def test_disable(self, browser: Client) -> None:
        row, _ = ApiKey.issue("laptop")
        reply = browser.post(KEYS, {"action": "disable", "_selected_action": [str(row.pk)]}, follow=True)
        assert [str(message) for message in reply.context["messages"]] == ["Disabled 1 API keys."]
        assert "disabled" in reply.content.decode()
        row.refresh_from_db()
        assert not row.usable


def test_users_and_groups(browser: Client) -> None:
    Group.objects.create(name="operators")
    for model in ("user", "group"):
        assert browser.get(f"/admin/auth/{model}/").status_code == 200
        assert browser.get(f"/admin/auth/{model}/add/").status_code == 200
    assert browser.get("/admin/").status_code == 200


@pytest.mark.parametrize("url", [LIST, ADD, KEYS, ADD_KEY])
def test_only_for_staff(client: Client, url: str) -> None:
    client.force_login(User.objects.create_user("nobody"))
    for reply in (client.get(url), client.post(url, FORM)):
        assert reply.status_code == 302
        assert reply.headers["Location"].startswith("/admin/login/")
    assert not Agent.objects.exists()
    assert not ApiKey.objects.exists()


def test_permissions_count_for_actions(client: Client) -> None:
    agent = make_agent()
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(*viewer.user_permissions.model.objects.filter(codename="view_agent"))
    client.force_login(viewer)
    assert client.get(LIST).status_code == 200
    for action in ("disable", "clone"):
        client.post(LIST, {"action": action, "_selected_action": [str(agent.pk)]})
    assert list(Agent.objects.values_list("slug", "enabled")) == [("echo", True)]


@pytest.mark.spec("8.4")
class TestSigningKeys:
    def states(self) -> list[tuple[str, str]]:
        return list(SigningKey.objects.order_by("id").values_list("algorithm", "state"))

    def test_generate_rotate_retire_delete(self, browser: Client) -> None:
        assert browser.get(ADD_SIGNING).status_code == 200
        for algorithm in ("ES256", "RS256"):
            assert browser.post(ADD_SIGNING, {"algorithm": algorithm}).headers["Location"] == SIGNING
        assert self.states() == [("ES256", "active"), ("RS256", "next")]
        page = browser.get(SIGNING).content.decode()
        assert "/admin/agents/signingkey/rotate/" in page
        assert browser.post(f"{SIGNING}rotate/").headers["Location"] == SIGNING
        assert self.states() == [("ES256", "retired"), ("RS256", "active")]
        first, second = SigningKey.objects.order_by("id")
        browser.post(SIGNING, {"action": "retire", "_selected_action": [second.pk]})
        assert self.states() == [("ES256", "retired"), ("RS256", "retired")]
        view = browser.get(f"{SIGNING}{first.pk}/change/").content.decode()
        assert first.kid in view
        assert "PRIVATE" not in view
        assert browser.post(f"{SIGNING}{first.pk}/delete/", {"post": "yes"}).status_code == 302
        assert self.states() == [("RS256", "retired")]

    def test_a_third_key_is_refused_at_the_field(self, browser: Client) -> None:
        for _ in range(2):
            browser.post(ADD_SIGNING, {"algorithm": "ES256"})
        reply = browser.post(ADD_SIGNING, {"algorithm": "ES256"})
        errors = {"algorithm": ["There is a next key already. Rotate, and it signs."]}
        assert reply.context["adminform"].form.errors == errors
        assert self.states() == [("ES256", "active"), ("ES256", "next")]

    def test_without_an_encryption_key_there_is_none(self, browser: Client, settings: Settings) -> None:
        settings.ENCRYPTION_KEYS = ["broken"]
        reply = browser.post(ADD_SIGNING, {"algorithm": "ES256"})
        assert reply.context["adminform"].form.errors["algorithm"][0].startswith("ENCRYPTION_KEYS must hold")
        assert self.states() == []

    def test_what_is_not_allowed(self, browser: Client, client: Client) -> None:
        browser.post(ADD_SIGNING, {"algorithm": "ES256"})
        key = SigningKey.objects.get()
        assert browser.get(f"{SIGNING}rotate/").status_code == 405
        assert browser.post(f"{SIGNING}{key.pk}/delete/", {"post": "yes"}).status_code == 403
        assert browser.post(f"{SIGNING}{key.pk}/change/", {"algorithm": "RS256"}).status_code == 403
        client.force_login(User.objects.create_user("clerk", is_staff=True))
        assert client.post(f"{SIGNING}rotate/").status_code == 403
        assert self.states() == [("ES256", "active")]

    def test_nothing_to_rotate(self, browser: Client) -> None:
        page = browser.post(f"{SIGNING}rotate/", follow=True).content.decode()
        assert "There is no signing key yet. Generate one." in page


def test_the_groups_of_a_key(browser: Client) -> None:
    browser.post(ADD_KEY, {"name": "laptop", "owner": "", "groups": "staff\r\nops"})
    key = ApiKey.objects.get()
    assert key.groups == ["staff", "ops"]
    url = f"{KEYS}{key.pk}/change/"
    assert "staff\nops</textarea>" in browser.get(url).content.decode()
    browser.post(url, {"name": "laptop", "enabled": "on", "groups": ""})
    key.refresh_from_db()
    assert key.groups == []
