"""The journal counts what it writes in the statement that writes it; the triggers count for everybody else."""

from django.db import migrations

_COUNT = """
CREATE OR REPLACE FUNCTION tasks_app_count_{event}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {unless}INSERT INTO tasks_app_taskcount AS c (agent_id, owner, state, shard, tasks)
    SELECT agent_id, owner, state, pg_backend_pid() % 16, sum(n) FROM ({rows}) AS changed
    GROUP BY agent_id, owner, state HAVING sum(n) <> 0 ORDER BY agent_id, owner, state
    ON CONFLICT (agent_id, owner, state, shard) DO UPDATE SET tasks = c.tasks + excluded.tasks;
    RETURN NULL;
END $$;
"""
_UNLESS = "IF current_setting('a2a.counts', true) = 'written' THEN RETURN NULL; END IF;\n    "
_PLUS = "SELECT agent_id, owner, state, 1 AS n FROM after_rows"
_MINUS = "SELECT agent_id, owner, state, -1 AS n FROM before_rows"
_ROWS = {"insert": _PLUS, "update": f"{_PLUS} UNION ALL {_MINUS}"}


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0013_operate_webhooks")]

    operations = [
        migrations.RunSQL(
            _COUNT.format(event=event, rows=rows, unless=_UNLESS), _COUNT.format(event=event, rows=rows, unless="")
        )
        for event, rows in _ROWS.items()
    ]
