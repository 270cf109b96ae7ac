"""Agents that the host serves, and the keys of those who may call them.

`full_clean` of an agent and what hangs on it holds the rules of §4.4.1: what passes it makes a valid card. Rows are
saved by `registration`, `signing_keys` and the admin only. Triggers announce every change to all processes
(`registry`).
"""

from __future__ import annotations

from agents.models.agent import SLUG_MAX as SLUG_MAX
from agents.models.agent import WEB_URL as WEB_URL
from agents.models.agent import Agent as Agent
from agents.models.agent import text_modes as text_modes
from agents.models.api_key import ApiKey as ApiKey
from agents.models.card import AgentExtension as AgentExtension
from agents.models.card import CardNote as CardNote
from agents.models.card import Skill as Skill
from agents.models.signing_key import SigningKey as SigningKey
from agents.models.usage import Usage as Usage
