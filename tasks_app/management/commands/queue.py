"""manage.py queue"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from tasks_app.execution.backlog import Backlog, read_backlog


class Command(BaseCommand):
    help = "Show what waits to be run, what runs, and which processes are alive."

    def add_arguments(self, parser: CommandParser) -> None:
        """One option."""
        parser.add_argument("--json", action="store_true", help="for programs, with ages in seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        """One line for each agent with unfinished tasks and for each process, or one JSON object."""
        backlog = read_backlog()
        if options["json"]:
            self.stdout.write(json.dumps(_members(backlog)))
            return
        for line in _lines(backlog):
            self.stdout.write(line)


def _members(backlog: Backlog) -> dict[str, Any]:
    def age(since: datetime | None) -> float | None:
        return None if since is None else round((backlog.at - since).total_seconds(), 3)

    return {
        "queued": backlog.queued,
        "oldestQueuedSeconds": age(backlog.oldest_queued),
        "agents": [
            {
                "agent": agent.slug,
                "execution": agent.execution,
                "queued": agent.queued,
                "oldestQueuedSeconds": age(agent.oldest_queued),
                "running": agent.running,
                "oldestRunningSeconds": age(agent.oldest_running),
                "waiting": agent.waiting,
                "oldestWaitingSeconds": age(agent.oldest_waiting),
            }
            for agent in backlog.agents
        ],
        "processes": [
            {"process": p.origin, "role": p.role, "alive": p.until >= backlog.at, "runs": p.runs}
            for p in backlog.processes
        ],
        "aboutToFail": [{"task": d.task.pk, "agent": d.task.agent.slug, "reason": d.reason} for d in backlog.doomed],
    }


def _lines(backlog: Backlog) -> list[str]:
    members = _members(backlog)
    age = members["oldestQueuedSeconds"]
    lines = [f"{backlog.queued} queued" + ("" if age is None else f", the oldest for {age:.0f} s")]
    for agent in members["agents"]:
        counts = f"{agent['queued']} queued, {agent['running']} running, {agent['waiting']} waiting for an answer"
        lines.append(f"{agent['agent']:24} {agent['execution']:7} {counts}")
    for process in members["processes"]:
        word = "alive" if process["alive"] else "silent"
        lines.append(f"{process['process']:60} {word:7} {process['runs']} runs")
    if not any(process["alive"] for process in members["processes"]):
        lines.append("No process is alive: nothing is run.")
    lines += [
        f"{task['task']} of {task['agent']} is about to fail: {task['reason']}" for task in members["aboutToFail"]
    ]
    return lines
