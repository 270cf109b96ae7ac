"""A host whose gRPC processes the tests may end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.deployment import HOST, Deployment, GrpcServer, Web


@pytest.fixture(scope="package")
def deployment(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as deployment:
        yield deployment


@pytest.fixture(scope="package")
def web(deployment: Deployment) -> Web:
    return deployment.start_web()


@pytest.fixture(scope="package")
def server(deployment: Deployment) -> GrpcServer:
    """The gRPC process that stays."""
    return deployment.start_grpc(KEEP_ALIVE_SECONDS="0.5")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of a self-signed certificate for the loopback address, and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "grpc.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(encoding))
    paths[1].write_bytes(private)
    return paths
