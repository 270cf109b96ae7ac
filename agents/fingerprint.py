"""What the tables of agents and keys hold, in a few numbers: they tell whether word of a change was lost."""

from __future__ import annotations

# The tables are small, and the order of their rows does not count. Triggers move updated_at of an agent with whatever
# its card says (agents/migrations/0002, 0003); notes stand beside it. The last use of a key is no change.
FINGERPRINT = """
SELECT concat_ws(' ',
    (SELECT sum(hashtextextended(concat_ws(' ', id, extract(epoch FROM updated_at)), 0)) FROM agents_agent),
    (SELECT sum(hashtextextended(n::text, 0)) FROM agents_cardnote n),
    (SELECT sum(hashtextextended(concat_ws(' ', id, state), 0)) FROM agents_signingkey),
    (SELECT sum(hashtextextended(concat_ws(' ', id, owner, digest, groups, extract(epoch FROM expires_at)), 0))
        FROM agents_apikey WHERE enabled))"""
