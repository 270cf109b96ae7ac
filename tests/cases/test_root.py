"""The agent at the host root (§8.2): its paths and the pages share an address, and never each other's answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.cases.reading import state
from tests.support.callers import Caller
from tests.support.deployment import Deployment, Web, wait_until
from tests.support.peers import JsonRpcPeer, RestPeer, envelope, message

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.spec("8.2")]
BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
CARD = "/.well-known/agent-card.json"


class RootRpc(JsonRpcPeer):
    path = ""


class RootRest(RestPeer):
    root = ""


@pytest.fixture(scope="module")
def root(deployment: Deployment, web: Web) -> Iterator[None]:
    """The agent `front` is there for the tests of this module."""
    deployment.run(("agent", "register", "front", "--simulator", "hold", "--open", "--root", "--name", "Front"))
    wait_until(lambda: httpx.get(web.url + CARD, trust_env=False).status_code == 200, "the agent")
    yield
    deployment.run(("agent", "register", "front", "--no-root", "--no-enabled"))
    wait_until(lambda: httpx.get(web.url + CARD, trust_env=False).status_code == 404, "no agent")


@pytest.fixture
def rpc(alice: Caller) -> RootRpc:
    return RootRpc(alice.client, alice.web.port, "front", alice.headers)


@pytest.fixture
def rest(alice: Caller) -> RootRest:
    return RootRest(alice.client, alice.web.port, "front", alice.headers)


def get(caller: Caller, path: str, **headers: str) -> httpx.Response:
    return caller.client.get(caller.web.url + path, headers=headers, follow_redirects=False)


def test_the_card_is_that_of_the_agent(anonymous: Caller) -> None:
    own = get(anonymous, f"/agents/front{CARD}")
    for path in (CARD, "/.well-known/agent.json"):
        for headers in ({}, BROWSER):
            response = get(anonymous, path, **headers)
            assert (response.status_code, response.json()) == (200, own.json())
            assert response.headers["etag"] == own.headers["etag"]
    assert own.json()["supportedInterfaces"][0]["url"] == f"{anonymous.web.url}/agents/front"


def test_its_operations_work_in_both_bindings(alice: Caller, rpc: RootRpc, rest: RootRest) -> None:
    task = rpc.start("hold 60")
    assert rest.get(task["id"])["id"] == task["id"]
    assert [one["id"] for one in rest.list()["tasks"]] == [task["id"]]
    with rest.subscribe(task["id"]) as events:
        assert events.next().response["task"]["id"] == task["id"]
        assert rest.cancel(task["id"])["status"]["state"] == "TASK_STATE_CANCELED"
    assert alice.jsonrpc("front").get(task["id"])["status"]["state"] == "TASK_STATE_CANCELED"
    with alice.refused("TASK_NOT_FOUND"):
        rest.get("none")
    with alice.refused("UNSUPPORTED_OPERATION"):
        rest.call("GET", "/extendedAgentCard")


@pytest.mark.spec("3.6")
def test_0_3_works_there(alice: Caller, rpc: RootRpc) -> None:
    parts = [{"kind": "text", "text": "hold 60"}]
    old = {"messageId": message()["messageId"], "role": "user", "kind": "message", "parts": parts}
    params: dict[str, Any] = {"message": old, "configuration": {"blocking": False}}
    task = rpc.with_headers(a2a_version=None).call("message/send", params)
    wait_until(lambda: state(rpc.get(task["id"])) == "WORKING", "the task to be at work")
    headers = {name: value for name, value in alice.headers.items() if name != "a2a-version"}
    read = get(alice, f"/v1/tasks/{task['id']}", **headers)
    assert (read.status_code, read.json()["id"]) == (200, task["id"])
    assert read.json() == get(alice, f"/agents/front/v1/tasks/{task['id']}", **headers).json()
    rpc.with_headers(a2a_version=None).call("tasks/cancel", {"id": task["id"]})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"),
        ("POST", "/message:send"),
        ("GET", "/message:send"),
        ("POST", "/v1/message:send"),
        ("GET", "/v1/nothing"),
        ("GET", "/tasks/none"),
        ("GET", "/tasks?pageSize=x"),
        ("POST", "/tasks/none:cancel"),
        ("GET", "/tasks/none/pushNotificationConfigs"),
        ("DELETE", "/tasks/none/pushNotificationConfigs/x"),
        ("PUT", "/extendedAgentCard"),
        ("POST", CARD),
    ],
)
def test_errors_are_json(alice: Caller, method: str, path: str) -> None:
    response = alice.client.request(method, alice.web.url + path, headers=alice.headers)
    assert response.status_code in (200, 400, 404, 405)
    assert response.headers["content-type"] in ("application/json", "application/a2a+json")
    assert "error" in response.json()


@pytest.mark.parametrize("path", ["/", "/tasks/", "/catalog/", "/admin/", "/tasks/none/", "/tasks/none/task.json"])
@pytest.mark.parametrize("headers", [{}, BROWSER])
def test_pages_stay_where_they_are(anonymous: Caller, path: str, headers: dict[str, str]) -> None:
    response = get(anonymous, path, **headers)
    assert response.status_code == 302
    assert response.headers["location"].split("?")[0] in ("/tasks/", "/admin/login/")


@pytest.mark.parametrize("path", ["/tasks", "/tasks/0199c8f0-0000-7000-8000-000000000001"])
def test_a_browser_is_led_to_the_page_and_a_client_to_the_agent(alice: Caller, path: str) -> None:
    page = get(alice, path, **BROWSER)
    assert (page.status_code, page.headers["location"]) == (301, f"{path}/")
    answer = get(alice, path, **alice.headers)
    assert answer.headers["content-type"] == "application/a2a+json"


def test_browsers_of_other_origins_may_call(anonymous: Caller) -> None:
    for path in ("/", "/message:send", "/tasks/x:cancel"):
        response = anonymous.client.options(anonymous.web.url + path, headers={"origin": "https://app.e.test"})
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (204, "*")


def test_without_it_nothing_is_there(anonymous: Caller, deployment: Deployment) -> None:
    deployment.run(("agent", "disable", "front"))
    wait_until(lambda: get(anonymous, CARD).status_code == 404, "no agent")
    post = anonymous.client.post(anonymous.web.url, content=envelope("SendMessage", {"message": message()}))
    assert post.status_code == 403
    assert get(anonymous, "/message:send").status_code == 404
    assert get(anonymous, "/tasks").status_code == 301
    deployment.run(("agent", "enable", "front"))
    wait_until(lambda: get(anonymous, CARD).status_code == 200, "the agent")


@pytest.mark.parametrize("path", ["/a2a/v1", "/a2a/v1/"])
def test_json_rpc_where_clients_post_to_that_know_only_a_base_url(alice: Caller, path: str) -> None:
    content = envelope("SendMessage", {"message": message("hold 0")})
    headers = alice.headers | {"content-type": "application/json"}
    task = alice.client.post(alice.web.url + path, content=content, headers=headers).json()["result"]["task"]
    assert alice.rest("front").get(task["id"]) == task


def test_the_shared_endpoint_without_a_tenant(alice: Caller) -> None:
    headers = alice.headers | {"content-type": "application/json"}
    content = envelope("SendMessage", {"message": message("hold 0")})
    task = alice.client.post(f"{alice.web.url}/a2a", content=content, headers=headers).json()["result"]["task"]
    assert alice.client.get(f"{alice.web.url}/a2a/tasks/{task['id']}", headers=headers).json() == task
    assert alice.client.get(f"{alice.web.url}/a2a/echo/tasks/{task['id']}", headers=headers).status_code == 404
