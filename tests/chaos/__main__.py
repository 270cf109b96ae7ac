"""`make chaos`: break a whole host again and again while clients use it, and show that nothing was lost."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

import django


def main() -> int:
    """0 if the auditor found nothing."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="how many faults (20)")
    parser.add_argument("--seed", default="", help="decides about faults and jobs; a new one unless given")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_host.settings")
    django.setup()
    from tests.chaos.faults import draw
    from tests.chaos.report import table
    from tests.chaos.run import Plan, run
    from tests.chaos.site import Site

    seed = options.seed or str(random.randrange(10**9))
    say(f"Again with: make chaos ROUNDS={options.rounds} SEED={seed}")
    started = time.monotonic()
    with Site() as site:
        site.keep = True
        say(f"Its logs and database are in {site.folder}, and are kept if anything is found")
        result = run(site, Plan(seed, draw(seed, options.rounds)), say)
        site.keep = not result.audit.clean
    say(table(result))
    say(f"{time.monotonic() - started:.0f} s in all")
    return 0 if result.audit.clean else 1


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
