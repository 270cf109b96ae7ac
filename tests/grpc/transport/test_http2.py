"""How fields are read and written."""

from __future__ import annotations

import hpack
import pytest

from a2a_host.bindings.grpc.transport.http2 import PlainEncoder, RememberingDecoder
from a2a_host.bindings.grpc.transport.metadata import MalformedError, entries, written
from a2a_host.bindings.grpc.transport.request import NotGrpcError, read_request

HEAD = [(":method", "POST"), (":scheme", "http"), (":path", "/a/B"), ("te", "trailers")]
CALL = [(name.encode(), value.encode()) for name, value in [*HEAD, ("content-type", "application/grpc")]]


def test_what_is_remembered_is_forgotten_when_numbers_mean_something_else() -> None:
    encoder, decoder = hpack.Encoder(), RememberingDecoder(1000)
    first, second = [(":method", "POST"), ("a", "1")], [(":method", "POST"), ("b", "2")]
    blocks = [encoder.encode(first) for _ in range(3)]
    assert blocks[1] == blocks[2] != blocks[0]
    for block in blocks:
        assert list(decoder.decode(block)) == first
    added = encoder.encode(second)
    assert list(decoder.decode(added)) == second
    assert encoder.encode(second) == blocks[1]
    for _ in range(2):
        assert list(decoder.decode(blocks[1])) == second
    assert list(decoder.decode(encoder.encode(first))) == first


def test_no_more_is_remembered_than_a_client_needs() -> None:
    decoder = RememberingDecoder(1000)
    for number in range(0x81, 0x81 + 40):
        assert len(list(decoder.decode(bytes([number])))) == 1
    assert len(decoder._known) == 16


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 5000])
def test_fields_that_are_written_are_read(size: int) -> None:
    fields = [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"x" * (size + 1), b"\xff" * size)]
    encoder, decoder = PlainEncoder(), hpack.Decoder(100_000)
    decoder.max_allowed_table_size = 0
    for _ in range(2):
        assert list(decoder.decode(encoder.encode(fields), raw=True)) == fields


@pytest.mark.parametrize(
    ("text", "value"), [(b"", b""), (b"AA==", b"\0"), (b"AA", b"\0"), (b"AP8", b"\0\xff"), (b" AP8= ", b"\0\xff")]
)
def test_binary_metadata(text: bytes, value: bytes) -> None:
    assert entries(b"a-bin", text) == [("a-bin", value)]


def test_binary_metadata_joined_by_commas() -> None:
    assert entries(b"a-bin", b"AA==,AP8, ,AQ") == [("a-bin", value) for value in (b"\0", b"\0\xff", b"", b"\1")]


@pytest.mark.parametrize("text", [b"A", b"AAAAA", b"_-", b"A=A", b"\xc5"])
def test_what_is_no_base64(text: bytes) -> None:
    with pytest.raises(MalformedError):
        entries(b"a-bin", text)


def test_metadata_as_fields() -> None:
    assert written([("a", "ž"), ("b-bin", b"\0")]) == [(b"a", "ž".encode()), (b"b-bin", b"AA")]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(b"2H", 7200.0), (b"3M", 180.0), (b"99999999S", 99999999.0), (b"5m", 0.005), (b"6u", 6e-6), (b"0n", 0.0)],
)
def test_timeouts(text: bytes, seconds: float) -> None:
    assert read_request([*CALL, (b"grpc-timeout", text)]).timeout == pytest.approx(seconds)


@pytest.mark.parametrize("text", [b"", b"1", b"1h", b"-1S", b"1.5S", b"1 S", b"1S1S", "١S".encode()])
def test_what_is_no_timeout(text: bytes) -> None:
    with pytest.raises(NotGrpcError):
        read_request([*CALL, (b"grpc-timeout", text)])


def test_a_request_without_more() -> None:
    request = read_request(CALL)
    assert (request.path, request.authority, request.encoding) == ("/a/B", "", "identity")
    assert (request.timeout, request.metadata) == (None, [])
