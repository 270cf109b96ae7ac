"""People who look at the pages, and browsers."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Agent
from tests.ui.support import make_agent


@pytest.fixture
def staff(db: None) -> Client:
    """A browser of somebody with staff rights."""
    client = Client()
    client.force_login(User.objects.create(username="support", is_staff=True))
    return client


@pytest.fixture
def echo(db: None) -> Agent:
    """The agent `echo`."""
    return make_agent()
