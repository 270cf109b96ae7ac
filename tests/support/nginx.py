"""Debian's nginx with the configuration that the project recommends, as a child of the tests on ports of their own."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from a2a_host.services.network import accepts
from a2a_host.services.processes import Process, Service
from tests.support.deployment import HOST, wait_until

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
MISSING = "needs nginx (as root: apt-get install nginx-light)"
CONFIGURATION = settings.BASE_DIR / "deploy" / "nginx.conf"

# The process is one and stays in the foreground, so that it ends with the tests; nothing of the machine is written to.
_MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/a2a-host.conf;
}}
"""


class Nginx:
    """In front of two web and two gRPC processes at these ports. `port` is that of HTTP, `grpc_port` that of gRPC."""

    def __init__(self, folder: Path, webs: Sequence[int], grpcs: Sequence[int]) -> None:
        assert NGINX is not None
        self.port, self.grpc_port = free_ports(2)
        ours = dict(zip(("127.0.0.1:8000", "127.0.0.1:8001"), webs, strict=True))
        ours |= dict(zip(("127.0.0.1:50051", "127.0.0.1:50052"), grpcs, strict=True))
        places = {f"server {place} ": f"server {HOST}:{port} " for place, port in ours.items()}
        places |= {"listen 80;": f"listen {HOST}:{self.port};", "listen 81 ": f"listen {HOST}:{self.grpc_port} "}
        (folder / "a2a-host.conf").write_text(_filled(CONFIGURATION.read_text(), places))
        (folder / "nginx.conf").write_text(_MAIN.format(folder=folder))
        command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
        self.log = folder / "nginx.log"
        self._process = Process(Service("nginx", command, self.log))
        wait_until(self._answers, "nginx")

    def close(self) -> None:
        """End it."""
        self._process.ask_to_stop()
        if not self._process.wait(5):
            self._process.kill()

    def _answers(self) -> bool:
        assert self._process.exit_code is None, f"nginx did not start: {self._process.last_words()}"
        return accepts(HOST, self.port, timeout=1.0) and accepts(HOST, self.grpc_port, timeout=1.0)


def _filled(text: str, places: dict[str, str]) -> str:
    """The configuration with other addresses, each of which it names once."""
    for place, ours in places.items():
        assert text.count(place) == 1, place
        text = text.replace(place, ours)
    return text


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which nobody listens."""
    probes = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
