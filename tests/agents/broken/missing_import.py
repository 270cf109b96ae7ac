"""Needs what is not installed."""

from __future__ import annotations

import no_such_dependency  # noqa: F401
