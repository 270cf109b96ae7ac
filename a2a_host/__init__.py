"""The roof: settings, ASGI, Celery, bindings, embedded services and `manage.py up`."""

from __future__ import annotations

# Whoever sends Celery a message needs the application, also where no worker runs.
from a2a_host.celery import app as celery_app

__all__ = ["celery_app"]
