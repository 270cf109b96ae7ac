"""What a process holds of agents and keys, and how changes reach it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from agents.fingerprint import FINGERPRINT
from agents.models import Agent, ApiKey, Skill
from agents.registration import register_agent, set_enabled
from agents.registry import CHANNEL, Registry
from agents.runtimes.simulators.echo import Echo
from protocol.errors import AgentNotFoundError, InternalError
from protocol.model import Part
from tests.agents.conftest import make_agent
from tests.agents.support import Recorder, make_run

DSN = {"dbname", "user", "password", "host", "port"}
CHANGES = [
    "INSERT INTO agents_skill (agent_id, position, skill_id, name, description, tags, examples, input_modes, "
    "output_modes, groups) SELECT id, 1, 'x', 'n', 'd', '[\"t\"]', '[]', '[]', '[]', '[]' FROM agents_agent",
    "UPDATE agents_agent SET enabled = false",
    "UPDATE agents_skill SET name = 'x'",
    "DELETE FROM agents_skill",
    "INSERT INTO agents_agentextension (agent_id, position, uri, description, required, params) "
    "SELECT id, 0, 'urn:x', '', false, '{}' FROM agents_agent",
    "INSERT INTO agents_cardnote (agent_id, position, text, groups) SELECT id, 0, 't', '[]' FROM agents_agent",
    "INSERT INTO agents_signingkey (kid, algorithm, state, private_key, public_jwk, created_at) "
    "VALUES ('k', 'ES256', 'active', '', '{}', now())",
    "UPDATE agents_apikey SET groups = '[\"staff\"]'",
    "UPDATE agents_apikey SET enabled = false",
    "DELETE FROM agents_apikey",
    "TRUNCATE agents_apikey",
]


class TestEntries:
    def test_get(self, registry: Registry) -> None:
        agent = make_agent(timeout_seconds=7, default_input_modes=["Text/Plain; charset=utf-8"])
        registry.load_sync()
        entry = registry.get("echo")
        assert (entry.id, entry.slug, entry.enabled, entry.execution) == (agent.pk, "echo", True, "web")
        assert (entry.timeout_seconds, entry.cancel_grace_seconds, entry.max_request_bytes) == (7, 5, 8 * 1024**2)
        assert (entry.open, entry.shared_history, entry.idempotent_sends) == (False, False, True)
        assert isinstance(entry.runtime, Echo)
        assert entry.runtime is entry.runtime
        assert registry.by_id(agent.pk) is entry
        assert registry.entries() == [entry]

    @pytest.mark.spec("13.1")
    def test_unknown_and_disabled_look_the_same(self, registry: Registry) -> None:
        agent = make_agent(enabled=False)
        registry.load_sync()
        for slug in ("echo", "nobody"):
            with pytest.raises(AgentNotFoundError) as caught:
                registry.get(slug)
            assert (str(caught.value), caught.value.metadata) == ("The agent does not exist.", {"agent": slug})
        assert registry.entries() == []
        entry = registry.by_id(agent.pk)
        assert entry is not None
        assert not entry.enabled
        assert registry.by_id(0) is None

    def test_entry_stays_the_same_object_while_nothing_changes(self, registry: Registry) -> None:
        make_agent()
        other = make_agent("other")
        registry.load_sync()
        first, runtime = registry.get("echo"), registry.get("other").runtime
        other.name = "New"
        other.save()
        registry.load_sync()
        assert registry.get("echo") is first
        assert registry.get("other").name == "New"
        assert registry.get("other").runtime is runtime

    def test_other_code_makes_another_runtime(self, registry: Registry) -> None:
        make_agent()
        registry.load_sync()
        before = registry.get("echo").runtime
        register_agent("echo", {"executor": "data"})
        registry.load_sync()
        assert type(registry.get("echo").runtime).__name__ == "Data"
        assert registry.get("echo").runtime is not before

    def test_change_of_a_skill_is_a_change_of_the_agent(self, registry: Registry) -> None:
        make_agent()
        registry.load_sync()
        first = registry.get("echo")
        Skill.objects.update(name="New")
        registry.load_sync()
        assert registry.get("echo").skills[0].name == "New"
        assert registry.get("echo").updated_at >= first.updated_at

    def test_a_row_that_cannot_be_read_leaves_the_others(
        self, registry: Registry, caplog: pytest.LogCaptureFixture
    ) -> None:
        for slug, modes in (("a", 5), ("b", [5]), ("c", ["text/plain"])):
            agent = make_agent(slug)
            Agent.objects.filter(pk=agent.pk).update(default_input_modes=modes)
        registry.load_sync()
        assert [entry.slug for entry in registry.entries()] == ["c"]
        assert [record.getMessage() for record in caplog.records] == [
            "Agent a cannot be read and is left out",
            "Agent b cannot be read and is left out",
        ]

    def test_keys(self, registry: Registry) -> None:
        row, _ = ApiKey.issue("a", "alice", timezone.now())
        off, _ = ApiKey.issue("b")
        ApiKey.objects.filter(pk=off.pk).update(enabled=False)
        registry.load_sync()
        key = registry.key(row.digest)
        assert key is not None
        assert (key.id, key.owner, key.expires_at) == (row.pk, "alice", row.expires_at)
        assert registry.key(off.digest) is None

    def test_reading_asks_no_database(
        self, registry: Registry, django_assert_num_queries: Callable[[int], object]
    ) -> None:
        make_agent()
        registry.load_sync()
        with django_assert_num_queries(0):  # type: ignore[attr-defined]
            entry = registry.get("echo")
            assert entry.runtime
            assert entry.accepts_part(Part(text="x"))
            registry.key("x")


class TestMediaTypes:
    @pytest.mark.parametrize(
        ("modes", "media_type", "accepted"),
        [
            (["text/plain"], "TEXT/PLAIN; charset=utf-8", True),
            (["Text/Plain;charset=utf-8"], "text/plain", True),
            (["text/plain"], "text/html", False),
            (["text/*"], "text/html", True),
            (["text/*"], "image/png", False),
            (["*/*"], "image/png", True),
            (["application/json", "image/png"], "image/png", True),
            (["text/plain"], "nonsense", False),
        ],
    )
    def test_accepts(self, registry: Registry, modes: list[str], media_type: str, accepted: bool) -> None:
        make_agent(default_input_modes=modes)
        registry.load_sync()
        assert registry.get("echo").accepts(media_type) is accepted

    def test_a_skill_widens_what_is_taken(self, registry: Registry) -> None:
        skill = {"skill_id": "s", "name": "n", "description": "d", "tags": ["t"], "input_modes": ["image/png"]}
        register_agent("echo", {"kind": "simulator", "executor": "echo"}, [skill])
        registry.load_sync()
        entry = registry.get("echo")
        assert entry.accepts("image/png")
        assert entry.accepts("text/plain")
        assert not entry.accepts("image/gif")

    @pytest.mark.parametrize(
        ("part", "text_agent", "image_agent"),
        [
            (Part(text="x"), True, False),
            (Part(text="", media_type=""), True, False),
            (Part(text="x", media_type="text/markdown"), False, False),
            (Part(raw="AAA="), True, True),
            (Part(raw="AAA=", media_type="image/png"), False, True),
            (Part(url="https://e.test/x"), True, True),
        ],
    )
    def test_parts(self, registry: Registry, part: Part, text_agent: bool, image_agent: bool) -> None:
        make_agent("text")
        make_agent("image", default_input_modes=["image/png"])
        registry.load_sync()
        assert registry.get("text").accepts_part(part) is text_agent
        assert registry.get("image").accepts_part(part) is image_agent


class TestBrokenCode:
    """An agent whose code went away after it was saved."""

    def make(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.syspath_prepend(str(path))
        module = path / "agent_that_breaks.py"
        module.write_text("from tests.agents.executors import Greeter")
        make_agent(kind="python", executor="agent_that_breaks.Greeter")
        del sys.modules["agent_that_breaks"]
        return module

    def test_runs_fail_and_a_reload_tries_again(
        self, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        module = self.make(tmp_path, monkeypatch)
        text = module.read_text()
        module.write_text("import no_such_dependency")
        registry.load_sync()
        entry = registry.get("echo")
        with caplog.at_level(logging.ERROR), pytest.raises(InternalError) as caught:
            asyncio.run(entry.runtime.execute(make_run("hi"), Recorder()))
        assert str(caught.value) == "Internal error"
        assert [record.getMessage() for record in caplog.records] == [
            "Agent echo cannot run: Importing agent_that_breaks raises ModuleNotFoundError: No module named "
            "'no_such_dependency'"
        ]
        module.write_text(text)
        registry.load_sync()
        entry = registry.get("echo")
        updates = Recorder()
        asyncio.run(entry.runtime.execute(make_run("hi"), updates))
        assert updates.calls[0] == ("TASK_STATE_WORKING",)

    def test_preload_reports_and_goes_on(
        self, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        module = self.make(tmp_path, monkeypatch)
        module.unlink()
        with caplog.at_level(logging.ERROR):
            Registry(runs="worker").load_sync()
            assert caplog.records == []
            registry = Registry(runs="web")
            registry.load_sync()
        assert [record.getMessage() for record in caplog.records] == [
            "Agent echo will not run: There is no module agent_that_breaks on the import path (see AGENTS_DIR)."
        ]
        assert registry.get("echo").slug == "echo"

    def test_preload_imports(self, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.make(tmp_path, monkeypatch)
        Registry(runs="web").load_sync()
        assert "agent_that_breaks" in sys.modules


@pytest.mark.django_db(transaction=True)
class TestChanges:
    """Every change by any path is announced; a reload shows it."""

    async def test_reload(self) -> None:
        registry = Registry()
        await registry.load()
        await asyncio.to_thread(in_own_connection, make_agent)
        with pytest.raises(AgentNotFoundError):
            registry.get("echo")
        await asyncio.gather(*(registry.load() for _ in range(10)))
        assert registry.get("echo").slug == "echo"

    @pytest.mark.parametrize("sql", CHANGES)
    def test_is_announced(self, sql: str) -> None:
        make_agent()
        ApiKey.issue("x")
        assert announcements(sql) == 1

    @pytest.mark.parametrize("ahead", ["1 hour", "0"])
    @pytest.mark.parametrize("sql", CHANGES)
    def test_changes_the_fingerprint(self, sql: str, ahead: str, registry: Registry) -> None:
        """Also of a row that was last saved by a machine whose clock is ahead."""
        make_agent()
        ApiKey.issue("x")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE agents_agent SET updated_at = now() + %s::interval", [ahead])
        registry.load_sync()
        before = registry.fingerprint
        registry.load_sync()
        assert registry.fingerprint == before
        with connection.cursor() as cursor:
            cursor.execute(sql)
        registry.load_sync()
        assert registry.fingerprint != before

    def test_the_fingerprint_is_the_same_for_who_reads_elsewhere(self) -> None:
        make_agent()
        ApiKey.issue("x", expires_at=timezone.now())
        prints = set()
        with connection.cursor() as cursor:
            for zone in ("UTC", "Asia/Tokyo"):
                cursor.execute("SELECT set_config('timezone', %s, false)", [zone])
                cursor.execute(FINGERPRINT)
                prints.add(cursor.fetchone()[0])
            cursor.execute("SELECT set_config('timezone', 'UTC', false)")
        assert len(prints) == 1

    def test_last_use_of_a_key_is_no_change(self, registry: Registry) -> None:
        ApiKey.issue("x")
        registry.load_sync()
        before = registry.fingerprint
        assert announcements("UPDATE agents_apikey SET last_used_at = now()") == 0
        registry.load_sync()
        assert registry.fingerprint == before


@pytest.mark.django_db
def test_every_other_column_of_a_key_is_announced() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT event_object_column FROM information_schema.triggered_update_columns "
            "WHERE event_object_table = 'agents_apikey'"
        )
        watched = {row[0] for row in cursor.fetchall()}
    columns = {field.column for field in ApiKey._meta.concrete_fields}
    assert columns - watched == {"id", "last_used_at", "created_at"}


@pytest.mark.django_db
def test_set_enabled_says_whether_it_changed_anything() -> None:
    agent = make_agent()
    assert set_enabled(agent, False)
    assert not set_enabled(agent, False)
    assert not Agent.objects.get().enabled


def announcements(sql: str) -> int:
    """How many announcements a statement makes."""
    parameters = connection.get_connection_params()
    with psycopg.connect(
        make_conninfo(**{n: v for n, v in parameters.items() if n in DSN}), autocommit=True
    ) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        with connection.cursor() as cursor:
            cursor.execute(sql)
        listener.execute("SELECT 1")
        return len(list(listener.notifies(timeout=0)))


def in_own_connection(work: Callable[[], object]) -> None:
    """Run ORM code in this thread and leave no connection behind."""
    try:
        work()
    finally:
        connection.close()
