"""What clients may send over HTTP/2 that the official one does not, right and wrong."""

from __future__ import annotations

import zlib

import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, PingAckReceived, RemoteSettingsChanged, ResponseReceived, WindowUpdated
from h2.settings import SettingCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.grpc.transport.conftest import LARGEST, Site, serving
from tests.grpc.transport.raw import Answer, Raw
from tests.tasks_app.world import until

OK = {"grpc-status": "0"}
HEAD = {":status": "200", "content-type": "application/grpc"}


async def test_what_the_server_says_of_itself(raw: Raw) -> None:
    settings = await raw.wait(RemoteSettingsChanged)
    said = {int(code): change.new_value for code, change in settings.changed_settings.items()}
    assert said[SettingCodes.MAX_CONCURRENT_STREAMS] == 1000
    assert said[SettingCodes.MAX_HEADER_LIST_SIZE] == 32768
    assert said[SettingCodes.INITIAL_WINDOW_SIZE] == 1 << 20
    assert SettingCodes.MAX_FRAME_SIZE not in {k for k, v in said.items() if v != 16384}
    assert (await raw.wait(WindowUpdated, 0)).delta == (4 << 20) - 65535


async def test_an_answer(raw: Raw) -> None:
    stream_id = raw.request()
    raw.send(stream_id, b"hello")
    assert await raw.answer(stream_id) == Answer(HEAD, b"\0\0\0\0\x05hello", OK)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"content_type": "application/json"}, "415"),
        ({"content_type": None}, "415"),
        ({"content_type": "application/grpc+json"}, "415"),
        ({"content_type": "application/grpc-web"}, "415"),
        ({"_method": "GET"}, "405"),
        ({"_method": "CONNECT"}, "405"),
        ({"te": None}, "400"),
        ({"te": "gzip"}, "400"),
        ({"grpc_timeout": "soon"}, "400"),
        ({"grpc_timeout": "123456789S"}, "400"),
    ],
)
async def test_what_is_no_call_is_refused_as_http(
    raw: Raw, site: Site, changes: dict[str, str | None], status: str
) -> None:
    for end in (True, False):
        answer = await raw.answer(raw.request(end=end, **changes))
        assert answer == Answer({":status": status})
    assert await raw.echo() == b"still there"
    assert len(site.calls) == 1


@pytest.mark.parametrize(
    "content_type", ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"]
)
async def test_the_content_types_of_calls(raw: Raw, content_type: str) -> None:
    stream_id = raw.request(content_type=content_type)
    raw.send(stream_id, b"hello")
    assert (await raw.answer(stream_id)).trailers == OK


@pytest.mark.parametrize(
    "fields",
    [
        {"X-Upper": "1"},
        {"connection": "close"},
        {"transfer-encoding": "chunked"},
        {"a b": "1"},
        {"": "1"},
        {":other": "1"},
        {"a": "b\nc"},
        {"a": "b\0c"},
        {"a-bin": "?"},
        {"a-bin": "A"},
        {"te": "trailers"},
        {":path": "/test/Echo"},
    ],
)
async def test_a_malformed_head_ends_its_stream(raw: Raw, site: Site, fields: dict[str, str]) -> None:
    usual = [(":method", "POST"), (":scheme", "http"), (":path", "/test/Echo"), ("te", "trailers")]
    stream_id = raw.headers([*usual, ("content-type", "application/grpc"), *fields.items()])
    assert await raw.answer(stream_id) == Answer(reset=ErrorCodes.PROTOCOL_ERROR)
    assert site.calls == []
    assert await raw.echo() == b"still there"


@pytest.mark.parametrize("missing", [":method", ":scheme", ":path"])
async def test_a_head_lacks_something(raw: Raw, missing: str) -> None:
    stream_id = raw.request(**{missing.replace(":", "_"): None})
    assert await raw.answer(stream_id) == Answer(reset=ErrorCodes.PROTOCOL_ERROR)


async def test_host_stands_in_for_the_authority(raw: Raw, site: Site) -> None:
    stream_id = raw.request(_authority=None, host="echo.example.com")
    raw.send(stream_id, b"")
    assert (await raw.answer(stream_id)).status == ("0", None)
    assert site.calls[0].request.authority == "echo.example.com"


