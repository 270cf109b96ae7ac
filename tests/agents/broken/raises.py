"""Fails while it is imported."""

from __future__ import annotations

raise RuntimeError("cannot\nreach   the model")
