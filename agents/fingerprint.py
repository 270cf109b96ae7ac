"""What the tables of agents and keys hold, in a few numbers: they tell whether word of a change was lost."""

from __future__ import annotations

# The tables are small, and the order of their rows does not count. Rows are hashed as they are, not as text, which
# depends on the time zone of who reads. The last use of a key is no change.
_ROWS = "(SELECT sum(hash_record_extended(r, 0)) FROM {} r)"
FINGERPRINT = f"""
SELECT concat_ws(' ',
    {_ROWS.format("agents_agent")},
    {_ROWS.format("agents_skill")},
    {_ROWS.format("agents_agentextension")},
    {_ROWS.format("agents_cardnote")},
    (SELECT sum(hashtextextended(concat_ws(' ', id, state), 0)) FROM agents_signingkey),
    (SELECT sum(hashtextextended(concat_ws(' ', id, owner, digest, groups, extract(epoch FROM expires_at)), 0))
        FROM agents_apikey WHERE enabled))"""
