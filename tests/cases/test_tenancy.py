"""Area tenancy: tenants in paths, bodies and queries, and the endpoint that all agents share (§8.3.2, a2a.proto)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.cases.reading import at_work, state
from tests.support.callers import Caller
from tests.support.peers import JsonRpcPeer, Peer, RestPeer, envelope, message
from tests.support.refusals import refusal_of_rest, refusal_of_rpc


class OwnPathPeer(RestPeer):
    """HTTP+JSON at the agent's own URL, with the tenant in the path."""

    @property
    def root(self) -> str:
        return f"/agents/{self.slug}/{self.slug}"


class SharedPathPeer(RestPeer):
    """HTTP+JSON at the shared endpoint, with the tenant in the path."""

    @property
    def root(self) -> str:
        return f"/a2a/{self.slug}"


class OwnParamsPeer(JsonRpcPeer):
    """JSON-RPC at the agent's own URL, with the tenant in the parameters."""

    def call(self, method: str, params: str | Mapping[str, Any] | None) -> dict[str, Any]:
        assert not isinstance(params, str)
        return super().call(method, {"tenant": self.slug, **(params or {})})


class SharedParamsPeer(OwnParamsPeer):
    """The same at the shared endpoint."""

    @property
    def path(self) -> str:
        return "/a2a"


class KitPathPeer(JsonRpcPeer):
    """JSON-RPC where clients post to that know nothing but a base URL."""

    @property
    def path(self) -> str:
        return f"/agents/{self.slug}/a2a/v1/"


PEERS: list[type[Peer]] = [OwnPathPeer, SharedPathPeer, OwnParamsPeer, SharedParamsPeer, KitPathPeer]


