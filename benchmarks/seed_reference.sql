-- Completed echo tasks of the anonymous caller, as DatabaseTaskStore writes them, 30 seconds apart up to an hour ago.
INSERT INTO tasks (id, context_id, kind, owner, last_updated, status, artifacts, history, metadata, protocol_version)
SELECT
    ids.id, ids.context, 'task', '', moment,
    json_build_object('state', 'TASK_STATE_COMPLETED', 'timestamp', to_char(moment, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
    json_build_array(json_build_object(
        'artifactId', gen_random_uuid(), 'name', 'echo',
        'parts', json_build_array(json_build_object('text', 'hello world ' || n)))),
    json_build_array(json_build_object(
        'messageId', md5(n::text), 'contextId', ids.context, 'taskId', ids.id, 'role', 'ROLE_USER',
        'parts', json_build_array(json_build_object('text', 'hello world ' || n)))),
    'null', '1.0'
FROM generate_series(1, %(rows)s) AS n
CROSS JOIN LATERAL (SELECT md5('task' || n)::uuid::text AS id, md5('context' || n)::uuid::text AS context) AS ids
CROSS JOIN LATERAL (
    SELECT date_trunc('hour', now() AT TIME ZONE 'UTC') - (%(rows)s - n) * interval '30 seconds' AS moment
) AS times