async def test_an_unknown_encoding(raw: Raw, site: Site) -> None:
    stream_id = raw.request(grpc_encoding="br")
    raw.send(stream_id, b"hello")
    answer = await raw.answer(stream_id)
    assert answer.status == ("12", "Messages of this grpc-encoding cannot be read.")
    assert answer.headers["grpc-accept-encoding"] == "identity,gzip,deflate"
    assert site.calls == []


def compressed(text: bytes) -> bytes:
    body = zlib.compress(text)
    return b"\1" + len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        (None, b"", ("12", "The method takes exactly one message.")),
        (None, b"\0\0\0\0\1a\0\0\0\0\1b", ("12", "The method takes exactly one message.")),
        (None, b"\0\0\0", ("13", "The request ended within a message.")),
        (None, b"\0\0\0\0\2a", ("13", "The request ended within a message.")),
        (None, b"\2\0\0\0\1a", ("13", "The flag of a message does not fit its grpc-encoding.")),
        (None, b"\1\0\0\0\1a", ("13", "The flag of a message does not fit its grpc-encoding.")),
        ("gzip", b"\1\0\0\0\1a", ("13", "A message cannot be decompressed.")),
        ("deflate", compressed(b"x" * 100)[:-1], ("13", "The request ended within a message.")),
        ("deflate", b"\1\0\0\0\5" + compressed(b"x" * 100)[5:10], ("13", "A message cannot be decompressed.")),
        ("deflate", compressed(bytes(LARGEST + 1)), ("8", "A message has at most 1048576 bytes.")),
        (None, b"\0\xff\xff\xff\xff", ("8", "A message has at most 1048576 bytes.")),
        (None, b"\0\0\x10\0\1", ("8", "A message has at most 1048576 bytes.")),
    ],
)
async def test_a_body_that_is_not_one_message(
    raw: Raw, encoding: str | None, body: bytes, status: tuple[str, str]
) -> None:
    stream_id = raw.request(grpc_encoding=encoding)
    raw.http2.send_data(stream_id, body, end_stream=True)
    assert (await raw.answer(stream_id)).status == status
    assert await raw.echo() == b"still there"


async def test_a_message_that_announces_too_much_is_refused_at_once(raw: Raw) -> None:
    """The rest of the upload is neither waited for nor kept."""
    stream_id = raw.request()
    raw.http2.send_data(stream_id, b"\0\0\x10\0\1" + bytes(1000))
    answer = await raw.answer(stream_id)
    assert answer.status == ("8", "A message has at most 1048576 bytes.")
    raw.write(DataFrame(stream_id, bytes(16000)))
    assert await raw.echo() == b"still there"


async def test_an_empty_message_that_may_be_compressed(raw: Raw, site: Site) -> None:
    for flag, body in ((b"\0", b""), (b"\1", zlib.compress(b""))):
        stream_id = raw.request(grpc_encoding="deflate")
        raw.http2.send_data(stream_id, flag + len(body).to_bytes(4, "big") + body, end_stream=True)
        assert await raw.answer(stream_id) == Answer(HEAD, bytes(5), OK)


async def test_a_message_in_every_size_of_pieces(raw: Raw) -> None:
    message = b"\0\0\0\0\x0bhello world"
    for size in range(1, len(message) + 1):
        stream_id = raw.request()
        for start in range(0, len(message), size):
            raw.http2.send_data(stream_id, message[start : start + size])
        raw.http2.end_stream(stream_id)
        assert await raw.answer(stream_id) == Answer(HEAD, message, OK)


async def test_padding_is_not_part_of_a_message_but_of_the_window(raw: Raw) -> None:
    """There is more of it than the windows have: what is credited is the whole frame."""
    await raw.wait(WindowUpdated, 0)
    stream_id = raw.request()
    message = b"\0\0\0\x50\0" + b"x" * 20480
    for number, byte in enumerate(message):
        while raw.http2.local_flow_control_window(stream_id) < 257:
            await raw.wait(WindowUpdated)
        last = number == len(message) - 1
        raw.http2.send_data(stream_id, bytes([byte]), end_stream=last, pad_length=0 if last else 255)
    assert await raw.answer(stream_id) == Answer(HEAD, message, OK)


