"""The triggers that count are not even called for what the journal writes: it costs PostgreSQL a tenth less there."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

_counting = import_module("tasks_app.migrations.0014_counting_writers")

# Writers wait for the moment that it takes to replace a trigger, and it for those under way, but not for long.
_TRIGGER = """
SET LOCAL lock_timeout = '5s';
CREATE OR REPLACE TRIGGER tasks_app_count_{event} AFTER {event} ON tasks_app_task
    REFERENCING {tables} FOR EACH STATEMENT {when}EXECUTE FUNCTION tasks_app_count_{event}();
"""
_WHEN = "WHEN (current_setting('a2a.counts', true) IS DISTINCT FROM 'written') "
_TABLES = {"insert": "NEW TABLE AS after_rows", "update": "OLD TABLE AS before_rows NEW TABLE AS after_rows"}


def _count(event: str, *, unless: str, when: str) -> str:
    function = _counting._COUNT.format(event=event, rows=_counting._ROWS[event], unless=unless)
    return function + _TRIGGER.format(event=event, tables=_TABLES[event], when=when)


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0014_counting_writers")]

    operations = [
        migrations.RunSQL(_count(event, unless="", when=_WHEN), _count(event, unless=_counting._UNLESS, when=""))
        for event in _TABLES
    ]
