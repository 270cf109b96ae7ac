"""What Django's models cannot say: the table of listeners, and triggers.

The triggers keep TaskCount: exact whoever writes tasks, because the database itself counts, once per statement.

A writer adds to the shard of its connection, so that two of them rarely wait for each other.
"""

from __future__ import annotations

from django.db import migrations

_CREATE = """
CREATE FUNCTION tasks_app_count_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tasks_app_taskcount AS c (agent_id, owner, state, shard, tasks)
    SELECT agent_id, owner, state, pg_backend_pid() % 16, sum(n) FROM ({rows}) AS changed
    GROUP BY agent_id, owner, state HAVING sum(n) <> 0 ORDER BY agent_id, owner, state
    ON CONFLICT (agent_id, owner, state, shard) DO UPDATE SET tasks = c.tasks + excluded.tasks;
    RETURN NULL;
END $$;
CREATE TRIGGER tasks_app_count_{name} AFTER {event} ON tasks_app_task
    REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION tasks_app_count_{name}();
"""
_PLUS = "SELECT agent_id, owner, state, 1 AS n FROM after_rows"
_MINUS = "SELECT agent_id, owner, state, -1 AS n FROM before_rows"
_AFTER, _BEFORE = "NEW TABLE AS after_rows", "OLD TABLE AS before_rows"

_TRIGGERS = {
    "insert": _CREATE.format(name="insert", event="INSERT", tables=_AFTER, rows=_PLUS),
    "update": _CREATE.format(
        name="update", event="UPDATE", tables=f"{_BEFORE} {_AFTER}", rows=f"{_PLUS} UNION ALL {_MINUS}"
    ),
    "delete": _CREATE.format(name="delete", event="DELETE", tables=_BEFORE, rows=_MINUS),
}

_DROP_LIKE_INDEX = r"""
DO $$ DECLARE name text;
BEGIN
    FOR name IN SELECT indexname FROM pg_indexes
        WHERE tablename = 'tasks_app_task' AND indexname LIKE 'tasks\_app\_task\_id\_%\_like'
    LOOP EXECUTE format('DROP INDEX %I', name); END LOOP;
END $$;
"""


# Who wants to be told of events (see `interest`): worth nothing after a crash, and written without the log.
_LISTENING = """
CREATE UNLOGGED TABLE tasks_app_listening (origin text PRIMARY KEY, until timestamptz NOT NULL)
    WITH (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
"""


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0001_initial")]

    operations = [
        # Django adds it for LIKE on every key of text; ids are looked up whole, and each index costs every write.
        migrations.RunSQL(_DROP_LIKE_INDEX, migrations.RunSQL.noop),
        migrations.RunSQL(_LISTENING, "DROP TABLE tasks_app_listening"),
        *(
            migrations.RunSQL(
                sql,
                f"DROP TRIGGER tasks_app_count_{name} ON tasks_app_task; DROP FUNCTION tasks_app_count_{name}();",
            )
            for name, sql in _TRIGGERS.items()
        ),
    ]
