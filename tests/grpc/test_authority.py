"""Agents by host name: what the authority of a call names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as pb_v03
from a2a.types import a2a_pb2 as pb

from protocol.ids import new_id
from tests.support.deployment import Deployment, GrpcServer
from tests.support.refusals import Refused, refusal_of_grpc

PUBLIC = {"PUBLIC_URL": "https://Agents.example.com:8443", "GRPC_PUBLIC_URL": "grpc.example.com:443"}


@pytest.fixture(scope="module")
def site(postgres: str, broker: str) -> Iterator[Deployment]:
    with Deployment(postgres, broker) as site:
        site.run(("agent", "register", "at-the-root", "--simulator", "echo", "--open", "--root"))
        yield site


@pytest.fixture(scope="module")
def public(site: Deployment) -> GrpcServer:
    return site.start_grpc(**PUBLIC)


@pytest.fixture(scope="module")
def local(site: Deployment) -> GrpcServer:
    return site.start_grpc()


def sent(version: str, tenant: str) -> tuple[str, bytes]:
    """The path and the message of a SendMessage. 0.3 has no tenants."""
    if version == "1.0":
        said = pb.Message(message_id=new_id(), role=pb.ROLE_USER, parts=[pb.Part(text="hi")])
        request = pb.SendMessageRequest(tenant=tenant, message=said)
        return "/lf.a2a.v1.A2AService/SendMessage", request.SerializeToString()
    old = pb_v03.Message(message_id=new_id(), role=pb_v03.ROLE_USER, content=[pb_v03.Part(text="hi")])
    return "/a2a.v1.A2AService/SendMessage", pb_v03.SendMessageRequest(request=old).SerializeToString()


def answering(
    site: Deployment, server: GrpcServer, authority: str, version: str = "1.0", tenant: str = "", named: str = ""
) -> str:
    """The agent that has the task that a call makes. Raises Refused."""
    path, message = sent(version, tenant)
    kind: Any = pb.SendMessageResponse if version == "1.0" else pb_v03.SendMessageResponse
    with server.channel(("grpc.default_authority", authority)) as channel:
        call = channel.unary_unary(path, response_deserializer=kind.FromString)
        try:
            task = call(message, timeout=20, metadata=[("a2a-agent", named)] if named else []).task
        except grpc.RpcError as error:
            raise refusal_of_grpc(error) from None
    query = "SELECT slug FROM agents_agent a JOIN tasks_app_task t ON t.agent_id = a.id WHERE t.id::text = %s"
    ((slug,),) = site.query(query, [task.id])
    return str(slug)


@pytest.mark.spec("10.2")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize(
    ("authority", "slug"),
    [
        ("agents.example.com", "at-the-root"),
        ("agents.example.com:8443", "at-the-root"),
        ("grpc.example.com", "at-the-root"),
        ("echo.agents.example.com", "echo"),
        ("ECHO.Agents.Example.COM:443", "echo"),
        ("data.grpc.example.com:1", "data"),
        ("data.grpc.example.com.", "data"),
        ("echo", "echo"),
        ("echo:50051", "echo"),
        ("data.internal", "data"),
        ("nothing.internal", "at-the-root"),
        ("localhost:50051", "at-the-root"),
        ("127.0.0.1:50051", "at-the-root"),
        ("[::1]:50051", "at-the-root"),
    ],
)
def test_an_authority_names_an_agent(
    site: Deployment, public: GrpcServer, authority: str, slug: str, version: str
) -> None:
    assert answering(site, public, authority, version) == slug


@pytest.mark.spec("10.2")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize(
    "authority",
    ["nothing.agents.example.com", "a.echo.agents.example.com", ".agents.example.com", "x.grpc.example.com"],
)
def test_a_name_below_the_public_one_that_is_no_agents(
    site: Deployment, public: GrpcServer, authority: str, version: str
) -> None:
    with pytest.raises(Refused) as refused:
        answering(site, public, authority, version)
    assert refused.value.reason == "AGENT_NOT_FOUND"


@pytest.mark.spec("10.2")
def test_metadata_and_tenant_win(site: Deployment, public: GrpcServer) -> None:
    authority = "echo.agents.example.com"
    assert answering(site, public, authority, named="data") == "data"
    assert answering(site, public, authority, "0.3", named="data") == "data"
    assert answering(site, public, authority, tenant="data") == "data"
    assert answering(site, public, "nothing.agents.example.com", named="data") == "data"
    assert answering(site, public, authority, tenant="echo") == "echo"


@pytest.mark.spec("10.2")
@pytest.mark.parametrize(
    ("authority", "slug"),
    [
        ("agents.example.com", "at-the-root"),
        ("echo.agents.example.com", "echo"),
        ("x.agents.example.com", "at-the-root"),
    ],
)
def test_without_a_public_name_the_first_label_counts(
    site: Deployment, local: GrpcServer, authority: str, slug: str
) -> None:
    assert answering(site, local, authority) == slug
