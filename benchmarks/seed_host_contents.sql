-- The message with its receipt and the three events of the newest of an agent's seeded tasks.
WITH seeded AS (
    SELECT task.id, task.agent_id, task.context_id, task.status, task.created_at,
        to_char(task.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS moment
    FROM tasks_app_task AS task
    JOIN agents_agent AS agent ON agent.id = task.agent_id
    WHERE agent.slug = %(slug)s
    ORDER BY task.created_at DESC
    LIMIT %(rows)s
), messages AS (
    INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
    SELECT id, 1, md5(id), 1,
        '{"messageId":"' || md5(id) || '","role":"ROLE_USER","parts":[{"text":"hello world"}],"contextId":"'
            || context_id || '","taskId":"' || id || '"}',
        'hello world', created_at
    FROM seeded
), receipts AS (
    INSERT INTO tasks_app_receipt (agent_id, owner, message_id, task_id, digest, created_at)
    SELECT agent_id, 'anonymous', md5(id), id, encode(sha256(id::bytea), 'hex'), created_at FROM seeded
)
INSERT INTO tasks_app_event (task_id, seq, kind, body, artifact_id, append, last_chunk, attempt, created_at)
SELECT seeded.id, event.seq, event.kind, event.body, event.artifact_id, false, event.last_chunk, 1, seeded.created_at
FROM seeded
CROSS JOIN LATERAL (VALUES
    (1, 1, '{"state":"TASK_STATE_WORKING","timestamp":"' || moment || '"}', NULL, false),
    (2, 2, '{"artifactId":"' || id || '.echo","parts":[{"text":"hello world"}],"name":"echo"}', id || '.echo', true),
    (3, 1, status, NULL, false)
) AS event (seq, kind, body, artifact_id, last_chunk)
