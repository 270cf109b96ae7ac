"""Imports a name that is gone."""

from __future__ import annotations

from tests.agents.support import no_such_name  # noqa: F401
