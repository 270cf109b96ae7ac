"""Order, no gap, no repetition, whichever process serves (§3.5.2)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc

from protocol.ids import new_id
from tests.cases.reading import CHUNKS, assemble, at_work, state, states, texts
from tests.proxy.conftest import Site
from tests.support.deployment import HOST, wait_until
from tests.support.events import Event
from tests.support.nginx import Nginx, free_ports
from tests.support.peers import JsonRpcPeer, Peer, RestPeer, message

pytestmark = pytest.mark.timeout(400)  # Six processes start here.
BINDINGS = ["jsonrpc", "rest", "grpc"]


def follow(peer: Peer, task: str) -> list[Event]:
    """All that a subscription tells."""
    with peer.subscribe(task) as stream:
        return stream.rest()


@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_every_reader_sees_the_same_whichever_process_serves(site: Site, slug: str, binding: str) -> None:
    with site.at(slug, binding).say_streaming("steps 12 60") as stream:
        first = stream.next()
        task = first.response["task"]["id"]
        with ThreadPoolExecutor(6) as pool:
            readers = [
                pool.submit(follow, peer, task)
                for peer in (
                    *(site.at(slug, binding) for _ in range(3)),
                    *(site.replica(number, slug, binding) for number in (0, 1)),
                    site.at(slug, "rest"),
                )
            ]
            told = [[first, *stream.rest()], *(reader.result() for reader in readers)]
    for events in told:
        assert events[0].kind == "task"
        assert assemble(events) == CHUNKS[:12]
        assert states(events)[-1] == "COMPLETED"
        assert [event.id for event in events] == list(range(events[0].id, events[0].id + len(events)))
    assert len({events[-1].response["statusUpdate"]["status"]["timestamp"] for events in told}) == 1


@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_a_stream_goes_on_at_the_other_process(site: Site, slug: str, binding: str) -> None:
    """By SubscribeToTask and by sending the same message again, each time from the event that was last."""
    given = {"message": message("steps 15 40")}
    with site.replica(0, slug, binding).stream(given) as stream:
        heard = [stream.next() for _ in range(4)]
    task = heard[0].response["task"]["id"]
    other = site.replica(1, slug, binding).with_headers(last_event_id=str(heard[-1].id))
    with other.subscribe(task) as subscribed, other.stream(given) as attached:
        for stream in (subscribed, attached):
            again, *rest = stream.rest()
            assert (again.kind, again.id) == ("task", heard[-1].id)
            assert assemble([again]) == assemble(heard)
            assert [e.id for e in rest] == list(range(again.id + 1, again.id + 1 + len(rest)))
            assert assemble([*heard, *rest]) == CHUNKS[:15]
            assert states(rest)[-1] == "COMPLETED"
    with other.stream(given) as late:  # the task has ended
        assert late.rest()[1:] == rest
    assert texts(site.at(slug, binding).get(task)["artifacts"]) == [CHUNKS[:15]]


@pytest.mark.spec("3.1.6")
@pytest.mark.parametrize("slug", ["steps", "steps-worker"])
def test_a_stream_of_0_3_goes_on_at_the_other_process(site: Site, slug: str) -> None:
    """`tasks/resubscribe` and its path, also of a task that has ended."""
    with site.replica(0, slug).say_streaming("steps 12 50") as stream:
        heard = [stream.next() for _ in range(4)]
    task = heard[0].response["task"]["id"]
    headers = {"a2a_version": "0.3", "last_event_id": str(heard[-1].id)}
    rpc, rest = JsonRpcPeer(*at_replica(site, slug)), RestPeer(*at_replica(site, slug))

    def resubscribed() -> list[list[Event]]:
        with (
            rpc.with_headers(**headers).open("tasks/resubscribe", {"id": task}) as first,
            rest.with_headers(**headers).open("POST", f"/v1/tasks/{task}:subscribe") as second,
        ):
            return [first.rest(), second.rest()]

    for events in (*resubscribed(), *resubscribed()):
        assert [event.id for event in events] == list(range(heard[-1].id, heard[-1].id + len(events)))
        assert events[0].data.count(b"chunk ") == len(assemble(heard))
        assert sum(event.data.count(b"chunk ") for event in events) == 12
        assert b"completed" in events[-1].data.lower()


def at_replica(site: Site, slug: str) -> tuple[httpx.Client, int, str, dict[str, str]]:
    """An agent at the second web process."""
    return site.client, site.webs[1].port, slug, site.headers


@pytest.mark.spec("3.5.2")
@pytest.mark.parametrize("binding", BINDINGS)
def test_idle_streams_and_sends_that_wait_live_behind_the_proxy(site: Site, binding: str) -> None:
    hold = site.at("hold", binding)
    task = at_work(hold)["id"]
    with ThreadPoolExecutor(1) as pool, hold.subscribe(task) as stream:
        stream.next()
        if binding != "grpc":
            assert stream.wait_for_comment() == stream.wait_for_comment() == b": keep-alive"
        waiting = pool.submit(site.at("hold", binding).say, "hold 60", messageId=f"waits-{binding}")
        wait_until(lambda: hold.list(status="TASK_STATE_WORKING")["totalSize"] >= 2, "the second task")
        for found in hold.list(status="TASK_STATE_WORKING")["tasks"]:
            hold.cancel(found["id"])
        assert states(stream.rest()) == ["CANCELED"]
        assert state(waiting.result()) == "CANCELED"


def test_a_process_that_is_not_there_costs_no_call(site: Site, tmp_path: Path) -> None:
    """Refused connections go to the next process, of POST too."""
    tmp_path.chmod(0o700)
    away, grpc_away = free_ports(2)
    nginx = Nginx(tmp_path, [away, site.webs[1].port], [grpc_away, site.grpcs[1].port])
    try:
        echo = JsonRpcPeer(site.client, nginx.port, "worker-echo", site.headers)
        with ThreadPoolExecutor(4) as pool:
            tasks = list(pool.map(lambda number: echo.say(f"{number}"), range(24)))
        assert [texts(task["artifacts"]) for task in tasks] == [[[f"{number}"]] for number in range(24)]
    finally:
        nginx.close()


def test_a_card_names_the_address_of_the_proxy(site: Site) -> None:
    url = f"http://{HOST}:{site.nginx.port}/agents/echo"
    card = httpx.get(f"{url}/.well-known/agent-card.json", trust_env=False).json()
    assert url in [i["url"] for i in card["supportedInterfaces"] if i["protocolBinding"] == "HTTP+JSON"]


@pytest.mark.spec("10.2")
def test_the_name_that_was_called_names_the_agent(site: Site) -> None:
    """nginx passes it on."""
    address = f"{HOST}:{site.nginx.grpc_port}"
    with grpc.insecure_channel(address, [("grpc.default_authority", "echo.agents.example.com")]) as channel:
        said = pb.Message(message_id=new_id(), role=pb.ROLE_USER, parts=[pb.Part(text="by name")])
        task = a2a_pb2_grpc.A2AServiceStub(channel).SendMessage(pb.SendMessageRequest(message=said), timeout=30).task
    assert [part.text for part in task.artifacts[0].parts] == ["by name"]