async def test_trailers_end_a_request(raw: Raw, site: Site) -> None:
    stream_id = raw.request()
    raw.send(stream_id, b"hello", end=False)
    raw.http2.send_headers(stream_id, [("x-sum", "5")], end_stream=True)
    assert await raw.answer(stream_id) == Answer(HEAD, b"\0\0\0\0\5hello", OK)


async def test_head_and_end_without_a_message(raw: Raw) -> None:
    answer = await raw.answer(raw.request(end=True))
    assert answer.status == ("12", "The method takes exactly one message.")
    assert answer.reset is None


async def test_a_head_in_pieces(raw: Raw, site: Site) -> None:
    stream_id = raw.http2.get_next_available_stream_id()
    block = raw.http2.encoder.encode(
        [
            *((":method", "POST"), (":scheme", "http"), (":path", "/test/Echo"), ("te", "trailers")),
            *(("content-type", "application/grpc"), ("long", "x" * 5000)),
        ]
    )
    raw.write(HeadersFrame(stream_id, block[:1]))
    for start in range(1, len(block) - 1, 200):
        raw.write(ContinuationFrame(stream_id, block[start : min(start + 200, len(block) - 1)]))
    raw.write(ContinuationFrame(stream_id, block[-1:], flags=["END_HEADERS"]))
    raw.write(DataFrame(stream_id, b"\0\0\0\0\2hi", flags=["END_STREAM"]))
    await until(lambda: len(site.calls) == 1, "the call")
    assert dict(site.calls[0].request.metadata) == {"long": "x" * 5000}


async def test_frames_in_pieces(site: Site) -> None:
    async with site.connect() as raw:
        stream_id = raw.request()
        raw.send(stream_id, b"hello")
        for byte in raw.http2.data_to_send():
            raw.writer.write(bytes([byte]))
            await raw.writer.drain()
        assert await raw.answer(stream_id) == Answer(HEAD, b"\0\0\0\0\5hello", OK)


async def test_a_client_that_takes_no_table_of_fields(site: Site) -> None:
    """Answers are the same with any size of it, also one that is changed."""
    async with site.connect() as raw:
        for size in (0, 4096, 0, 100):
            raw.http2.update_settings({SettingCodes.HEADER_TABLE_SIZE: size})
            stream_id = raw.request(path="/test/Refuse", code="NOT_FOUND")
            raw.send(stream_id, b"")
            assert (await raw.answer(stream_id)).status == ("5", "%C5%BEluť: 100 %25%0A".replace("ť", "%C5%A5"))


async def test_pings_are_answered(raw: Raw) -> None:
    raw.http2.ping(b"12345678")
    assert (await raw.wait(PingAckReceived)).ping_data == b"12345678"


@pytest.mark.parametrize("path", ["/test/Echo", "/test/Gate", "/test/Stream", "/test/Chat", "/test/None"])
@pytest.mark.parametrize("when", ["head", "half", "whole", "answered"])
async def test_a_reset_in_every_state(raw: Raw, site: Site, path: str, when: str) -> None:
    """Also together with what it follows: h2 knows of the reset before anything of the call is looked at."""
    for apart in (False, True):
        stream_id = raw.request(path)
        if when == "half":
            raw.http2.send_data(stream_id, b"\0\0\0\0\x09half")
        elif when != "head":
            raw.send(stream_id, b"whole")
        if apart or when == "answered":
            raw.http2.ping(b"reached!")
            await raw.wait(PingAckReceived)
        raw.write(RstStreamFrame(stream_id, ErrorCodes.CANCEL))
        # As h2 has not been told, the same stream may be reset once more, and written to.
        raw.write(RstStreamFrame(stream_id, ErrorCodes.CANCEL), WindowUpdateFrame(stream_id, 5))
    other = raw.request(path="/test/Refuse", code="ABORTED")
    raw.send(other, b"")
    assert (await raw.answer(other)).status[0] == "10"  # without data, for which there may be no window left
    site.gate.set()
    await until(lambda: all(call.over for call in site.calls), "the end of all calls")


