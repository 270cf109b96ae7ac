"""The Celery application. Its tasks live in the apps; what runs periodically is said beside the tasks themselves."""

from __future__ import annotations

import os
import signal
from typing import Any

from celery import Celery
from celery.signals import beat_embedded_init

from a2a_host.services.launch import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")

app = Celery("a2a_host")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()  # for threads other than the one that imports this
app.autodiscover_tasks()


@beat_embedded_init.connect
def _end_beat_with_worker(**_: Any) -> None:
    """Beat is a process of its own under the worker: one that outlived a killed worker would ring for ever."""
    die_with_parent(signal.SIGKILL)
