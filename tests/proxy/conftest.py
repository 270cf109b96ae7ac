"""Two web processes, two gRPC processes and two workers on one database, behind nginx with deploy/nginx.conf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from a2a_host.services.processes import Process
from tests.support.callers import make_client
from tests.support.deployment import Deployment, GrpcServer, Web
from tests.support.grpc_peer import GrpcPeer
from tests.support.nginx import MISSING, NGINX, Nginx
from tests.support.peers import PEERS, Peer

AGENTS = [
    ("worker-echo", "--simulator", "echo", "--execution", "worker"),
    ("flood", "--executor", "tests.proxy.executors.Flood"),
]
SETTINGS = {"KEEP_ALIVE_SECONDS": "0.5", "LEASE_SECONDS": "2", "SHUTDOWN_GRACE_SECONDS": "1"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without nginx there is nothing to test here."""
    if NGINX is None:
        for item in items:
            if "/tests/proxy/" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=MISSING))


@dataclass
class Site:
    """The processes, and callers of one owner in front of the proxy or of one process."""

    deployment: Deployment
    client: httpx.Client
    webs: list[Web]
    grpcs: list[GrpcServer]
    workers: list[Process]
    nginx: Nginx
    headers: dict[str, str] = field(default_factory=dict)

    def at(self, slug: str, binding: str = "jsonrpc") -> Peer:
        """An agent behind the proxy."""
        if binding == "grpc":
            return GrpcPeer(self.client, self.nginx.grpc_port, slug, self.headers)
        return PEERS[binding](self.client, self.nginx.port, slug, self.headers)

    def replica(self, number: int, slug: str, binding: str = "jsonrpc") -> Peer:
        """An agent at one process, without the proxy."""
        if binding == "grpc":
            return GrpcPeer(self.client, self.grpcs[number].port, slug, self.headers)
        return PEERS[binding](self.client, self.webs[number].port, slug, self.headers)


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        deployment.run(*(("agent", "register", *agent, "--open") for agent in AGENTS))
        yield deployment


@pytest.fixture(scope="package")
def site(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Everything answers. Tests that end a process start it again."""
    webs = [deployment.start_web(**SETTINGS) for _ in range(2)]
    grpcs = [deployment.start_grpc(**SETTINGS) for _ in range(2)]
    workers = [deployment.start_worker(**SETTINGS) for _ in range(2)]
    nginx = Nginx(tmp_path_factory.mktemp("nginx"), [web.port for web in webs], [grpc.port for grpc in grpcs])
    headers = {"a2a-version": "1.0", "authorization": f"Bearer {deployment.api_key}"}
    try:
        with make_client() as client:
            yield Site(deployment, client, webs, grpcs, workers, nginx, headers)
    finally:
        nginx.close()
