"""The JSON-RPC envelope (cases J01 to J13, W25, W33)."""

from __future__ import annotations

import pytest

from protocol.codec import decode
from protocol.errors import A2AError, EnvelopeError, InvalidParamsError, InvalidRequestError, ParseError
from protocol.jsonrpc import ID_MAX_BYTES, decode_envelope
from protocol.requests import GetExtendedAgentCardRequest, GetTaskRequest, SendMessageRequest
from tests.protocol.support import send

pytestmark = pytest.mark.spec("9.3")


def body(id: str | None = '"q1"', method: str = '"GetTask"', params: str | None = "{}", rest: str = "") -> bytes:
    members = [
        '"jsonrpc":"2.0"',
        *([f'"id":{id}'] if id is not None else []),
        f'"method":{method}',
        *([f'"params":{params}'] if params is not None else []),
    ]
    return ("{" + ",".join(members) + rest + "}").encode()


def refused(data: bytes) -> tuple[str, bytes]:
    """(message, id to reply with) of a body that is no request."""
    with pytest.raises(EnvelopeError) as error:
        decode_envelope(data)
    assert isinstance(error.value, InvalidRequestError)
    return error.value.message, bytes(error.value.id)


BATCH = "The request must be one object; batches are not supported."
BAD_ID = "The id must be a string, an integer or null."
BAD_VERSION = 'The member jsonrpc must be "2.0".'
BAD_METHOD = "The method must be a non-empty string."


def test_reads_the_parts_of_a_request() -> None:
    envelope = decode_envelope(body(params='{"id": "t1"}'))
    assert envelope.method == "GetTask"
    assert envelope.params is not None
    assert bytes(envelope.params) == b'{"id": "t1"}'
    assert envelope.id is not None


@pytest.mark.parametrize(
    "id",
    [
        *('"7"', "7", "0", "-7", "9007199254740993", "null", '""', '"\\u00e9\\n"', '"žluť"'),
        pytest.param("9" * 4000, id="4000 digits"),
        pytest.param('"' + "x" * 4000 + '"', id="4000 letters"),
    ],
)
def test_keeps_the_id_byte_for_byte(id: str) -> None:
    envelope = decode_envelope(body(id=id))
    assert envelope.id is not None
    assert bytes(envelope.id) == id.encode()


@pytest.mark.parametrize(
    "id",
    [
        *("1.5", "1.0", "1e3", "true", "false", "{}", "[]", "[1]", '"\\ud800"'),
        pytest.param("9" * (ID_MAX_BYTES + 1), id="too many digits"),
        pytest.param('"' + "x" * ID_MAX_BYTES + '"', id="too many letters"),
    ],
)
def test_refuses_other_ids(id: str) -> None:
    assert refused(body(id=id)) == (BAD_ID, b"null")


def test_without_an_id_it_is_a_notification() -> None:
    envelope = decode_envelope(body(id=None))
    assert envelope.id is None


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":4,"method":',
        b"",
        b" ",
        b"\xef\xbb\xbf{}",
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"GetTask"} x',
        b'{"jsonrpc":"2.0","id":1,"method":"Get\xff"}',
        b"[" * 5000,
        b"\xff",
        b"hello",
    ],
    ids=repr,
)
@pytest.mark.spec("9.5")
def test_refuses_what_is_not_json(data: bytes) -> None:
    with pytest.raises(ParseError):
        decode_envelope(data)


@pytest.mark.parametrize("data", [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]', b"1", b'"x"', b"null"])
def test_refuses_batches_and_scalars(data: bytes) -> None:
    assert refused(data) == (BATCH, b"null")


@pytest.mark.parametrize("version", ['"1.0"', "2.0", '"2"', "null", "{}"])
def test_refuses_other_versions_and_keeps_the_id(version: str) -> None:
    data = f'{{"jsonrpc":{version},"id":"q1","method":"GetTask","params":{{}}}}'.encode()
    assert refused(data) == (BAD_VERSION, b'"q1"')


def test_refuses_a_missing_version() -> None:
    assert refused(b'{"id":9007199254740993,"method":"GetTask"}') == (BAD_VERSION, b"9007199254740993")


@pytest.mark.parametrize("method", ['""', "5", "null", "[]", '"\\ud800"'])
def test_refuses_a_method_without_a_name(method: str) -> None:
    assert refused(body(method=method)) == (BAD_METHOD, b'"q1"')


def test_refuses_a_missing_method() -> None:
    assert refused(b'{"jsonrpc":"2.0","id":1}') == (BAD_METHOD, b"1")


def test_a_bad_request_without_id_is_answered_with_null() -> None:
    assert refused(b'{"jsonrpc":"2.0"}') == (BAD_METHOD, b"null")


def test_a_bad_id_comes_before_other_faults() -> None:
    assert refused(b'{"jsonrpc":"1.0","id":1.5}') == (BAD_ID, b"null")


@pytest.mark.parametrize("method", ["getTask", "Nope", "tasks/get", "message/send"])
def test_leaves_the_method_to_the_binding(method: str) -> None:
    assert decode_envelope(body(method=f'"{method}"')).method == method


def test_ignores_unknown_members_and_lets_the_last_of_two_win() -> None:
    envelope = decode_envelope(body(rest=',"extra":{"a":[1]},"id":8,"method":"CancelTask"'))
    assert (envelope.method, envelope.id and bytes(envelope.id)) == ("CancelTask", b"8")


def test_params_may_be_absent() -> None:
    envelope = decode_envelope(body(params=None))
    assert envelope.params is None
    assert decode(GetExtendedAgentCardRequest, envelope.params) == GetExtendedAgentCardRequest()


@pytest.mark.parametrize("params", [None, "null", "{}"])
def test_no_params_are_empty_ones(params: str | None) -> None:
    envelope = decode_envelope(body(params=params))
    with pytest.raises(InvalidParamsError) as error:
        decode(GetTaskRequest, envelope.params)
    assert [one.field for one in error.value.violations] == ["id"]


@pytest.mark.parametrize("params", ["[]", '["t1"]', '"t1"', "5", "true"])
def test_params_must_be_an_object(params: str) -> None:
    envelope = decode_envelope(body(params=params))
    with pytest.raises(InvalidParamsError) as error:
        decode(GetTaskRequest, envelope.params)
    assert [(one.field, one.description) for one in error.value.violations] == [("", "must be an object")]


def test_lone_surrogates_are_a_fault_of_the_params() -> None:
    params = send('{"text":"x\\ud800y"}').decode()
    for rest in ("", ',"extra":1'):
        envelope = decode_envelope(body(params=params, rest=rest, id="12345678901234567890"))
        assert envelope.id is not None
        assert bytes(envelope.id) == b"12345678901234567890"
        with pytest.raises(InvalidParamsError) as error:
            decode(SendMessageRequest, envelope.params)
        assert [one.field for one in error.value.violations] == ["message.parts[0].text"]


def test_a_batch_with_a_lone_surrogate_is_a_batch() -> None:
    assert refused(b'["\\ud800"]') == (BATCH, b"null")


@pytest.mark.parametrize("where", ["params", "extra", "id"])
@pytest.mark.spec("13.4")
def test_refuses_deep_nesting(where: str) -> None:
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    data = body(rest=f',"{where}":{deep}')
    with pytest.raises(A2AError) as error:
        decode(GetTaskRequest, decode_envelope(data).params)
    assert type(error.value) is ParseError
    assert decode_envelope(body()).method == "GetTask"
