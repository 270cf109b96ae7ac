"""The extended card (§3.1.11) and the keys that sign cards (§8.4), over the network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jwt
import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import types as types_v03
from a2a.types import a2a_pb2 as pb
from a2a.utils.signing import create_signature_verifier

from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.old_peers import OldJsonRpc, OldRest
from tests.support.peers import envelope
from tests.support.wire import Connection, request

pytestmark = [pytest.mark.usefixtures("agents"), pytest.mark.spec("3.1.11")]
ECHO = ("--simulator", "echo", "--open", "--description", "D")
SLUGS = ("levels", "promised", "closed-levels")


@pytest.fixture(scope="module")
def agents(deployment: Deployment, web: Web) -> Iterator[None]:
    """`levels` shows callers more than the public card, `promised` says so and has nothing."""
    more = ("--extended-card", "--skill", "public", "--skill-for", "staff=secret", "--note", "For keys.")
    deployment.run(
        ("signingkey", "generate"),
        ("agent", "register", "levels", *ECHO, *more),
        ("agent", "register", "promised", *ECHO, "--extended-card"),
        ("agent", "register", "closed-levels", *ECHO, "--no-open", *more, "--versions", "1.0"),
    )
    for slug in SLUGS:
        wait_until(lambda slug=slug: httpx.get(card_url(web, slug), trust_env=False).status_code == 200, slug)  # type: ignore[misc]
    yield
    deployment.run(*(("agent", "disable", slug) for slug in SLUGS))
    deployment.query("DELETE FROM agents_signingkey")


def card_url(web: Web, slug: str) -> str:
    return f"{web.agent_url(slug)}/.well-known/agent-card.json"


def public_card(caller: Caller, slug: str) -> dict[str, Any]:
    card: dict[str, Any] = caller.client.get(card_url(caller.web, slug)).json()
    return card


def join(caller: Caller, deployment: Deployment, *groups: str) -> None:
    """Put the caller's key into groups, and wait until the host knows."""
    deployment.query("UPDATE agents_apikey SET groups = %s WHERE owner = %s", [json.dumps(groups), caller.owner])
    wanted = ["public", "secret"] if "staff" in groups else ["public"]
    wait_until(lambda: skills(over_rpc(caller)) == wanted, "the groups", patience=5)


def over_rpc(caller: Caller, slug: str = "levels") -> dict[str, Any]:
    return caller.jsonrpc(slug).call("GetExtendedAgentCard", {})


def over_rest(caller: Caller, slug: str = "levels") -> dict[str, Any]:
    return caller.rest(slug).call("GET", "/extendedAgentCard")


def skills(card: dict[str, Any]) -> list[str]:
    return [skill["id"] for skill in card["skills"]]


@pytest.mark.case("D10")
@pytest.mark.spec("13.3")
def test_each_caller_has_its_own(alice: Caller, bob: Caller, deployment: Deployment) -> None:
    join(alice, deployment, "staff")
    assert skills(over_rest(alice)) == ["public", "secret"]
    for card in (over_rpc(bob), over_rest(bob)):
        assert (skills(card), card["description"]) == (["public"], "D\n\nFor keys.")
    public = public_card(bob, "levels")
    assert (skills(public), public["description"]) == (["public"], "D")
    join(alice, deployment)
    assert skills(over_rest(alice)) == ["public"]


@pytest.mark.case("D10")
@pytest.mark.spec("7.4")
@pytest.mark.parametrize("slug", ["levels", "closed-levels"])
def test_it_needs_a_key(alice: Caller, anonymous: Caller, slug: str) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}, {"x-api-key": "wrong"}):
        for response in (
            anonymous.rest(slug).ask("GET", "/extendedAgentCard", **headers),
            anonymous.jsonrpc(slug).post(envelope("GetExtendedAgentCard"), **headers),
        ):
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith('Bearer realm="a2a-host"')
            assert "secret" not in response.text
    assert skills(over_rest(alice, slug)) == ["public"]


@pytest.mark.case("J15")
@pytest.mark.spec("9.4.8")
def test_params_may_be_left_out(alice: Caller) -> None:
    assert skills(alice.jsonrpc("levels").call("GetExtendedAgentCard", None)) == ["public"]


@pytest.mark.spec("10.4")
@pytest.mark.usefixtures("grpc_server")
def test_grpc_has_it_too(alice: Caller, anonymous: Caller) -> None:
    ask = pb.GetExtendedAgentCardRequest(tenant="levels")
    card = alice.grpc("levels").call("GetExtendedAgentCard", ask)
    assert (skills(card), card["description"]) == (["public"], "D\n\nFor keys.")
    with anonymous.refused_while_running("UNAUTHENTICATED"):
        anonymous.grpc("levels").call("GetExtendedAgentCard", ask)
    with alice.refused("EXTENDED_AGENT_CARD_NOT_CONFIGURED"):
        alice.grpc("promised").call("GetExtendedAgentCard", pb.GetExtendedAgentCardRequest(tenant="promised"))
    with alice.refused("UNSUPPORTED_OPERATION"):
        alice.grpc("echo").call("GetExtendedAgentCard", pb.GetExtendedAgentCardRequest(tenant="echo"))


