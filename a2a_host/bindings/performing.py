"""What every binding does with the request of an operation, from what it was received in to the text of its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from a2a_host.bindings.http import Headers
from a2a_host.bindings.methods import Operation
from a2a_host.bindings.service_parameters import activated
from a2a_host.bindings.sse import DialectFrames
from agents.registry import AgentEntry
from protocol.dialects import Dialect
from protocol.errors import AgentNotFoundError, InvalidParamsError
from protocol.model import Wire
from tasks_app.operations import Call
from tasks_app.tables.usage import counted

T = TypeVar("T")
Read = Callable[[Dialect, type[Wire], T], tuple[Wire, Dialect]]
"""The request of a kind in what was received, and the dialect to answer in. Raises ParseError, InvalidParamsError."""


async def perform_operation(
    call: Call, dialect: Dialect, operation: Operation, read: Read[T], received: T
) -> bytes | DialectFrames:
    """The response of an operation as its dialect writes it, or the frames of its stream. Raises A2AError.

    The call is counted, also when its request cannot be read.
    """
    with counted(call, operation.name):
        if operation.check is not None:
            operation.check(call.entry)
        request, dialect = read(dialect, operation.request, received)
        _settle_tenant(call.entry, request)
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


def _settle_tenant(entry: AgentEntry, request: Any) -> None:
    """Check the tenant of a request that has reached its agent, and forget it: with and without, it means the same.

    An agent answers to its slug and to no tenant at all; every other one is an agent that is not here.
    """
    tenant = request.tenant
    if tenant:
        if tenant != entry.slug:
            raise AgentNotFoundError(tenant)
        request.tenant = ""
