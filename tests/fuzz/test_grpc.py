"""Bad messages and metadata to both gRPC services: a status that names the fault, and nothing stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, Parse, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import note
from hypothesis import strategies as st

from tests.fuzz.conftest import KEY, inputs
from tests.fuzz.documents import GRPC_V0_3, V1, Document
from tests.fuzz.http_inputs import own_id
from tests.fuzz.judging import give_away, task_ids
from tests.fuzz.spoiling import Draw, damaged, spoiled, written
from tests.fuzz.stored import Ledger
from tests.support.deployment import Deployment, GrpcServer

SERVICES: dict[str, tuple[Any, dict[str, Document]]] = {"1.0": (a2a_pb2, V1), "0.3": (a2a_v0_3_pb2, GRPC_V0_3)}
COUNTS = {"1.0": 1500, "0.3": 1500}
_STRANGE = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS, grpc.StatusCode.DEADLINE_EXCEEDED}
_METADATA = (
    *(("a2a-version", "1.0"), ("a2a-version", "0.3"), ("a2a-version", "9"), ("a2a-version", ""), ("a2a-agent", "")),
    *(("a2a-agent", "none"), ("a2a-agent", "x" * 2000), ("authorization", ""), ("authorization", "Basic x")),
    *(("x-api-key", "x"), ("a2a-extensions", ",,"), ("odd-bin", b"\xff\x00"), ("a2a-version", "1.0, 1.0")),
)

pytestmark = pytest.mark.timeout(0)


@dataclass(frozen=True)
class Call:
    """One call: the bytes of its message and its metadata."""

    method: str
    message: bytes
    metadata: tuple[tuple[str, str | bytes], ...]


@st.composite
def calls(drawn: st.DrawFn, version: str) -> Call:
    """Calls of a service: valid ones, spoiled as JSON where protobuf can still say it, then in their bytes."""
    draw = Draw(drawn)
    module, documents = SERVICES[version]
    names = list(documents)
    method = names[draw.below(len(names))]
    document = own_id(draw, documents[method])
    kind: Any = GetMessageClass(_method(module, method).input_type)
    try:
        message = Parse(written(spoiled(draw, document)), kind(), ignore_unknown_fields=True)
    except (ParseError, UnicodeDecodeError):
        message = Parse(written(document), kind())
    usual = (("a2a-agent", "echo"), ("authorization", f"Bearer {KEY}"))
    odd = tuple(_METADATA[draw.below(len(_METADATA))] for _ in range(max(0, draw.below(8) - 5)))
    metadata = tuple(pair for pair in usual if pair[0] not in dict(odd)) + odd
    return Call(method, damaged(draw, message.SerializeToString()), metadata)


def _method(module: Any, name: str) -> Any:
    return module.DESCRIPTOR.services_by_name["A2AService"].methods_by_name[name]


@pytest.fixture
def channel(grpc_server: GrpcServer) -> Iterator[grpc.Channel]:
    with grpc_server.channel() as channel:
        yield channel


@pytest.mark.parametrize("version", list(SERVICES))
def test_bad_calls(channel: grpc.Channel, deployment: Deployment, version: str) -> None:
    ledger = Ledger(deployment)
    module, _ = SERVICES[version]

    @inputs(COUNTS[version], calls(version))
    def try_one(call: Call) -> None:
        note(f"sent: {call!r}")
        try:
            for reply in _ask(channel, module, call):
                ledger.add(task_ids(MessageToDict(reply)))
        except grpc.RpcError as refused:
            _judge(refused)

    try_one()
    ledger.settle()


def _ask(channel: grpc.Channel, module: Any, call: Call) -> Iterator[Message]:
    method = _method(module, call.method)
    path = f"/{module.DESCRIPTOR.package}.A2AService/{call.method}"
    read = GetMessageClass(method.output_type).FromString
    if method.server_streaming:
        yield from channel.unary_stream(path, None, read)(call.message, timeout=20, metadata=call.metadata)
    else:
        yield channel.unary_unary(path, None, read)(call.message, timeout=20, metadata=call.metadata)


def _judge(refused: Any) -> None:
    code, details = refused.code(), refused.details()
    assert code not in _STRANGE, (code, details)
    assert code is not grpc.StatusCode.INTERNAL, details
    assert details
    trailing = b"".join(v if isinstance(v, bytes) else v.encode() for _, v in refused.trailing_metadata())
    assert not give_away(details.encode() + trailing), details