async def test_what_comes_after_a_reset_of_the_server(raw: Raw) -> None:
    stream_id = raw.request(path="/test/None")
    assert (await raw.answer(stream_id)).status[0] == "12"
    raw.write(
        DataFrame(stream_id, b"\0\0\0\0\1a"),
        WindowUpdateFrame(stream_id, 1),
        HeadersFrame(stream_id, raw.http2.encoder.encode([("x", "y")]), flags=["END_HEADERS", "END_STREAM"]),
    )
    assert await raw.echo() == b"still there"


@pytest.mark.parametrize(
    "wrong",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + bytes(100),
    ],
)
async def test_another_protocol(site: Site, wrong: bytes) -> None:
    async with site.connect(greet=False) as raw:
        raw.writer.write(wrong)
        assert await raw.ended() is None


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([DataFrame(0x7FFFFFFF, b"x")], ErrorCodes.PROTOCOL_ERROR),
        ([DataFrame(1, bytes(16385))], ErrorCodes.FRAME_SIZE_ERROR),
        ([HeadersFrame(2, b"\x82", flags=["END_HEADERS"])], ErrorCodes.PROTOCOL_ERROR),
        ([HeadersFrame(1, b"\xff\xff\xff\xff\xff", flags=["END_HEADERS"])], ErrorCodes.PROTOCOL_ERROR),
        ([HeadersFrame(1, b""), PingFrame(0, b"12345678")], ErrorCodes.PROTOCOL_ERROR),
        ([ContinuationFrame(1, b"", flags=["END_HEADERS"])], ErrorCodes.PROTOCOL_ERROR),
        ([WindowUpdateFrame(0, 0x7FFFFFFF)], ErrorCodes.FLOW_CONTROL_ERROR),
        ([SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: 0x80000000})], ErrorCodes.FLOW_CONTROL_ERROR),
        ([PriorityFrame(1, depends_on=1)], ErrorCodes.PROTOCOL_ERROR),
        ([PushPromiseFrame(1, 2, b"", flags=["END_HEADERS"])], ErrorCodes.PROTOCOL_ERROR),
    ],
)
async def test_frames_that_are_against_the_rules(site: Site, frames: list[Frame], code: ErrorCodes) -> None:
    async with site.connect() as raw, site.connect() as other:
        raw.write(*frames)
        assert await raw.ended() == code
        assert await other.echo() == b"still there"


async def test_more_streams_than_are_allowed(raw: Raw, site: Site) -> None:
    for _ in range(1001):
        raw.request(path="/test/Chat")
    assert await raw.ended() == ErrorCodes.PROTOCOL_ERROR
    await until(lambda: len(site.ended) == len(site.calls), "the end of the handlers")


async def test_a_client_that_goes_away_waits_for_its_calls(raw: Raw, site: Site) -> None:
    """What it begins after that is refused (RFC 9113 §6.8)."""
    stream_id = raw.request(path="/test/Gate")
    raw.send(stream_id, b"hi")
    raw.write(GoAwayFrame(0), PingFrame(0, b"12345678"))
    late_id = raw.request()
    raw.send(late_id, b"")
    raw.write()
    refusal = await raw.frame(RstStreamFrame)
    assert (refusal.stream_id, refusal.error_code) == (late_id, ErrorCodes.REFUSED_STREAM)
    site.gate.set()
    assert (await raw.frame(DataFrame)).data == b"\0\0\0\0\2hi"
    assert (await raw.frame(HeadersFrame)).flags == {"END_HEADERS", "END_STREAM"}
    assert await raw.reader.read() == b""


async def test_a_client_that_goes_away_for_an_error(raw: Raw, site: Site) -> None:
    raw.send(raw.request(path="/test/Gate"), b"")
    raw.write(GoAwayFrame(0, error_code=ErrorCodes.INTERNAL_ERROR))
    await raw.ended()
    await until(lambda: site.calls and site.calls[0].over, "the end of the call")
    site.gate.set()
    await until(lambda: site.ended == ["gate"], "the end of the handler")