@pytest.mark.case("D09")
@pytest.mark.spec("3.3.4")
def test_a_promise_without_a_card(alice: Caller, anonymous: Caller) -> None:
    assert public_card(alice, "promised")["capabilities"]["extendedAgentCard"] is True
    for caller in (alice, anonymous):
        for call in (over_rpc, over_rest):
            with caller.refused_while_running("EXTENDED_AGENT_CARD_NOT_CONFIGURED"):
                call(caller, "promised")


@pytest.mark.spec("8.6")
def test_it_is_nothing_for_shared_caches(alice: Caller) -> None:
    for path in ("/extendedAgentCard", "/v1/card"):
        response = alice.rest("levels").with_headers(a2a_version=None).ask("GET", path)
        assert response.status_code == 200
        assert response.headers["cache-control"] == "private, no-cache"


@pytest.mark.spec("3.6")
def test_0_3_has_it_under_its_own_names(alice: Caller) -> None:
    old = alice.jsonrpc("levels").with_headers(a2a_version=None)
    card = old.call("agent/getAuthenticatedExtendedCard", None)
    assert (card["protocolVersion"], card["supportsAuthenticatedExtendedCard"]) == ("0.3.0", True)
    assert skills(card) == ["public"]
    assert alice.client.get(f"{alice.web.agent_url('levels')}/v1/card", headers=old.headers).json() == card


@pytest.mark.spec("8.4.3")
def test_cards_are_verified_with_the_published_keys(alice: Caller, deployment: Deployment) -> None:
    response = alice.client.get(f"{alice.web.url}/.well-known/jwks.json")
    assert response.headers["content-type"] == "application/json"
    keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(response.json()).keys}
    asked: set[str | None] = set()

    def find(kid: str | None, jku: str | None) -> jwt.PyJWK:
        asked.add(jku)
        return keys[str(kid)]

    verify = create_signature_verifier(find, ["ES256"])
    join(alice, deployment, "staff")
    for slug in ("levels", "closed-levels"):
        for card in (public_card(alice, slug), over_rpc(alice, slug), over_rest(alice, slug)):
            verify(parse_agent_card(card))
    assert asked == {f"{alice.web.url}/.well-known/jwks.json"}


@pytest.mark.spec("8.4")
def test_an_address_that_nobody_named_is_not_vouched_for(alice: Caller) -> None:
    path = "/agents/levels/.well-known/agent-card.json"
    for host, signed in (("127.0.0.1", True), ("evil.test", False), ("localhost:1", True)):
        with Connection(alice.web.port, request("GET", path, b"", host=host)) as connection:
            assert connection.read_head() == 200
            card = json.loads(connection.read_body())
        assert ("signatures" in card) is signed
        assert card["supportedInterfaces"][0]["url"] == f"http://{host}/agents/levels"


@pytest.mark.spec("8.6")
def test_rotation_is_seen_soon_and_changes_the_etag(anonymous: Caller, deployment: Deployment) -> None:
    url = card_url(anonymous.web, "levels")
    before = anonymous.client.get(url).headers
    key_set = anonymous.client.get(f"{anonymous.web.url}/.well-known/jwks.json").headers["etag"]
    deployment.run(("signingkey", "rotate"))
    wait_until(lambda: anonymous.client.get(url).headers["etag"] != before["etag"], "the next key", patience=5)
    stale = {"if-none-match": before["etag"]}
    assert anonymous.client.get(url, headers=stale).status_code == 200
    fresh = anonymous.client.get(url)
    assert anonymous.client.get(url, headers={"if-none-match": fresh.headers["etag"]}).status_code == 304
    keys = anonymous.client.get(f"{anonymous.web.url}/.well-known/jwks.json", headers={"if-none-match": key_set})
    assert (keys.status_code, len(keys.json()["keys"])) == (200, 2)


@pytest.mark.case("D03")
def test_the_key_set_is_for_reading(anonymous: Caller) -> None:
    url = f"{anonymous.web.url}/.well-known/jwks.json"
    head = anonymous.client.head(url)
    assert (head.status_code, head.content) == (200, b"")
    assert anonymous.client.options(url).status_code == 204
    post = anonymous.client.post(url)
    assert (post.status_code, post.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert post.json()["error"]["status"] == "UNIMPLEMENTED"


@pytest.mark.case("K14")
def test_the_extended_card_in_0_3(alice: Caller, anonymous: Caller) -> None:
    rpc, rest = OldJsonRpc(alice, "levels"), OldRest(alice, "levels")
    card = rpc.call("agent/getAuthenticatedExtendedCard")
    assert rest.call("GET", "/card") == card
    assert types_v03.AgentCard.model_validate(card).supports_authenticated_extended_card is True
    assert (card["protocolVersion"], card["url"]) == ("0.3.0", alice.web.agent_url("levels"))
    assert skills(card) == skills(over_rpc(alice)) == ["public"]
    for slug, caller in (("promised", alice), ("echo", alice)):
        with caller.refused("EXTENDED_AGENT_CARD_NOT_CONFIGURED"):
            OldJsonRpc(caller, slug).call("agent/getAuthenticatedExtendedCard")
        with caller.refused("EXTENDED_AGENT_CARD_NOT_CONFIGURED"):
            OldRest(caller, slug).call("GET", "/card")
    with anonymous.refused_while_running("UNAUTHENTICATED"):
        OldJsonRpc(anonymous, "levels").call("agent/getAuthenticatedExtendedCard")
