"""How the host's own connections reach the database that Django is configured with."""

from __future__ import annotations

from django.db import connections
from psycopg import pq
from psycopg.conninfo import make_conninfo

# What Django says besides is for its own connections.
_KEYWORDS = {option.keyword.decode() for option in pq.Conninfo.get_defaults()} - {"client_encoding", "options"}
# Planning the journal's statement costs more than running it, and no statement's best plan depends on its parameters.
# A plan that was made while the tables were empty must not scan them when they are full; to PostgreSQL before 18 such a
# plan looks dear enough to be compiled, which takes a second for each statement.
_OPTIONS = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off"


def database_dsn() -> str:
    """The connection string of Django's default database, with every parameter of libpq that DATABASE_URL has."""
    settings = connections["default"].get_connection_params()
    kept = {name: value for name, value in settings.items() if name in _KEYWORDS and value not in (None, "")}
    return make_conninfo(**kept, client_encoding="utf8", options=f"{settings.get('options', '')} {_OPTIONS}".strip())
