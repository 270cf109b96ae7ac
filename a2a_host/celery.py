"""The Celery application. Its tasks live in the apps; what runs periodically is said beside the tasks themselves."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import Any

from celery import Celery
from celery.beat import EmbeddedService
from celery.bootsteps import RUN  # type: ignore[attr-defined]
from celery.signals import beat_embedded_init, worker_init, worker_ready

from a2a_host.open_files import raise_limit
from a2a_host.services.launch import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")

logger = logging.getLogger(__name__)

_BEAT_PAUSE_SECONDS = 1.0

app = Celery("a2a_host")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()  # for threads other than the one that imports this
app.autodiscover_tasks()


@worker_init.connect
def _open_many_files(**_: Any) -> None:
    """Webhooks that hang hold a connection each."""
    raise_limit()


@beat_embedded_init.connect
def _end_beat_with_worker(**_: Any) -> None:
    """Beat is a process of its own under the worker: one that outlived a killed worker would ring for ever."""
    die_with_parent(signal.SIGKILL)


@worker_ready.connect
def _keep_beat(sender: Any, **_: Any) -> None:
    """Celery leaves a worker without beat when beat dies alone, as when the machine has no memory left."""
    worker = sender.controller
    if worker.beat is not None:
        threading.Thread(target=_start_beat_again, args=(worker,), name="keep beat", daemon=True).start()


def _start_beat_again(worker: Any) -> None:
    """Wait for the end of beat; start another one, unless the worker ends too."""
    (step,) = (step for step in worker.blueprint.order if getattr(step, "obj", None) is worker.beat)
    while True:
        worker.beat.join()
        if worker.blueprint.state != RUN:
            return
        logger.warning("Beat ended, it is started again")
        time.sleep(_BEAT_PAUSE_SECONDS)
        worker.beat = step.obj = EmbeddedService(
            app, schedule_filename=worker.schedule_filename, scheduler_cls=worker.scheduler
        )
        worker.beat.start()
