"""What every binding does between the struct of a request and the JSON of its answer."""

from __future__ import annotations

from typing import Any

from a2a_host.bindings.http import Headers
from a2a_host.bindings.methods import Operation
from a2a_host.bindings.service_parameters import activated
from a2a_host.bindings.sse import DialectFrames
from agents.registry import AgentEntry
from protocol.dialects import Dialect
from protocol.errors import AgentNotFoundError, InvalidParamsError
from protocol.model import Wire
from tasks_app.operations import Call


async def perform_operation(call: Call, dialect: Dialect, operation: Operation, request: Wire) -> bytes | DialectFrames:
    """The response of an operation in the JSON of a dialect, or the frames of its stream. Raises A2AError."""
    settle_tenant(call.entry, request)
    try:
        if operation.stream is not None:
            stream = await operation.stream(call, request)
            return DialectFrames(stream, dialect, operation.response, activated_headers(call))
        assert operation.run is not None
        return dialect.write(operation.response, await operation.run(call, request))
    except InvalidParamsError as error:
        raise InvalidParamsError(dialect.renamed(operation.request, error.violations), error.message) from None


def activated_headers(call: Call) -> Headers | None:
    """The headers of a reply that was made with extensions of the agent (§3.2.6)."""
    return [(name.encode(), value.encode()) for name, value in activated(call)] or None


def settle_tenant(entry: AgentEntry, request: Any) -> None:
    """Check the tenant of a request that has reached its agent, and forget it: with and without, it means the same.

    An agent answers to its slug and to no tenant at all; every other one is an agent that is not here.
    """
    tenant = request.tenant
    if tenant:
        if tenant != entry.slug:
            raise AgentNotFoundError(tenant)
        request.tenant = ""
