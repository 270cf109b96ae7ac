"""Agents without a model behind them, one module each: what they do is exact, so integrations can be tested on them."""

from __future__ import annotations

from agents.runtimes.simulators.ask import Ask
from agents.runtimes.simulators.auth import Auth
from agents.runtimes.simulators.boom import Boom
from agents.runtimes.simulators.common import Simulator
from agents.runtimes.simulators.data import Data
from agents.runtimes.simulators.direct import Direct
from agents.runtimes.simulators.echo import Echo
from agents.runtimes.simulators.hold import Hold
from agents.runtimes.simulators.reject import Reject
from agents.runtimes.simulators.relay import Relay
from agents.runtimes.simulators.steps import Steps
from agents.runtimes.simulators.wait import Wait

SIMULATORS: dict[str, type[Simulator]] = {
    "echo": Echo,
    "data": Data,
    "steps": Steps,
    "hold": Hold,
    "ask": Ask,
    "auth": Auth,
    "direct": Direct,
    "boom": Boom,
    "reject": Reject,
    "wait": Wait,
    "relay": Relay,
}

__all__ = ["SIMULATORS", "Simulator"]
