"""Rows for the tests of agents."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent
from agents.registration import register_agent
from agents.registry import Registry

ECHO = {"kind": Agent.Kind.SIMULATOR, "executor": "echo"}


def make_agent(slug: str = "echo", **values: Any) -> Agent:
    """A stored agent; the echo simulator unless `values` say otherwise."""
    agent, created = register_agent(slug, ECHO | values)
    assert created
    return agent


@pytest.fixture
def registry(db: None) -> Registry:
    """A registry that has read nothing yet."""
    return Registry()
