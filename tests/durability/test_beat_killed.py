"""kill -9 of beat alone, which Celery would not notice."""

from __future__ import annotations

import os
import signal

from tests.durability.host import Host
from tests.services.copies import alive, family
from tests.support.deployment import wait_until

_RECEIVED = "Task tasks_app.sweep["


def test_another_beat_takes_its_place(host: Host) -> None:
    worker = host.copy.pids()["worker"]
    members = family(worker)
    (beat,) = members.keys() - {worker}
    os.kill(beat, signal.SIGKILL)
    wait_until(lambda: beat not in alive(members), "the end of beat")
    log = host.copy.data_dir / "logs" / "worker.log"
    heard = log.read_text().count(_RECEIVED)
    wait_until(lambda: family(worker).keys() - {worker}, "another beat")
    wait_until(lambda: log.read_text().count(_RECEIVED) > heard + 2, "what another beat asks for")
    assert host.copy.pids()["worker"] == worker
    host.wait_for_worker()
