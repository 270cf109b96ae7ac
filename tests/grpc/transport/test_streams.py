"""How many calls one connection may have open, and what is left of those that are over."""

from __future__ import annotations

import pytest
from h2.connection import H2Connection
from h2.exceptions import TooManyStreamsError
from h2.settings import SettingCodes

from a2a_host.bindings.grpc.transport.http2 import MAX_STREAMS, Http2

REQUEST = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/a/B"), ("te", "trailers")]


def call(client: H2Connection, server: Http2, *, end: bool = True) -> int:
    """A request, answered at once if it has ended; its stream."""
    stream_id = client.get_next_available_stream_id()
    client.send_headers(stream_id, REQUEST, end_stream=end)
    server.receive_data(client.data_to_send())
    if end:
        server.send_headers(stream_id, [(b":status", b"200")], end_stream=True)
        client.receive_data(server.data_to_send())
    return stream_id


def peers() -> tuple[H2Connection, Http2]:
    client, server = H2Connection(), Http2()
    client.initiate_connection()
    server.receive_data(client.data_to_send())
    client.receive_data(server.data_to_send())
    return client, server


def test_as_many_streams_as_promised_and_no_more() -> None:
    client, server = peers()
    for _ in range(MAX_STREAMS):
        call(client, server, end=False)
    assert server.open_inbound_streams == MAX_STREAMS
    client.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = MAX_STREAMS + 1
    client.remote_settings.acknowledge()
    with pytest.raises(TooManyStreamsError):
        call(client, server, end=False)


def test_streams_that_have_ended_are_forgotten_and_do_not_count() -> None:
    client, server = peers()
    idle = [call(client, server, end=False) for _ in range(MAX_STREAMS - 1)]
    most = 0
    for _ in range(300):
        call(client, server)
        most = max(most, len(server.streams))
    assert most <= MAX_STREAMS
    assert set(idle) <= server.streams.keys()


def test_few_calls_one_after_another_leave_little_behind() -> None:
    client, server = peers()
    most = 0
    for _ in range(1000):
        call(client, server)
        most = max(most, len(server.streams))
    assert most <= 128