async def test_the_windows_of_the_client_are_kept(site: Site) -> None:
    """A message waits for the window of its stream and of the connection, and takes what there is."""
    async with site.connect() as raw:
        raw.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10})
        stream_id = raw.request()
        raw.send(stream_id, b"x" * 95)
        assert len((await raw.wait(DataReceived, stream_id)).data) == 10
        raw.http2.increment_flow_control_window(30, stream_id)
        assert len((await raw.wait(DataReceived, stream_id)).data) == 30
        raw.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 15})
        assert len((await raw.wait(DataReceived, stream_id)).data) == 5
        raw.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        raw.http2.increment_flow_control_window(100, stream_id)
        answer = await raw.answer(stream_id)
        assert (len(answer.data), answer.trailers) == (55, OK)


async def test_streams_that_wait_for_the_connection_take_turns(raw: Raw, site: Site) -> None:
    """Whoever got something waits behind those who got nothing."""
    streams = [raw.request(path="/test/Stream") for _ in range(4)]
    raw.send(streams[0], b"x" * 10_000)
    took = 0
    while took < 65535:
        took += len((await raw.wait(DataReceived, streams[0])).data)
    for stream_id in streams[1:]:
        raw.send(stream_id, b"x" * 10_000)
    raw.write()
    await until(lambda: len(site.calls) == 4, "the calls")
    raw.http2.ping(b"reached!")
    await raw.wait(PingAckReceived)
    for stream_id in streams:
        raw.http2.increment_flow_control_window(100_000, stream_id)
    got = []
    for _ in range(8):
        raw.http2.increment_flow_control_window(1000)
        got.append((await raw.wait(DataReceived)).stream_id)
    assert got == streams * 2


async def test_uploads_are_credited(site: Site) -> None:
    """Many times the windows, in one call and over many."""
    async with serving(largest=20 << 20, room=64 << 20) as site, site.connect() as raw:
        stream_id = raw.request(path="/test/Refuse", code="ABORTED")
        left = 12 << 20
        raw.http2.send_data(stream_id, b"\0" + left.to_bytes(4, "big"))
        while left:
            room = min(raw.http2.local_flow_control_window(stream_id), 16384, left)
            if room:
                raw.http2.send_data(stream_id, bytes(room), end_stream=room == left)
                left -= room
            else:
                await raw.wait(WindowUpdated)
        assert (await raw.answer(stream_id)).status[0] == "10"


async def blocked_chat(raw: Raw) -> int:
    """A call whose handler reads nothing more, since the answer to its first message finds no room."""
    raw.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    await raw.wait(WindowUpdated, 0)
    stream_id = raw.request(path="/test/Chat")
    raw.send(stream_id, bytes(1000), end=False)
    await raw.wait(ResponseReceived, stream_id)
    return stream_id


async def test_messages_are_credited_as_they_are_read(raw: Raw) -> None:
    stream_id = await blocked_chat(raw)
    sent = 1005
    while (room := min(raw.http2.local_flow_control_window(stream_id), 10_005)) > 5:
        raw.send(stream_id, bytes(room - 5), end=False)
        sent += room
    raw.http2.ping(b"reached!")
    await raw.wait(PingAckReceived)
    assert (1 << 20) - 5 <= sent <= 1 << 20
    assert raw.http2.local_flow_control_window(stream_id) <= 5
    for window in (stream_id, None):
        raw.http2.increment_flow_control_window(2 << 20, window)
    raw.http2.end_stream(stream_id)
    answer = await raw.answer(stream_id)
    assert (answer.trailers, len(answer.data)) == (OK, sent)


async def test_a_client_that_ignores_the_window(raw: Raw) -> None:
    stream_id = await blocked_chat(raw)
    raw.write(*(DataFrame(stream_id, b"\0\0\0\x3f\xfb" + bytes(16379)) for _ in range(65)))
    assert await raw.ended() == ErrorCodes.FLOW_CONTROL_ERROR
