"""The check of migrations behind `make lint`: what it refuses, and what it lets through."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

from tools import migrations as tool

INDEX = models.Index(fields=["name"], name="thing_name")
THING = migrations.CreateModel(
    "Thing", [("id", models.BigAutoField(primary_key=True)), ("name", models.CharField(max_length=20))]
)


def check(*operations: Any, atomic: bool = True) -> list[str]:
    """Findings for a migration after one that made Thing."""
    first = migrations.Migration("0001_initial", "tasks_app")
    first.operations = [THING]
    second = migrations.Migration("0900_next", "tasks_app")
    second.operations = list(operations)
    second.atomic = atomic
    plan = [("tasks_app", "0001_initial", first), ("tasks_app", "0900_next", second)]
    return [line.removeprefix("tasks_app.0900_next: ") for line in tool.findings(plan)]


def column(field: Any) -> Any:
    return migrations.AddField("thing", "more", field)


def altered(**values: Any) -> Any:
    return migrations.AlterField("thing", "name", models.CharField(**({"max_length": 20} | values)))


@pytest.mark.parametrize(
    "operation",
    [
        column(models.TextField(null=True)),
        column(models.TextField(db_default="")),
        altered(help_text="For people."),
        altered(max_length=30),
        altered(null=True),
        migrations.RunSQL("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION f()"),
        migrations.RunSQL("CREATE INDEX CONCURRENTLY thing_x ON tasks_app_thing (name)"),
        migrations.RunPython(migrations.RunPython.noop),
    ],
)
def test_what_may_be_done_while_old_code_runs(operation: Any) -> None:
    assert check(operation) == []


def test_an_index_may_be_built_concurrently_outside_of_a_transaction() -> None:
    built = AddIndexConcurrently("thing", INDEX)
    assert check(built, atomic=False) == []
    assert check(built) == ["index thing_name: a migration that builds one concurrently has atomic = False"]


def test_a_new_table_may_have_what_it_likes() -> None:
    made = migrations.CreateModel("Other", [("id", models.BigAutoField(primary_key=True))])
    required = migrations.AddField("other", "name", models.TextField())
    assert check(made, required, migrations.AddIndex("other", INDEX)) == []


@pytest.mark.parametrize(
    ("operation", "finding"),
    [
        (
            column(models.TextField(default="")),
            "column thing.more has neither null nor db_default: what old code writes would be refused",
        ),
        (
            column(models.TextField(null=True, unique=True)),
            "column thing.more has an index, which stops writers: add it by AddIndexConcurrently",
        ),
        (
            column(models.ForeignKey("tasks_app.Thing", models.CASCADE, null=True, db_index=False)),
            "column thing.more has a foreign key, which stops writers: use db_constraint=False",
        ),
        (migrations.AddIndex("thing", INDEX), "AddIndex on thing stops its writers: use AddIndexConcurrently"),
        (
            migrations.AddConstraint("thing", models.CheckConstraint(condition=models.Q(name=""), name="c")),
            "AddConstraint on thing stops its writers: use AddConstraintNotValid",
        ),
        (migrations.RemoveField("thing", "name"), "RemoveField thing.name: old code uses it"),
        (migrations.RenameField("thing", "name", "title"), "RenameField thing.name: old code uses it"),
        (migrations.DeleteModel("Thing"), "DeleteModel Thing: old code uses it"),
        (
            migrations.AlterField("thing", "name", models.TextField()),
            "column thing.name changes for the database: old code does not know",
        ),
        (altered(max_length=10), "column thing.name has less room: what old code writes would be refused"),
        (
            migrations.RunSQL(["ALTER TABLE tasks_app_thing ADD x int"]),
            "runs SQL that locks a table: ALTER TABLE",
        ),
        (
            migrations.RunSQL("CREATE UNIQUE INDEX x ON tasks_app_thing (name)"),
            "runs SQL that locks a table: CREATE UNIQUE INDEX",
        ),
        (
            migrations.RunSQL("CREATE OR REPLACE TRIGGER x AFTER INSERT ON tasks_app_thing EXECUTE FUNCTION y()"),
            "runs SQL that locks a table: CREATE OR REPLACE TRIGGER",
        ),
    ],
)
def test_what_would_stop_old_code(operation: Any, finding: str) -> None:
    assert finding in check(operation)


def test_a_column_that_may_be_null_no_longer() -> None:
    freed = check(altered(null=True), altered())
    assert freed == ["column thing.name may be null no longer: what old code writes would be refused"]


def test_a_trigger_may_be_replaced_without_much_waiting() -> None:
    replaced = "SET LOCAL lock_timeout = '1s'; CREATE OR REPLACE TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION y();"
    assert check(migrations.RunSQL(replaced)) == []
    assert check(migrations.RunSQL(replaced + "LOCK TABLE t")) == ["runs SQL that locks a table: LOCK TABLE"]


def test_a_second_step_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = "RemoveField thing.name: old code uses it"
    monkeypatch.setitem(tool.SECOND_STEPS, ("tasks_app.0900_next", finding), "since 2.0 nothing reads it")
    assert check(migrations.RemoveField("thing", "name")) == []


def test_the_migrations_of_the_project() -> None:
    assert tool.findings(tool.project_plan()) == []
