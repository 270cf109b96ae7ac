"""Several management commands in one process: starting Django costs more than most of them.

`python -m tests.support.commands '[["migrate"], ["agent", "list"]]'` prints a JSON array with the output of each.
"""

from __future__ import annotations

import json
import os
import sys
from io import StringIO

import django
from django.core.management import call_command


def main() -> None:
    """Run the commands in order; the first that fails ends this with its traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")
    django.setup()
    outputs = []
    for name, *arguments in json.loads(sys.argv[1]):
        output = StringIO()
        call_command(name, *arguments, stdout=output)
        outputs.append(output.getvalue())
    print(json.dumps(outputs))


if __name__ == "__main__":
    main()
