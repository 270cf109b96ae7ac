"""What the page of an agent shows of things that the apps above this one know. They fill it in when they are loaded."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.safestring import SafeString

from agents.models import Agent

PANELS: dict[str, Callable[[Agent], SafeString]] = {}
"""By the name of the read-only field."""
