#!/usr/bin/env python
"""Django's command line for a2a-host."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        import a2a_host.settings  # noqa: F401
    except ImproperlyConfigured as error:
        sys.exit(f"a2a-host: {error}")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
