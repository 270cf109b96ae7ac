"""The address of the web process, held from the first moment, and the question whether it answers."""

from __future__ import annotations

import errno
import http.client
import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from a2a_host.services.errors import ServiceError

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """Take the address. Connections wait in its queue until a web process takes them, also while one is replaced.

    Raises ServiceError when it is taken or not to be had.
    """
    with _explained(host, port, "PORT"):
        listener = _bind(host, port, socket.SO_REUSEADDR)
        listener.listen(_BACKLOG)
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """Take the address for a process of this user that listens on it with `join`; keep the socket as long.

    Raises ServiceError when it is taken or not to be had.
    """
    with _explained(host, port, "GRPC_PORT"):
        holder = _bind(host, port, socket.SO_REUSEADDR)
    # Bound alone, and only now shared: a second host that tries the same finds the address taken.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return holder


def join(host: str, port: int) -> socket.socket:
    """A bound socket at an address that is reserved, or that nobody has. Raises ServiceError."""
    with _explained(host, port, "GRPC_PORT"):
        return _bind(host, port, socket.SO_REUSEADDR, socket.SO_REUSEPORT)


def _bind(host: str, port: int, *options: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    bound = socket.socket(family, kind, protocol)
    try:
        for option in options:
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


@contextmanager
def _explained(host: str, port: int, setting: str) -> Iterator[None]:
    """An OSError inside as a ServiceError that names the setting."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ServiceError(
                f"port {port} of {host} is taken: choose another one, such as {setting}={port + 1}"
            ) from error
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error
        raise ServiceError(f"cannot listen on port {port} of {host}: {reason}") from error


def local_address(host: str) -> str:
    """Where a process on this machine reaches a server that listens on `host`, as it is written in a URL."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1"
    return f"[{address}]" if address.version == 6 else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_healthy(host: str, port: int, timeout: float) -> bool:
    """Whether `GET /healthz` is answered with 200 within `timeout` seconds."""
    connection = http.client.HTTPConnection(local_address(host).strip("[]"), port, timeout=timeout)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def accepts(host: str, port: int, timeout: float) -> bool:
    """Whether a server takes a connection within `timeout` seconds."""
    try:
        socket.create_connection((local_address(host).strip("[]"), port), timeout).close()
    except OSError:
        return False
    return True
