"""Announce every change of agents, skills and keys to all processes, whoever makes it: admin, commands, psql.

The triggers run per statement: a change of many rows is one announcement, and PostgreSQL folds equal announcements of
one transaction. The time of a key's last use is left out: nobody needs to reload for it.
"""

from __future__ import annotations

from django.db import migrations

# Columns of agents_apikey whose change matters: all but last_used_at.
KEY_COLUMNS = "name, owner, prefix, digest, enabled, expires_at"

FORWARDS = f"""
CREATE FUNCTION agents_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('a2a_agents', '');
    RETURN NULL;
END $$;

CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON agents_agent
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();
CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON agents_skill
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();
CREATE TRIGGER agents_announce AFTER INSERT OR UPDATE OF {KEY_COLUMNS} OR DELETE OR TRUNCATE ON agents_apikey
    FOR EACH STATEMENT EXECUTE FUNCTION agents_announce();

-- updated_at is the Last-Modified of the card (§8.6), so it moves with every change of what the card says.
CREATE FUNCTION agents_agent_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at = greatest(NEW.updated_at, OLD.updated_at, now());
    RETURN NEW;
END $$;
CREATE TRIGGER agents_touch BEFORE UPDATE ON agents_agent
    FOR EACH ROW EXECUTE FUNCTION agents_agent_touch();

CREATE FUNCTION agents_skill_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agents_agent SET updated_at = now() WHERE id IN (OLD.agent_id, NEW.agent_id);
    RETURN NULL;
END $$;
CREATE TRIGGER agents_touch AFTER INSERT OR UPDATE OR DELETE ON agents_skill
    FOR EACH ROW EXECUTE FUNCTION agents_skill_touch();
"""

BACKWARDS = """
DROP TRIGGER agents_touch ON agents_skill;
DROP TRIGGER agents_touch ON agents_agent;
DROP TRIGGER agents_announce ON agents_apikey;
DROP TRIGGER agents_announce ON agents_skill;
DROP TRIGGER agents_announce ON agents_agent;
DROP FUNCTION agents_skill_touch();
DROP FUNCTION agents_agent_touch();
DROP FUNCTION agents_announce();
"""


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
