"""The JSON-RPC binding (§9): one plain ASGI function, from the bytes of a request to the bytes of its reply."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from msgspec import Raw

from a2a_host.bindings.draft_stream import DraftFrames
from a2a_host.bindings.errors import codes_of, error_headers, jsonrpc_error
from a2a_host.bindings.http import (
    JSON,
    STRANGER_BYTES,
    ClientGone,
    Headers,
    check_json_type,
    read_body,
    respond,
    respond_empty,
)
from a2a_host.bindings.methods import METHODS, find_method
from a2a_host.bindings.performing import activated_headers, perform_operation
from a2a_host.bindings.service_parameters import ServiceParameters, read_service_parameters
from a2a_host.bindings.sse import MEDIA_TYPE, EventStream, Frames
from a2a_host.bindings.uploads import read_request
from agents.registry import AgentEntry
from protocol import jsonrpc
from protocol.dialects import Dialect
from protocol.dialects.drafts import Draft
from protocol.dialects.v1 import V1_0
from protocol.errors import (
    A2AError,
    EnvelopeError,
    InternalError,
    ParseError,
    RequestTooLargeError,
    UnauthenticatedError,
)
from protocol.jsonrpc import Envelope
from protocol.model import Wire
from tasks_app.execution.host import Host
from tasks_app.operations import Call

logger = logging.getLogger(__name__)

NO_ID = Raw(b"null")
_EMPTY = Raw(b"{}")


async def serve(host: Host, entry: AgentEntry, scope: Any, receive: Any, send: Any) -> EventStream | None:
    """Answer one POST to an agent's URL. A stream is returned: it is sent once all that led to it is forgotten."""
    parameters = read_service_parameters(scope)
    try:
        call = parameters.call(host, entry, "JSONRPC")
        body = await read_body(receive, entry.max_request_bytes, parameters.declared_length)
    except UnauthenticatedError as error:
        await _refuse_stranger(error, parameters, receive, send)
        return None
    except ClientGone:
        return None
    answering = answer(call, parameters, body, send)
    del body
    return await answering


async def _refuse_stranger(error: UnauthenticatedError, parameters: ServiceParameters, receive: Any, send: Any) -> None:
    """The refusal has the id of the request (JSON-RPC 2.0 §5), unless that is in a body as big as only callers send."""
    try:
        request_id = _id_of(await read_body(receive, STRANGER_BYTES, parameters.declared_length))
    except RequestTooLargeError:
        request_id = NO_ID
    except ClientGone:
        return
    await respond_error(send, error, request_id)


async def answer(call: Call, parameters: ServiceParameters, request: bytes | Envelope, send: Any) -> EventStream | None:
    """Answer a request that was read, as its bytes or already as the envelope in them. A stream is returned."""
    try:
        check_json_type(parameters.content_type)
        envelope = request if isinstance(request, Envelope) else jsonrpc.decode_envelope(request)
        del request
    except EnvelopeError as error:
        await respond_error(send, error, error.id)
    except A2AError as error:
        await respond_error(send, error, NO_ID)
    else:
        if envelope.id is None:
            await _serve_notification(call, parameters, envelope)
            await respond_empty(send, 204)
        else:
            return await _serve_call(send, call, parameters, envelope, envelope.id)
    return None


async def _serve_call(
    send: Any, call: Call, parameters: ServiceParameters, envelope: Envelope, request_id: Raw
) -> EventStream | None:
    try:
        result = await attempt(call, parameters, envelope)
    except A2AError as error:
        await respond_error(send, error, id_of_error(error, request_id), _reads_events_only(parameters, envelope))
        return None
    head, tail = response_around(request_id)
    if not isinstance(result, bytes):
        return EventStream(result, head, tail)
    await respond(send, 200, head + result + tail, JSON, activated_headers(call))
    return None


async def _serve_notification(call: Call, parameters: ServiceParameters, envelope: Envelope) -> None:
    """Do what a request without an id asks for. Nobody is told how it went (JSON-RPC 2.0 §4.1)."""
    with suppress(A2AError):
        result = await attempt(call, parameters, envelope)
        if not isinstance(result, bytes):
            await result.aclose()


def _id_of(body: bytes) -> Raw:
    try:
        return jsonrpc.decode_envelope(body).id or NO_ID
    except A2AError:
        return NO_ID


def _reads_events_only(parameters: ServiceParameters, envelope: Envelope) -> bool:
    """Whether the caller takes nothing but events for an answer, even to what is refused.

    Clients of 0.3 do: there each event is a response, which may be an error (0.3 §7.2, §7.9). In 1.0 a refusal is no
    stream.
    """
    method = METHODS.get(envelope.method)
    if method is None or method.operation.stream is None or method.dialect.version != "0.3":
        return False
    return "text/event-stream" in parameters.accept.lower()


async def respond_error(send: Any, error: A2AError, request_id: Raw, in_event: bool = False) -> None:
    """A JSON-RPC error with its HTTP status; with `in_event` as the one event of a stream, if the status is 200."""
    headers: Headers = error_headers(error)
    status, body, media_type = codes_of(error).jsonrpc_http, jsonrpc_error(error, request_id), JSON
    if in_event and status == 200:
        body, media_type = b"data: %b\n\n" % body, MEDIA_TYPE
    await respond(send, status, body, media_type, headers)


def response_around(request_id: Raw) -> tuple[bytes, bytes]:
    """What stands before and after the result in a response (JSON-RPC 2.0 §5)."""
    return b'{"jsonrpc":"2.0","id":%b,"result":' % bytes(request_id), b"}"


def id_of_error(error: A2AError, request_id: Raw) -> Raw:
    """The id of an error response: what is not JSON has none (JSON-RPC 2.0 §5)."""
    return NO_ID if isinstance(error, ParseError) else request_id


async def attempt(call: Call, parameters: ServiceParameters, envelope: Envelope) -> bytes | Frames:
    """`perform` in the version that the parameters name. Raises A2AError and nothing else."""
    try:
        return await perform(call, parameters.served_version(call.entry.versions), envelope)
    except A2AError:
        raise
    except Exception:
        logger.exception("A JSON-RPC call to %s failed", call.entry.slug)
        raise InternalError from None


async def perform(call: Call, version: str | None, envelope: Envelope) -> bytes | Frames:
    """The result of a request in the JSON of its version, or the frames of its stream.

    `version` is what the request says beside its method. Raises A2AError.
    """
    dialect, operation = find_method(envelope.method, version, call.entry.versions)
    call.dialect = f"{call.binding}/{dialect.version}"
    answer = await perform_operation(call, dialect, operation, _read_params, envelope)
    if dialect is V1_0 and not isinstance(answer, bytes) and isinstance(answer.dialect, Draft):
        return DraftFrames(answer, call, answer.dialect)
    return answer


def _read_params(dialect: Dialect, kind: type[Wire], envelope: Envelope) -> tuple[Wire, Dialect]:
    """The request in the parameters, which are taken out: a big body is not kept while the agent works."""
    params, envelope.params = envelope.params or _EMPTY, None
    return read_request(dialect, kind, params)
