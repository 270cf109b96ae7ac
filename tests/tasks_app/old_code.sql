-- What the code of the version before the tables of runs, deliveries and files writes, word for word: it still runs while
-- a new version has migrated the database already. See test_old_code.py and tools/migrations.py.

-- name: journal
WITH 
config AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::timestamptz[], $9::int[])
    AS k(task_id, config_id, url, token, scheme, credentials, version, created_at, cursor)
),
creation AS (
    SELECT * FROM unnest($10::text[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::timestamptz[], $16::text[],
        $17::text[], $18::text[], $19::timestamptz[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[],
        $25::text[])
    AS i(id, agent_id, owner, context_id, status, created_at, dialect, request, worker, lease_until,
        message_id, digest, accepted_id, body, search, metadata)
), fresh AS (
    INSERT INTO tasks_app_receipt (agent_id, owner, message_id, task_id, digest, created_at)
    SELECT agent_id, owner, accepted_id, id, digest, created_at FROM creation WHERE digest IS NOT NULL
    ON CONFLICT (agent_id, owner, message_id) DO NOTHING RETURNING task_id
), created AS (
    INSERT INTO tasks_app_task (id, agent_id, owner, context_id, state, status, status_at, created_at, last_seq,
        message_count, version, attempt, worker, lease_until, dialect, request, metadata,
        has_push_configs)
    SELECT id, agent_id, owner, context_id, 1, status, created_at, created_at, 0, 1, 1, 1, worker, lease_until, dialect,
        request, metadata, id IN (SELECT task_id FROM config)
    FROM creation WHERE digest IS NULL OR id IN (SELECT task_id FROM fresh)
    RETURNING id
), first_message AS (
    INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
    SELECT c.id, 1, c.message_id, 1, c.body, c.search, c.created_at FROM creation c JOIN created USING (id)
),
change AS (
    SELECT * FROM unnest($26::text[], $27::int[], $28::int[], $29::smallint[], $30::text[], $31::timestamptz[], $32::text[],
        $33::int[], $34::int[], $35::int[], $36::text[], $37::timestamptz[], $38::text[])
    AS i(id, version, attempt, state, status, status_at, metadata, last_seq, message_count, new_attempt, worker,
        lease_until, request)
), changed AS (
    UPDATE tasks_app_task t SET state = i.state, status = i.status, status_at = i.status_at, metadata = i.metadata,
        last_seq = i.last_seq, message_count = i.message_count, version = t.version + 1, attempt = i.new_attempt,
        worker = i.worker, lease_until = i.lease_until, request = coalesce(i.request, t.request),
        has_push_configs = (t.has_push_configs OR t.id IN (SELECT task_id FROM config)),
        push_due_at = CASE WHEN (t.has_push_configs OR t.id IN (SELECT task_id FROM config)) AND i.last_seq > t.last_seq THEN now() ELSE t.push_due_at END,
        cancel_requested_at = CASE WHEN i.new_attempt > t.attempt THEN NULL ELSE t.cancel_requested_at END
    FROM change i WHERE t.id = i.id AND t.version = i.version AND t.attempt = i.attempt
    RETURNING t.id, t.has_push_configs
), logged AS (
    INSERT INTO tasks_app_event (task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt,
        created_at)
    SELECT e.* FROM unnest($39::text[], $40::int[], $41::smallint[], $42::text[], $43::text[], $44::text[], $45::bool[],
        $46::bool[], $47::int[], $48::timestamptz[])
    AS e(task_id, seq, kind, body, metadata, artifact_id, append, last_chunk, attempt, created_at)
    JOIN changed ON changed.id = e.task_id
),
spoken AS (
    INSERT INTO tasks_app_message (task_id, position, message_id, role, body, search, created_at)
    SELECT m.* FROM unnest($49::text[], $50::int[], $51::text[], $52::smallint[], $53::text[], $54::text[], $55::timestamptz[])
    AS m(task_id, position, message_id, role, body, search, created_at)
    JOIN changed ON changed.id = m.task_id
),
accepted AS (
    INSERT INTO tasks_app_receipt (agent_id, owner, message_id, task_id, digest, created_at)
    SELECT a.agent_id, a.owner, a.message_id, a.task_id, a.digest, now()
    FROM unnest($56::bigint[], $57::text[], $58::text[], $59::text[], $60::text[])
    AS a(agent_id, owner, message_id, task_id, digest)
    JOIN changed ON changed.id = a.task_id
    ON CONFLICT (agent_id, owner, message_id) DO NOTHING
),
won AS (
    SELECT id FROM created UNION ALL SELECT id FROM changed
), configured AS (
    INSERT INTO tasks_app_pushconfig AS p (task_id, config_id, url, token, scheme, credentials, version, created_at,
        cursor, last_seq)
    SELECT k.*, k.cursor FROM config k JOIN won ON won.id = k.task_id
    ON CONFLICT (task_id, config_id) DO UPDATE SET url = excluded.url, token = excluded.token, scheme = excluded.scheme, credentials = excluded.credentials,
        version = excluded.version, claim = p.claim + 1, lease_until = NULL, attempts = 0, last_error = '',
        disabled_reason = '', due_at = CASE WHEN p.cursor < p.last_seq THEN now() END
),
told AS (
    SELECT pg_notify($61, payload) FROM unnest($62::text[]) AS payload
    WHERE EXISTS (SELECT FROM tasks_app_listening WHERE origin <> $63 AND until > now())
)SELECT id FROM created UNION ALL SELECT id FROM changed UNION ALL SELECT NULL FROM told UNION ALL SELECT '+' || id FROM changed WHERE has_push_configs

-- name: extend
UPDATE tasks_app_task t SET lease_until = now() + %s
    FROM unnest(%s::text[], %s::int[]) AS i(id, attempt)
    WHERE t.id = i.id AND t.attempt = i.attempt AND t.state IN (1, 2) RETURNING t.id

-- name: ring_again
UPDATE tasks_app_task SET lease_until = now() + %s
    WHERE id = ANY(%s) AND worker IS NULL AND state IN (1, 2) AND lease_until < now() RETURNING id, attempt

-- name: request_cancel
WITH asked AS (
        UPDATE tasks_app_task SET cancel_requested_at = coalesce(cancel_requested_at, now())
        WHERE id = %s AND attempt = %s AND state IN (1, 2) RETURNING id)
    SELECT pg_notify(%s, id) FROM asked

-- name: spread
WITH task AS (
        SELECT id, last_seq FROM tasks_app_task WHERE id = %s AND push_due_at IS NOT NULL
    ), due AS (
        UPDATE tasks_app_pushconfig p SET last_seq = task.last_seq, due_at = coalesce(p.due_at, now())
        FROM task WHERE p.task_id = task.id AND p.cursor < task.last_seq AND p.disabled_reason = ''
    )
    UPDATE tasks_app_task t SET push_due_at = NULL FROM task
    WHERE t.id = task.id AND t.last_seq = task.last_seq RETURNING t.id

-- name: claim
UPDATE tasks_app_pushconfig p SET claim = p.claim + 1, lease_until = now() + %s
    FROM (SELECT task_id, config_id FROM tasks_app_pushconfig
        WHERE task_id = ANY(%s) AND due_at <= now() AND (lease_until IS NULL OR lease_until < now())
        ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED) AS free
    WHERE p.task_id = free.task_id AND p.config_id = free.config_id
    RETURNING p.task_id, p.config_id, p.url, p.token, p.scheme, p.credentials, p.version, p.claim, p.cursor, p.attempts,
        (SELECT context_id FROM tasks_app_task t WHERE t.id = p.task_id)

-- name: move
UPDATE tasks_app_pushconfig SET cursor = %(seq)s, attempts = 0, last_error = '',
        due_at = CASE WHEN %(seq)s < last_seq THEN now() END,
        lease_until = CASE WHEN %(seq)s < last_seq THEN now() + %(lease)s END
    WHERE task_id = %(task)s AND config_id = %(config)s AND claim = %(claim)s RETURNING last_seq

-- name: postpone
UPDATE tasks_app_pushconfig SET due_at = now() + %(wait)s, lease_until = NULL,
        attempts = attempts + 1, last_error = %(error)s
    WHERE task_id = %(task)s AND config_id = %(config)s AND claim = %(claim)s RETURNING due_at

-- name: usage
INSERT INTO agents_usage AS u
        (agent_id, binding, version, operation, caller, calls, errors, first_seen, last_seen)
    SELECT c.* FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[],
        %s::timestamptz[], %s::timestamptz[])
        AS c(agent_id, binding, version, operation, caller, calls, errors, first_seen, last_seen)
    JOIN agents_agent a ON a.id = c.agent_id ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (agent_id, binding, version, operation, caller) DO UPDATE
    SET calls = u.calls + excluded.calls, errors = u.errors + excluded.errors,
        first_seen = least(u.first_seen, excluded.first_seen), last_seen = greatest(u.last_seen, excluded.last_seen)

-- name: agent
INSERT INTO agents_agent (slug, enabled, name, description, version, documentation_url, icon_url, provider_organization, provider_url, default_input_modes, default_output_modes, streaming, push_notifications, versions, extended_card, sign_card, is_root, kind, executor, execution, timeout_seconds, cancel_grace_seconds, max_request_bytes, open, shared_history, idempotent_sends, created_at, updated_at)
    VALUES ('old', true, 'Old', 'Old', '1', '', '', '', '', '["text/plain"]', '["text/plain"]', true, true, 'both', false, true,
        false, 'simulator', 'echo', 'web', 60, 5, 1048576, true, true, true, now(), now()) RETURNING id

-- name: apikey
INSERT INTO agents_apikey (name, owner, groups, prefix, digest, enabled, expires_at, last_used_at, created_at)
    VALUES ('old', 'old', '[]', 'a2a_', 'd', true, NULL, NULL, now())