@pytest.fixture(params=PEERS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[Peer]:
    """Each way to say a tenant in turn."""
    found: type[Peer] = request.param
    return found


def to(caller: Caller, kind: type[Peer], slug: str) -> Any:
    return kind(caller.client, caller.web.port, slug, caller.headers)


@pytest.mark.case("U09")
@pytest.mark.case("U11")
@pytest.mark.spec("8.3.2")
def test_a_task_is_one_whichever_way_names_its_agent(alice: Caller, kind: type[Peer]) -> None:
    hold = to(alice, kind, "hold")
    task = at_work(hold)["id"]
    for other in [alice.jsonrpc("hold"), alice.rest("hold"), *(to(alice, every, "hold") for every in PEERS)]:
        assert state(other.get(task)) == "WORKING"
        assert [found["id"] for found in other.list()["tasks"]] == [task]
    assert state(hold.cancel(task)) == "CANCELED"
    assert state(alice.jsonrpc("hold").get(task)) == "CANCELED"


@pytest.mark.case("U11")
@pytest.mark.usefixtures("grpc_server")
def test_grpc_finds_what_others_made_and_the_other_way_round(alice: Caller, kind: type[Peer]) -> None:
    """Its requests name the agent as their tenant."""
    here, grpc = to(alice, kind, "hold"), alice.at("hold", "grpc")
    assert state(grpc.get(at_work(here)["id"])) == "WORKING"
    task = at_work(grpc)["id"]
    assert state(here.cancel(task)) == "CANCELED"
    with alice.refused_while_running("TASK_NOT_FOUND"):
        alice.at("echo", "grpc").get(task)


@pytest.mark.case("U11")
@pytest.mark.spec("8.3.2")
@pytest.mark.parametrize("kind", [OwnPathPeer, SharedPathPeer])
def test_streams_at_a_tenant(alice: Caller, kind: type[Peer]) -> None:
    echo, hold = to(alice, kind, "echo"), to(alice, kind, "hold")
    with echo.say_streaming("hi") as stream:
        assert stream.rest()[-1].state == "COMPLETED"
    task = at_work(hold)["id"]
    with hold.subscribe(task) as stream:
        assert stream.next().state == "WORKING"
        hold.cancel(task)
        assert stream.rest()[-1].state == "CANCELED"


@pytest.mark.case("U11")
@pytest.mark.spec("8.3.2")
def test_streams_of_a_tenant_in_the_parameters(alice: Caller) -> None:
    for path in ("/agents/echo", "/a2a"):
        params = {"tenant": "echo", "message": message()}
        headers = alice.headers | {"content-type": "application/json"}
        body = envelope("SendStreamingMessage", params)
        events = alice.client.post(alice.web.url + path, content=body, headers=headers).text.split("\n\n")
        results = [json.loads(e.partition("data: ")[2])["result"] for e in events if e.startswith("id")]
        assert results[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.case("U09")
@pytest.mark.case("U11")
@pytest.mark.parametrize("tenant", ["steps", "no-such-agent", "hidden", "Echo", "é"])
def test_at_its_own_url_an_agent_answers_to_its_slug_only(alice: Caller, tenant: str) -> None:
    echo, rpc = alice.rest("echo"), alice.jsonrpc("echo")
    task = echo.say()["id"]
    with alice.nothing_stored():
        for call in (
            lambda: echo.call("POST", f"/{tenant}/message:send", {"message": message()}),
            lambda: echo.call("GET", f"/{tenant}/tasks/{task}"),
            lambda: echo.call("GET", f"/{tenant}/tasks"),
            lambda: echo.call("POST", f"/{tenant}/tasks/{task}:cancel"),
            lambda: echo.call("POST", f"/{tenant}/tasks/{task}:subscribe"),
            lambda: echo.get(task, tenant=tenant),
            lambda: echo.list(tenant=tenant),
            lambda: echo.send({"tenant": tenant, "message": message()}),
            lambda: echo.stream({"tenant": tenant, "message": message()}),
            lambda: rpc.post(envelope("GetTask", {"tenant": tenant, "id": task})),
        ):
            try:
                response: Any = call()
            except Exception as refused:
                response = refused
            refusal = response if not isinstance(response, httpx.Response) else rpc_refusal(response)
            assert (refusal.reason, refusal.status) == ("AGENT_NOT_FOUND", 404)
            assert refusal.metadata == {"agent": tenant}


def rpc_refusal(response: httpx.Response) -> Any:
    return refusal_of_rpc(response.status_code, response.json())


@pytest.mark.case("U09")
@pytest.mark.parametrize("tenant", ["", "echo"])
def test_the_agents_slug_and_none_mean_the_same(alice: Caller, tenant: str) -> None:
    """A message that was sent without a tenant and is sent again with one is the same message."""
    sent = message()
    first = alice.rest("echo").send({"message": sent})["task"]
    assert alice.rest("echo").send({"tenant": tenant, "message": sent})["task"] == first
    assert alice.jsonrpc("echo").send({"tenant": tenant, "message": sent})["task"] == first
    assert to(alice, SharedPathPeer, "echo").send({"message": sent})["task"] == first
    assert alice.rest("echo").list(tenant=tenant)["totalSize"] == 1


@pytest.mark.case("R14")
def test_the_tenant_of_the_path_wins(alice: Caller) -> None:
    for kind in (OwnPathPeer, SharedPathPeer):
        echo = to(alice, kind, "echo")
        task = echo.send({"tenant": "steps", "message": message()})["task"]
        assert echo.get(task["id"], tenant="steps") == task


@pytest.mark.case("U09")
def test_another_agents_task_is_not_found(alice: Caller, kind: type[Peer]) -> None:
    task = alice.rest("hold").start()["id"]
    echo = to(alice, kind, "echo")
    with alice.refused_while_running("TASK_NOT_FOUND"):
        echo.get(task)
    with alice.refused_while_running("TASK_NOT_FOUND"):
        echo.cancel(task)
    assert echo.list()["tasks"] == []


@pytest.mark.case("U09")
@pytest.mark.parametrize("tenant", ["no-such-agent", "hidden"])
def test_an_agent_that_is_absent_or_disabled_looks_the_same_at_the_shared_endpoint(alice: Caller, tenant: str) -> None:
    rpc, rest = to(alice, SharedParamsPeer, tenant), to(alice, SharedPathPeer, tenant)
    response = rpc.post(envelope("GetTask", {"tenant": tenant, "id": "none"}))
    refused = rpc_refusal(response)
    assert (refused.code, refused.reason, refused.metadata) == (-32000, "AGENT_NOT_FOUND", {"agent": tenant})
    with alice.refused("AGENT_NOT_FOUND") as refusal:
        rest.get("none")
    assert refusal.value.metadata == {"agent": tenant}
    with alice.refused("AGENT_NOT_FOUND"):
        rest.send({"message": message()})


@pytest.mark.case("U09")
@pytest.mark.parametrize("params", [None, {}, {"tenant": ""}, {"tenant": None}, {"tenant": 5}, [], "hi"])
def test_the_shared_endpoint_needs_a_tenant(alice: Caller, params: Any) -> None:
    response = to(alice, SharedParamsPeer, "echo").post(envelope("ListTasks", json.dumps(params)))
    refused = rpc_refusal(response)
    assert (refused.reason, refused.fields) == ("INVALID_PARAMS", ["tenant"])
    rest = alice.client.get(f"{alice.web.url}/a2a/tasks", headers=alice.headers)
    refused = refusal_of_rest(rest.status_code, rest.json())
    assert (refused.reason, refused.fields) == ("INVALID_PARAMS", ["tenant"])


@pytest.mark.case("U11")
def test_the_shared_endpoint_takes_the_tenant_of_body_and_query(alice: Caller) -> None:
    url, headers = f"{alice.web.url}/a2a", alice.headers | {"content-type": "application/a2a+json"}
    body = json.dumps({"tenant": "echo", "message": message()})
    task = alice.client.post(f"{url}/message:send", content=body, headers=headers).json()["task"]
    found = alice.client.get(f"{url}/tasks/{task['id']}?tenant=echo", headers=headers)
    assert found.json() == task
    listed = alice.client.get(f"{url}/tasks?pageSize=5&tenant=echo", headers=headers)
    assert [one["id"] for one in listed.json()["tasks"]] == [task["id"]]
    elsewhere = alice.client.get(f"{url}/tasks/{task['id']}?tenant=steps", headers=headers)
    assert refusal_of_rest(elsewhere.status_code, elsewhere.json()).reason == "TASK_NOT_FOUND"


@pytest.mark.spec("9.5")
def test_the_shared_endpoint_reads_envelopes_as_every_endpoint(alice: Caller) -> None:
    peer = to(alice, SharedParamsPeer, "echo")
    for body, reason, id in [
        ('{"jsonrpc":"2.0","id":4,"method":', "PARSE_ERROR", None),
        ("[]", "INVALID_REQUEST", None),
        ('{"jsonrpc":"1.0","id":4,"method":"GetTask"}', "INVALID_REQUEST", 4),
    ]:
        response = peer.post(body)
        assert refusal_of_rpc(response.status_code, response.json(), id).reason == reason
    notification = '{"jsonrpc":"2.0","method":"GetTask","params":{"tenant":"echo","id":"none"}}'
    assert peer.post(notification).status_code == 204
    with alice.refused("METHOD_NOT_FOUND"):
        peer.call("Nope", {})
    with alice.refused("INVALID_PARAMS", "id"):
        peer.call("GetTask", {})
    response = peer.post(envelope("GetTask", {"tenant": "echo", "id": "x"}), content_type="text/plain")
    assert response.status_code == 415


@pytest.mark.case("U07")
@pytest.mark.spec("7.4")
def test_the_shared_endpoint_asks_who_is_calling(anonymous: Caller) -> None:
    for kind in (SharedParamsPeer, SharedPathPeer):
        closed = to(anonymous, kind, "order-agent")
        with anonymous.refused("UNAUTHENTICATED"):
            closed.get("none")
    wrong = to(anonymous, SharedPathPeer, "echo").with_headers(authorization="Bearer wrong")
    with anonymous.refused("UNAUTHENTICATED"):
        wrong.get("none")


@pytest.mark.spec("13.4")
def test_the_shared_endpoint_keeps_each_agents_size_limit(alice: Caller) -> None:
    big = json.dumps({"tenant": "small", "message": message("x" * 4096)})
    headers = alice.headers | {"content-type": "application/json"}
    with alice.nothing_stored():
        for path, body in [
            ("/a2a", envelope("SendMessage", big)),
            ("/a2a/small/message:send", big),
            ("/a2a/message:send", big),
        ]:
            response = alice.client.post(alice.web.url + path, content=body, headers=headers)
            assert response.status_code == 413
            assert "larger than 2048 bytes" in response.text


@pytest.mark.case("R11")
@pytest.mark.parametrize(
    ("verb", "path", "status", "allow"),
    [
        ("GET", "/a2a", 405, "POST, OPTIONS"),
        ("GET", "/a2a/", 405, "POST, OPTIONS"),
        ("PUT", "/a2a/echo/tasks", 405, "GET, HEAD, OPTIONS"),
        ("GET", "/a2a/echo/nope", 404, None),
        ("GET", "/a2a/echo", 404, None),
        ("POST", "/a2a/echo/", 404, None),
        ("GET", "/a2a//tasks", 404, None),
        ("GET", "/a2a/%0A/tasks", 404, None),
        ("GET", "/agents/echo/a2a/v1/", 405, "POST, OPTIONS"),
        ("GET", "/agents/echo/a2a/v1", 405, "POST, OPTIONS"),
        ("POST", "/agents/echo/a2a/v1/x", 404, None),
        ("OPTIONS", "/a2a", 204, None),
        ("OPTIONS", "/a2a/echo/tasks", 204, None),
    ],
)
def test_no_html_at_the_shared_endpoint(alice: Caller, verb: str, path: str, status: int, allow: str | None) -> None:
    response = alice.client.request(verb, alice.web.url + path, headers=alice.headers)
    assert (response.status_code, response.headers.get("allow")) == (status, allow)
    if status != 204:
        assert response.headers["content-type"] == "application/a2a+json"
        assert refusal_of_rest(status, response.json()).status == status


@pytest.mark.spec("8.3.2")
def test_a_card_names_the_tenant_of_the_shared_endpoint(alice: Caller) -> None:
    url = f"{alice.web.url}/a2a/echo/.well-known/agent-card.json"
    card = alice.client.get(url).json()
    assert card["supportedInterfaces"] == [
        {
            "url": f"{alice.web.url}/a2a",
            "protocolBinding": binding,
            "tenant": "echo",
            "protocolVersion": "1.0",
        }
        for binding in ("JSONRPC", "HTTP+JSON")
    ]
    own = alice.client.get(f"{alice.web.url}/agents/echo/.well-known/agent-card.json").json()
    assert (card["name"], card["skills"], card["capabilities"]) == (own["name"], own["skills"], own["capabilities"])
    head = alice.client.head(url)
    assert (head.status_code, head.content, head.headers["content-type"]) == (200, b"", "application/json")
    assert alice.client.post(url).status_code == 405
    assert alice.client.get(url.replace("echo", "no-such-agent")).status_code == 404


@pytest.mark.spec("8.6")
@pytest.mark.parametrize("path", ["/a2a/echo/.well-known/agent-card.json", "/a2a-tasks/echo/.well-known/agent.json"])
def test_the_cards_of_other_addresses_are_cached_by_their_etags(anonymous: Caller, path: str) -> None:
    url = anonymous.web.url + path
    first = anonymous.client.get(url)
    assert first.headers["cache-control"] == "public, max-age=60"
    head = anonymous.client.head(url)
    assert (head.status_code, head.content) == (200, b"")
    assert (head.headers["etag"], head.headers["content-length"]) == (first.headers["etag"], str(len(first.content)))
    again = anonymous.client.get(url, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert anonymous.client.post(url).status_code == 405


@pytest.mark.spec("3.6")
def test_the_paths_of_0_3_have_the_tenant_in_front(alice: Caller) -> None:
    headers = {"authorization": alice.headers["authorization"]}
    said = {"messageId": "m-0.3", "role": "ROLE_USER", "content": [{"text": "hi"}]}
    url = f"{alice.web.url}/a2a/echo/v1"
    task = alice.client.post(f"{url}/message:send", json={"message": said}, headers=headers).json()["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    found = alice.client.get(f"{url}/tasks/{task['id']}", headers=headers).json()
    assert found == alice.client.get(f"{alice.web.url}/agents/echo/v1/tasks/{task['id']}", headers=headers).json()
    assert alice.client.get(f"{url.replace('echo', 'steps')}/tasks/{task['id']}", headers=headers).status_code == 404


@pytest.mark.parametrize("path", ["/a2a/v1", "/a2a/v1/"])
def test_without_an_agent_at_the_root_its_place_is_the_shared_endpoint(alice: Caller, path: str) -> None:
    headers = alice.headers | {"content-type": "application/json"}
    for tenant, reason in [("echo", "TASK_NOT_FOUND"), ("", "INVALID_PARAMS")]:
        body = envelope("GetTask", {"tenant": tenant, "id": "none"})
        assert rpc_refusal(alice.client.post(alice.web.url + path, content=body, headers=headers)).reason == reason


@pytest.mark.case("U11")
def test_push_configs_of_a_tenant(alice: Caller) -> None:
    task = alice.rest("hold").start()["id"]
    path = f"/tasks/{task}/pushNotificationConfigs"
    for kind in (OwnPathPeer, SharedPathPeer):
        assert to(alice, kind, "hold").call("GET", path).get("configs", []) == []
        with alice.refused_while_running("TASK_NOT_FOUND"):
            to(alice, kind, "echo").call("GET", path)
    with alice.refused_while_running("AGENT_NOT_FOUND"):
        alice.rest("hold").call("GET", f"/echo{path}")
    for kind in (OwnParamsPeer, SharedParamsPeer):
        found = to(alice, kind, "hold").call("ListTaskPushNotificationConfigs", {"taskId": task})
        assert found.get("configs", []) == []
        with alice.refused_while_running("TASK_NOT_FOUND"):
            to(alice, kind, "echo").call("ListTaskPushNotificationConfigs", {"taskId": task})
    alice.rest("hold").cancel(task)
