-- Completed echo tasks of the anonymous callers of one agent, as the journal writes them, 30 seconds apart up to an
-- hour ago. The counters are kept by the trigger on the table.
WITH numbered AS (
    SELECT n, date_trunc('hour', now()) - (%(rows)s - n) * interval '30 seconds' AS moment
    FROM generate_series(1, %(rows)s) AS n
)
INSERT INTO tasks_app_task (
    id, agent_id, owner, context_id, state, status, status_at, created_at,
    last_seq, message_count, version, attempt, dialect, request
)
SELECT
    uuidv7(moment - now())::text, agent.id, 'anonymous', uuidv7(moment - now())::text, 3,
    '{"state":"TASK_STATE_COMPLETED","timestamp":"'
        || to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"}',
    moment, moment, 3, 1, 2, 1, 'jsonrpc/1.0', '{}'
FROM numbered, agents_agent AS agent
WHERE agent.slug = %(slug)s
