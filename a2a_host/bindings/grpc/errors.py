"""Errors as gRPC statuses (§10.6): code, message, and the google.rpc details that the other bindings send too."""

from __future__ import annotations

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from a2a_host.bindings.errors import codes_of, details_of, error_headers
from a2a_host.bindings.grpc.convert_out import message_of
from a2a_host.bindings.grpc.transport.status import StatusError
from protocol.errors import A2AError, UnavailableError

DETAILS = "grpc-status-details-bin"

_KINDS: dict[str, type[Message]] = {
    f"type.googleapis.com/{kind.DESCRIPTOR.full_name}": kind for kind in (ErrorInfo, BadRequest)
}


def status_of(error: A2AError) -> Status:
    """The google.rpc.Status of an error."""
    code = grpc.StatusCode[codes_of(error).grpc]
    status = Status(code=code.value[0], message=error.message)
    for detail in details_of(error):
        status.details.append(_packed(message_of(_KINDS[detail["@type"]], detail)))
    if isinstance(error, UnavailableError):
        status.details.append(_packed(RetryInfo(retry_delay=Duration(seconds=error.retry_after))))
    return status


def status_error(error: A2AError) -> StatusError:
    """What ends a call with an error."""
    headers = [(name.decode(), value.decode()) for name, value in error_headers(error)]
    details = (DETAILS, status_of(error).SerializeToString())
    return StatusError(grpc.StatusCode[codes_of(error).grpc], error.message, [*headers, details])


def _packed(message: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(message)
    return packed
