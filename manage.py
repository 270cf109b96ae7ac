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
    from django.db import OperationalError

    try:
        import a2a_host.settings  # noqa: F401
    except ImproperlyConfigured as error:
        sys.exit(f"a2a-host: {error}")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        first = str(error).splitlines()[0]
        sys.exit(f"a2a-host: the database does not answer; does the host run (make up)? {first}")


if __name__ == "__main__":
    main()
