"""The JSON-RPC binding (§9): one plain ASGI function, from the bytes of a request to the bytes of its reply."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw

from a2a_host.bindings.errors import codes_of, error_headers, jsonrpc_error
from a2a_host.bindings.http import JSON, ClientGone, Headers, check_json_type, read_body, respond, respond_empty
from a2a_host.bindings.service_parameters import ServiceParameters, read_service_parameters
from a2a_host.bindings.sse import EventStream
from agents.registry import AgentEntry
from protocol import codec, jsonrpc
from protocol.errors import (
    A2AError,
    EnvelopeError,
    InternalError,
    MethodNotFoundError,
    ParseError,
    PushNotificationNotSupportedError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from protocol.jsonrpc import Envelope
from protocol.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from tasks_app import operations
from tasks_app.host import Host
from tasks_app.operations import Call, TaskStream

logger = logging.getLogger(__name__)

NO_ID = Raw(b"null")
_EMPTY = Raw(b"{}")


async def serve(host: Host, entry: AgentEntry, scope: Any, receive: Any, send: Any) -> EventStream | None:
    """Answer one POST to an agent's URL. A stream is returned: it is sent once all that led to it is forgotten."""
    parameters = read_service_parameters(scope)
    try:
        body = await read_body(receive, entry.max_request_bytes, parameters.declared_length)
        call = _authenticated(host, entry, parameters, body)
        check_json_type(parameters.content_type.encode("latin-1"))
        envelope = jsonrpc.decode_envelope(body)
    except ClientGone:
        pass
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
        parameters.check_version()
        if envelope.method in _STREAMS:
            frames = await _STREAMS[envelope.method](call, envelope.params or _EMPTY)
            return EventStream(frames, b'{"jsonrpc":"2.0","id":%b,"result":' % bytes(request_id), b"}")
        payload = await _call_method(call, envelope)
    except ParseError as error:
        await respond_error(send, error, NO_ID)  # JSON-RPC 2.0 §5: what is not JSON has no id
    except A2AError as error:
        await respond_error(send, error, request_id)
    except Exception:
        logger.exception("A JSON-RPC call to %s failed", call.entry.slug)
        await respond_error(send, InternalError(), request_id)
    else:
        await respond(send, 200, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (bytes(request_id), payload), JSON)
    return None


async def _serve_notification(call: Call, parameters: ServiceParameters, envelope: Envelope) -> None:
    """Do what a request without an id asks for. Nobody is told how it went (JSON-RPC 2.0 §4.1)."""
    try:
        parameters.check_version()
        if envelope.method in _STREAMS:
            frames = await _STREAMS[envelope.method](call, envelope.params or _EMPTY)
            await frames.aclose()
        else:
            await _call_method(call, envelope)
    except A2AError:
        return
    except Exception:
        logger.exception("A JSON-RPC notification to %s failed", call.entry.slug)


def _authenticated(host: Host, entry: AgentEntry, parameters: ServiceParameters, body: bytes) -> Call:
    try:
        return parameters.call(host, entry, "JSONRPC")
    except UnauthenticatedError as error:
        raise _WithId(error, _id_of(body)) from None


class _WithId(EnvelopeError):
    """A refusal that came before the envelope was looked at."""

    def __init__(self, error: UnauthenticatedError, request_id: Raw) -> None:
        super().__init__(error.message, request_id)
        self.error = error


def _id_of(body: bytes) -> Raw:
    try:
        return jsonrpc.decode_envelope(body).id or NO_ID
    except A2AError:
        return NO_ID


async def respond_error(send: Any, error: A2AError, request_id: Raw) -> None:
    """A JSON-RPC error with the HTTP status that belongs to it."""
    if isinstance(error, _WithId):
        error = error.error
    headers: Headers = error_headers(error)
    await respond(send, codes_of(error).jsonrpc_http, jsonrpc_error(error, request_id), JSON, headers)


async def _call_method(call: Call, envelope: Envelope) -> bytes:
    method = _METHODS.get(envelope.method)
    if method is None:
        raise MethodNotFoundError(envelope.method)
    return await method(call, envelope.params or _EMPTY)


async def _send_message(call: Call, params: Raw) -> bytes:
    return (await operations.send_message(call, codec.decode(SendMessageRequest, params))).payload()


async def _get_task(call: Call, params: Raw) -> bytes:
    request = codec.decode(GetTaskRequest, params)
    return (await operations.get_task(call, request)).render(request.history_length)


async def _list_tasks(call: Call, params: Raw) -> bytes:
    return (await operations.list_tasks(call, codec.decode(ListTasksRequest, params))).payload()


async def _cancel_task(call: Call, params: Raw) -> bytes:
    return (await operations.cancel_task(call, codec.decode(CancelTaskRequest, params))).render()


async def _push_not_supported(call: Call, params: Raw) -> bytes:
    raise PushNotificationNotSupportedError


async def _no_extended_card(call: Call, params: Raw) -> bytes:
    raise UnsupportedOperationError("The agent has no extended card.")


async def _stream_message(call: Call, params: Raw) -> TaskStream:
    return await operations.stream_message(call, codec.decode(SendMessageRequest, params))


async def _subscribe_to_task(call: Call, params: Raw) -> TaskStream:
    return await operations.subscribe_to_task(call, codec.decode(SubscribeToTaskRequest, params))


_METHODS: dict[str, Callable[[Call, Raw], Awaitable[bytes]]] = {
    "SendMessage": _send_message,
    "GetTask": _get_task,
    "ListTasks": _list_tasks,
    "CancelTask": _cancel_task,
    "CreateTaskPushNotificationConfig": _push_not_supported,
    "GetTaskPushNotificationConfig": _push_not_supported,
    "ListTaskPushNotificationConfigs": _push_not_supported,
    "DeleteTaskPushNotificationConfig": _push_not_supported,
    "GetExtendedAgentCard": _no_extended_card,
}
_STREAMS: dict[str, Callable[[Call, Raw], Awaitable[TaskStream]]] = {
    "SendStreamingMessage": _stream_message,
    "SubscribeToTask": _subscribe_to_task,
}
