from __future__ import annotations

from django.apps import AppConfig


class HostConfig(AppConfig):
    name = "a2a_host"
    verbose_name = "a2a-host"
