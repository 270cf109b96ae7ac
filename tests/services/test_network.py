"""Addresses: what is listened on, reached and shown."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
from pathlib import Path

import pytest
from pytest_django import Settings

from a2a_host.management.commands.up import curl_line
from a2a_host.services.errors import ServiceError
from a2a_host.services.layout import Layout
from a2a_host.services.network import accepts, is_healthy, is_loopback, join, listen, local_address, reserve


@pytest.mark.parametrize(
    ("host", "reached", "loopback"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("localhost", "localhost", True),
        ("::1", "[::1]", True),
        ("0.0.0.0", "127.0.0.1", False),
        ("::", "127.0.0.1", False),
        ("10.1.2.3", "10.1.2.3", False),
        ("host.example", "host.example", False),
    ],
)
def test_where_a_server_is_reached(host: str, reached: str, loopback: bool) -> None:
    assert (local_address(host), is_loopback(host)) == (reached, loopback)


def test_an_address_is_listened_on_once() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ServiceError) as caught:
            listen("127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
    assert str(caught.value) == f"port {port} of 127.0.0.1 is taken: choose another one, such as PORT={port + 1}"
    listen("127.0.0.1", port).close()


def test_a_reserved_address_is_for_those_who_share_it() -> None:
    with reserve("127.0.0.1", 0) as holder:
        port = holder.getsockname()[1]
        assert not accepts("127.0.0.1", port, timeout=0.5)
        for taker in (reserve, listen):
            with pytest.raises(ServiceError, match=f"^port {port} of 127.0.0.1 is taken: choose another one, such as "):
                taker("127.0.0.1", port)
        with join("127.0.0.1", port) as server:
            server.listen()
            assert accepts("127.0.0.1", port, timeout=5)
    reserve("127.0.0.1", port).close()


def test_an_address_is_free_again_while_the_connections_of_its_server_fade() -> None:
    """Who hangs up first has to remember the connection for a minute."""
    with reserve("127.0.0.1", 0) as holder:
        port = holder.getsockname()[1]
        with join("127.0.0.1", port) as server:
            server.listen()
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                server.accept()[0].close()
                assert client.recv(1) == b""
    with reserve("127.0.0.1", port), join("127.0.0.1", port) as server:
        server.listen()
        assert accepts("127.0.0.1", port, timeout=5)


def test_an_address_of_another_machine_is_one_line() -> None:
    with pytest.raises(ServiceError) as caught:
        listen("192.0.2.1", 8000)
    assert str(caught.value) == "cannot listen on port 8000 of 192.0.2.1: Cannot assign requested address"


def test_a_server_that_does_not_answer_is_not_healthy() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert not is_healthy("127.0.0.1", port, timeout=0.05)
    assert not is_healthy("127.0.0.1", port, timeout=0.05)


def test_where_others_can_call_the_first_call_shows_the_key(settings: Settings, tmp_path: Path) -> None:
    settings.HOST, settings.LAYOUT = "0.0.0.0", Layout(tmp_path / "my data")
    settings.LAYOUT.data_dir.mkdir()
    settings.LAYOUT.credentials.write_text(json.dumps({"api_key": "a2a_secret"}))
    line = curl_line("http://127.0.0.1:1")
    assert "a2a_secret" not in line
    shown = subprocess.run(["bash", "-c", line.replace("curl", "printf '%s\\n'", 1)], capture_output=True, text=True)
    assert "Authorization: Bearer a2a_secret" in shown.stdout.splitlines()


def test_where_only_this_machine_can_call_no_key_is_needed(settings: Settings) -> None:
    settings.HOST = "127.0.0.1"
    words = shlex.split(curl_line("http://127.0.0.1:8000"))
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8000/agents/echo"]
    assert [word for word in words if "Authorization" in word] == []
