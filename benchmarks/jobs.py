"""What is measured: each job is one kind of load, put on the reference and on the host in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.calls import Binding, Call, HttpJson, JsonRpc, JsonRpcV03, Known, card_call
from benchmarks.client import Measure, measure
from benchmarks.databases import FEW_AGENT, FEW_ROWS, MANY_AGENT, ROWS, WORKER_AGENT
from benchmarks.grpc_load import GrpcEndpoint, measure_grpc, send_to
from benchmarks.wire import Endpoint

REFERENCE = "reference"
HOST = "host"
HTTP = "http"  # the host over HTTP+JSON
GRPC = "grpc"  # the host over gRPC
V03 = "v03"  # the host over JSON-RPC in version 0.3
OTHER = "other"  # the host again: another agent, to be compared with HOST
KNOWN_TASKS = 100

Make = Callable[[], Call]


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the servers are."""

    reference: str
    reference_many: str  # the one with ROWS tasks
    host: str
    grpc: str  # the host's address for gRPC
    api_key: str

    def reference_rpc(self) -> Endpoint:
        return Endpoint.parse(f"{self.reference}/rpc")

    def agent(self, slug: str, key: str = "") -> Endpoint:
        """An agent of the host; JSON-RPC is at its URL and HTTP+JSON below it."""
        return Endpoint.parse(f"{self.host}/agents/{slug}", {"Authorization": f"Bearer {key}"} if key else None)


@dataclass(frozen=True, slots=True)
class Variant:
    """One side of a job."""

    endpoint: Endpoint | GrpcEndpoint
    make: Make

    def measure(self, callers: int, seconds: float) -> Measure:
        """Put a load on it."""
        if isinstance(self.endpoint, GrpcEndpoint):
            return measure_grpc(self.endpoint, self.make, callers, seconds)
        return measure(self.endpoint, self.make, callers, seconds)


@dataclass(frozen=True, slots=True)
class Job:
    """One kind of load, put on each variant in turn. `group` is its name on the command line."""

    name: str
    group: str
    callers: int
    variants: Callable[[Targets], dict[str, Variant]]


def _echo(choose: Callable[[Binding], Make]) -> Callable[[Targets], dict[str, Variant]]:
    """The same call to the reference, and to the host's echo in both bindings."""

    def variants(targets: Targets) -> dict[str, Variant]:
        reference, echo = targets.reference_rpc(), targets.agent("echo")
        return {
            REFERENCE: Variant(reference, choose(JsonRpc(reference))),
            HOST: Variant(echo, choose(JsonRpc(echo))),
            HTTP: Variant(echo, choose(HttpJson(echo))),
        }

    return variants


def _get(targets: Targets) -> dict[str, Variant]:
    """GetTask of tasks that each server was sent before."""

    def known(endpoint: Endpoint) -> Sequence[Known]:
        tasks: list[Known] = []
        rpc = JsonRpc(endpoint)
        sent = measure(endpoint, lambda: rpc.send(tasks.append), callers=4, seconds=30, calls=KNOWN_TASKS)
        if sent.errors or len(tasks) != KNOWN_TASKS:
            raise RuntimeError(f"tasks to get could not be made: {sent.errors[:1]}")
        return tasks

    reference, echo = targets.reference_rpc(), targets.agent("echo")
    reference_tasks, host_tasks = known(reference), known(echo)
    return {
        REFERENCE: Variant(reference, lambda: JsonRpc(reference).get(reference_tasks)),
        HOST: Variant(echo, lambda: JsonRpc(echo).get(host_tasks)),
        HTTP: Variant(echo, lambda: HttpJson(echo).get(host_tasks)),
    }


def _list(targets: Targets) -> dict[str, Variant]:
    """ListTasks of a million tasks, and of the host's agent that has a thousand."""
    reference = Endpoint.parse(f"{targets.reference_many}/rpc")
    many, few = targets.agent(MANY_AGENT), targets.agent(FEW_AGENT)
    return {
        REFERENCE: Variant(reference, lambda: JsonRpc(reference).list_tasks(ROWS)),
        HOST: Variant(many, lambda: JsonRpc(many).list_tasks(ROWS)),
        HTTP: Variant(many, lambda: HttpJson(many).list_tasks(ROWS)),
        OTHER: Variant(few, lambda: JsonRpc(few).list_tasks(FEW_ROWS)),
    }


def _card(targets: Targets) -> dict[str, Variant]:
    reference = Endpoint.parse(f"{targets.reference}/.well-known/agent-card.json")
    host = Endpoint.parse(f"{targets.host}/agents/echo/.well-known/agent-card.json")
    return {REFERENCE: Variant(reference, card_call(reference)), HOST: Variant(host, card_call(host))}


def _worker(targets: Targets) -> dict[str, Variant]:
    """The host's agent runs in a Celery worker; the reference has no such thing, it runs its agent itself."""
    reference, worker = targets.reference_rpc(), targets.agent(WORKER_AGENT)
    return {
        REFERENCE: Variant(reference, JsonRpc(reference).send),
        HOST: Variant(worker, JsonRpc(worker).send),
    }


def _key(targets: Targets) -> dict[str, Variant]:
    """An agent that needs an API key, and the open one."""
    closed, echo = targets.agent("order-agent", targets.api_key), targets.agent("echo")
    return {HOST: Variant(closed, JsonRpc(closed).send), OTHER: Variant(echo, JsonRpc(echo).send)}


def _grpc(targets: Targets) -> dict[str, Variant]:
    """The host's echo over JSON-RPC and over gRPC."""
    echo = targets.agent("echo")
    return {HOST: Variant(echo, JsonRpc(echo).send), GRPC: Variant(GrpcEndpoint(targets.grpc), send_to("echo"))}


def _v03(targets: Targets) -> dict[str, Variant]:
    """The host's echo in both versions."""
    echo = targets.agent("echo")
    return {HOST: Variant(echo, JsonRpc(echo).send), V03: Variant(echo, JsonRpcV03(echo).send)}


def _job(group: str, callers: int, variants: Callable[[Targets], dict[str, Variant]]) -> Job:
    return Job(f"{group}-{callers}", group, callers, variants)


_SEND = _echo(lambda binding: binding.send)
_STREAM = _echo(lambda binding: binding.stream)
JOBS = [
    *(_job("send", callers, _SEND) for callers in (1, 16, 64)),
    *(_job("stream", callers, _STREAM) for callers in (1, 16, 64)),
    _job("get", 16, _get),
    _job("list", 1, _list),
    _job("card", 16, _card),
    _job("worker", 16, _worker),
    _job("key", 16, _key),
    *(_job("grpc", callers, _grpc) for callers in (16, 64)),
    _job("v03", 16, _v03),
]
IDLE = "idle"  # the group of the memory row, which is no job: it is measured once, by subscribers.py
GROUPS = [IDLE, *dict.fromkeys(job.group for job in JOBS)]
