"""Check that every migration can be applied while the host runs, and while the code of the version before still does.

Looked at are the migrations after those that made the tables. Refused are, for tables that an earlier migration made:

- columns that old code leaves out and the database cannot fill (neither null nor db_default);
- an index without CONCURRENTLY, a constraint, or a foreign key with one: all of them stop the table's writers for as
  long as it takes to read it;
- removed and renamed columns and tables, and columns of another type: old code does not know. First comes a version
  that does without, then the one that changes them; such a second step is listed in SECOND_STEPS;
- SQL by hand that locks a table, but for replacing a trigger, which takes a moment, after SET LOCAL lock_timeout.

Prints one line per finding; exit code 1 if there is any.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOUNDING = {"agents": "0004", "tasks_app": "0003"}
"""By app, the last of the migrations that made the tables, when nothing ran anywhere."""
SECOND_STEPS: dict[tuple[str, str], str] = {}
"""(`app.migration`, finding) → the version that did without what is removed or changed."""

_LOCKING = re.compile(
    r"\b(alter\s+table|create\s+(unique\s+)?index\s+(?!concurrently)|drop\s+table|drop\s+index\s+(?!concurrently)"
    r"|create\s+(or\s+replace\s+)?trigger|drop\s+trigger|lock\s+table|truncate|vacuum|cluster|reindex)\b",
    re.IGNORECASE,
)
_REPLACED_TRIGGER = re.compile(
    r"\bset\s+local\s+lock_timeout\b[^;]*;\s*create\s+or\s+replace\s+trigger\b", re.IGNORECASE
)
# Changes of these are none of the database's, or only let more in.
_HARMLESS = {"default", "null", "db_default", "max_length"}


def findings(plan: list[tuple[str, str, Any]]) -> list[str]:
    """What is wrong with migrations, given as (app, name, Migration) in the order of their application."""
    from django.db.migrations.state import ProjectState

    lines = []
    state = ProjectState()
    for app, name, migration in plan:
        made: set[str] = set()
        checked = app in FOUNDING and name[:4] > FOUNDING[app]
        for operation in migration.operations:
            problems = list(_problems(operation, app, state, made, migration.atomic)) if checked else []
            lines += [f"{app}.{name}: {p}" for p in problems if (f"{app}.{name}", p) not in SECOND_STEPS]
            operation.state_forwards(app, state)
    return lines


def _problems(operation: Any, app: str, state: Any, made: set[str], atomic: bool) -> Iterator[str]:
    """What an operation does that it should not; `made` are the tables that its migration has made."""
    kind = type(operation).__name__
    model = str(getattr(operation, "model_name", "")).lower()
    if kind == "CreateModel":
        made.add(operation.name.lower())
    elif kind == "SeparateDatabaseAndState":
        for inner in operation.database_operations:
            yield from _problems(inner, app, state, made, atomic)
    elif kind == "RunSQL":
        if found := _LOCKING.search(_REPLACED_TRIGGER.sub("", _text(operation.sql))):
            yield f"runs SQL that locks a table: {' '.join(found[0].split()).upper()}"
    elif kind in ("RemoveField", "RenameField", "DeleteModel", "RenameModel", "AlterModelTable"):
        yield f"{kind} {_target(operation, model)}: old code uses it"
    elif model in made:
        return
    elif kind == "AddField":
        yield from _problems_of_column(operation, model)
    elif kind == "AlterField":
        yield from _problems_of_change(operation, model, state.models[app, model].fields[operation.name])
    elif kind == "AddIndexConcurrently":
        if atomic:
            yield f"index {operation.index.name}: a migration that builds one concurrently has atomic = False"
    elif kind in ("AddIndex", "RemoveIndex"):
        yield f"{kind} on {model} stops its writers: use {kind}Concurrently"
    elif kind in ("AddConstraint", "AlterUniqueTogether"):
        yield f"{kind} on {getattr(operation, 'name', model) or model} stops its writers: use AddConstraintNotValid"


def _target(operation: Any, model: str) -> str:
    name = getattr(operation, "name", "") or getattr(operation, "old_name", "")
    return f"{model}.{name}" if model else str(name)


def _problems_of_column(operation: Any, model: str) -> Iterator[str]:
    from django.db.models import NOT_PROVIDED

    field = operation.field
    where = f"column {model}.{operation.name}"
    if not field.many_to_many and not field.null and field.db_default is NOT_PROVIDED:
        yield f"{where} has neither null nor db_default: what old code writes would be refused"
    if field.unique or field.db_index:
        yield f"{where} has an index, which stops writers: add it by AddIndexConcurrently"
    if field.remote_field is not None and field.db_constraint:
        yield f"{where} has a foreign key, which stops writers: use db_constraint=False"


def _problems_of_change(operation: Any, model: str, before: Any) -> Iterator[str]:
    after = operation.field
    where = f"column {model}.{operation.name}"
    if _essence(before) != _essence(after):
        yield f"{where} changes for the database: old code does not know"
    if before.null and not after.null:
        yield f"{where} may be null no longer: what old code writes would be refused"
    if (before.max_length or 0) > (after.max_length or 0) or (before.max_length is None) != (after.max_length is None):
        yield f"{where} has less room: what old code writes would be refused"


def _essence(field: Any) -> tuple[str, list[tuple[str, str]]]:
    _, path, _, options = field.deconstruct()
    free = _HARMLESS.union(field.non_db_attrs)
    return path, sorted((name, repr(value)) for name, value in options.items() if name not in free)


def _text(sql: Any) -> str:
    if isinstance(sql, str):
        return sql
    return ";".join(_text(part[0] if isinstance(part, tuple) else part) for part in sql or ())


def project_plan() -> list[tuple[str, str, Any]]:
    """The migrations of the project and of what it builds on, in order, without a database."""
    from django.db.migrations.loader import MigrationLoader

    graph = MigrationLoader(None).graph
    nodes: dict[tuple[str, str], None] = {}
    for leaf in graph.leaf_nodes():
        nodes |= dict.fromkeys(graph.forwards_plan(leaf))
    return [(app, name, graph.nodes[app, name]) for app, name in nodes]


if __name__ == "__main__":
    import django

    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")
    django.setup()
    found = findings(project_plan())
    print("\n".join(found) or "Every migration can be applied while the host runs.")
    sys.exit(1 if found else 0)
