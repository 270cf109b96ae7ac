"""The admin of agents and keys."""

from __future__ import annotations

from agents.admin import agent as agent
from agents.admin import api_key as api_key
from agents.admin import signing_key as signing_key
from agents.admin import usage as usage
