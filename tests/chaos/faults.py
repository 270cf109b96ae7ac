"""What can go wrong with a host, as things that are done to it. Each returns when it is over and done with."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.site import SECOND_WEB, Site
from tests.support.deployment import wait_until

LISTENERS = "LISTEN %"
JOURNALS = "PREPARE %"
_DROP = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE %s"""
_LEFT = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE %s"""
_TROUBLE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Fault:
    """`strike` does it, with the load going on, and undoes what does not mend itself."""

    name: str
    strike: Callable[[Site], None]


def killed(name: str, number: signal.Signals = signal.SIGKILL) -> Callable[[Site], None]:
    """A process is sent a signal that ends it, and something starts it again."""

    def strike(site: Site) -> None:
        site.wait_for_another(name, site.send(name, number))

    return strike


def stopped(*names: str) -> Callable[[Site], None]:
    """Processes stand still until their leases are over and everybody takes them for dead; then they go on."""

    def strike(site: Site) -> None:
        pids = {name: site.send(name, signal.SIGSTOP) for name in names}
        try:
            time.sleep(1.5 * site.lease_seconds)  # The fault is this time itself.
        finally:
            for name in pids:
                site.send(name, signal.SIGCONT)

    return strike


def dropped(pattern: str) -> Callable[[Site], None]:
    """PostgreSQL ends connections, by their newest statement; the processes make new ones."""

    def strike(site: Site) -> None:
        count = site.query(_DROP, [pattern])[0][0]
        assert count, f"no connection has said {pattern}"
        wait_until(lambda: site.query(_LEFT, [pattern])[0][0] >= 1, "new connections")

    return strike


def webhooks_fail(site: Site) -> None:
    """The receiver answers everything with 500 for a while."""
    site.receiver.otherwise = lambda _: 500
    try:
        time.sleep(_TROUBLE_SECONDS)
    finally:
        site.receiver.otherwise = lambda _: 200


def webhooks_stall(site: Site) -> None:
    """The receiver takes requests and says nothing for a while; then it answers them all, late."""
    go = threading.Event()

    def wait(_: int) -> int:
        go.wait()
        return 200

    site.receiver.otherwise = wait
    try:
        time.sleep(_TROUBLE_SECONDS)
    finally:
        site.receiver.otherwise = lambda _: 200
        go.set()


def both(*strikes: Callable[[Site], None]) -> Callable[[Site], None]:
    """One after the other, without a breath between them."""

    def strike(site: Site) -> None:
        for one in strikes:
            one(site)

    return strike


def everything_is_killed(site: Site) -> None:
    """The power goes, as far as processes can tell; then the host is started again."""
    site.kill_everything()
    site.start_everything()


def everything_is_restarted(site: Site) -> None:
    """In an orderly way, as for an upgrade."""
    site.stop_everything()
    site.start_everything()


FAULTS = (
    Fault("kill -9 web", killed("web")),
    Fault("kill -9 second web", killed(SECOND_WEB)),
    Fault("kill -9 beat", killed("beat")),
    Fault("kill -9 gRPC process", killed("grpc")),
    Fault("kill -9 Valkey", killed("valkey")),
    Fault("kill -9 PostgreSQL", killed("postgres")),
    Fault("restart PostgreSQL", killed("postgres", signal.SIGINT)),
    Fault("restart web", killed("web", signal.SIGTERM)),
    Fault("restart worker", killed("worker", signal.SIGTERM)),
    Fault("drop LISTEN connections", dropped(LISTENERS)),
    Fault("drop the journals' connections", dropped(JOURNALS)),
    Fault("drop all connections", dropped("%")),
    Fault("web stands still past its leases", stopped("web")),
    Fault("worker stands still past its leases", stopped("worker")),
    Fault("gRPC process stands still past its leases", stopped("grpc")),
    Fault("webhooks answer 500", webhooks_fail),
    Fault("webhooks stall", webhooks_stall),
    Fault("kill -9 everything", everything_is_killed),
    Fault("restart everything", everything_is_restarted),
    Fault("webhooks stall, kill -9 worker", both(webhooks_stall, killed("worker"))),
)


def draw(seed: str, rounds: int) -> list[Fault]:
    """So many faults, each of them before any comes again, in an order that the seed decides."""
    dice = random.Random(seed)
    drawn: list[Fault] = []
    while len(drawn) < rounds:
        drawn += dice.sample(FAULTS, len(FAULTS))
    return drawn[:rounds]
