"""The auditor's table, for people."""

from __future__ import annotations

from tests.chaos.run import Result

_EXAMPLES = 5


def table(result: Result) -> str:
    """One line a check, with the first findings below it."""
    lines = ["", f"{'what':50} {'looked at':>10} {'found':>7}"]
    for name, check in result.audit.checks.items():
        lines.append(f"{name:50} {check.looked_at:10,} {len(check.found):7,}")
        lines += [f"    {finding}" for finding in check.found[:_EXAMPLES]]
    lines.append("")
    lines.append(f"{result.jobs:,} jobs; {result.audit.repeats:,} webhook requests came again, as at-least-once allows")
    if result.recoveries:
        name, seconds = max(result.recoveries, key=lambda recovery: recovery[1])
        lines.append(f"The longest time until everything was served again: {seconds:.1f} s ({name})")
    return "\n".join(lines)
