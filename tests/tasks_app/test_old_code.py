"""An older version goes on writing while the database is a newer one's: a rolling upgrade loses nothing."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from agents.registry import Registry
from protocol.states import TaskState
from tasks_app.retention.deleting import delete_ended
from tests.tasks_app.test_retention import check_counters
from tests.tasks_app.world import World

_FILE = Path(__file__).with_name("old_code.sql")
STATEMENTS = dict(re.findall(r"^-- name: (\w+)\n(.*?)(?=\n\n-- name|\Z)", _FILE.read_text(), re.MULTILINE | re.DOTALL))
NOW = '{"2026-01-02T03:04:05+00:00"}'
CONFIG = ["{t-1}", "{c}", "{http://e.test}", '{""}', '{""}', '{""}', "{1.0}", NOW, "{0}"]
CREATION = ["{%d}", "{alice}", "{ctx}", '{"{}"}', NOW, "{JSONRPC/1.0}", '{"{}"}', "{w}", NOW, "{m-1}", "{d}", "{m-1}"]
CHANGE = ["{t-1}", "{1}", "{1}", "{3}", '{"{}"}', NOW, "{NULL}", "{1}", "{2}", "{1}", "{NULL}", "{NULL}", "{NULL}"]
EVENT = ["{t-1}", "{1}", "{1}", '{"{}"}', "{NULL}", "{NULL}", "{f}", "{f}", "{1}", NOW]
SPOKEN = ["{t-1}", "{2}", "{m-2}", "{1}", '{"{}"}', "{hi}", NOW]
ACCEPTED = ["{%d}", "{alice}", "{m-2}", "{t-1}", "{d}"]
TOLD = ["a2a_events", "{}", "old"]


class OldCode:
    """The statements of an older version, on a connection of its own."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection

    async def run(self, name: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """Rows of a statement that the old code writes with the driver's placeholders."""
        cursor = await self._connection.execute(STATEMENTS[name].encode(), parameters)
        return await cursor.fetchall() if cursor.description else []

    async def journal(self, *columns: str) -> set[str]:
        """First columns of the statement that the old code prepares: the ids of what was won."""
        sql = re.sub(r"\$(\d+)", "%s", STATEMENTS["journal"])
        cursor = await self._connection.execute(sql.encode(), list(columns))
        return {row[0] for row in await cursor.fetchall() if row[0] is not None}


async def test_old_code_writes_into_new_tables(world: World) -> None:
    async with await psycopg.AsyncConnection.connect(world.dsn, autocommit=True) as connection:
        old = OldCode(connection)
        ((agent,),) = await old.run("agent")
        await old.run("apikey")
        empty = ["{}"] * 60
        creation = ["{t-1}", CREATION[0] % agent, *CREATION[1:], '{"{}"}', "{hi}", "{NULL}"]
        assert await old.journal(*CONFIG, *creation, *empty[25:], *TOLD) == {"t-1"}
        assert await old.run("extend", [timedelta(seconds=15), ["t-1"], [1]]) == [("t-1",)]
        await old.run("request_cancel", ["t-1", 1, "a2a_cancel"])
        accepted = [ACCEPTED[0] % agent, *ACCEPTED[1:]]
        won = await old.journal(*empty[:25], *CHANGE, *EVENT, *SPOKEN, *accepted, *TOLD)
        assert won == {"t-1", "+t-1"}
        assert await old.run("spread", ["t-1"]) == [("t-1",)]
        ((task, config, *_, number, _, _, _),) = await old.run("claim", [timedelta(seconds=40), ["t-1"], 1])
        names = {"task": task, "config": config, "claim": number}
        assert len(await old.run("postpone", names | {"wait": timedelta(0), "error": "e"})) == 1
        assert await old.run("move", names | {"seq": 1, "lease": timedelta(0)}) == [(1,)]
        used = [[agent], ["JSONRPC"], ["1.0"], ["GetTask"], ["alice"], [1], [0], ["2026-01-02"], ["2026-01-02"]]
        await old.run("usage", used)
        assert await old.run("ring_again", [timedelta(seconds=10), ["t-1"]]) == []
    await check_new_code(world, agent)


async def check_new_code(world: World, agent: int) -> None:
    """The new version reads all of it, and deletes it whole."""
    record = await world.load("t-1")
    assert (record.state, record.version, record.last_seq, len(record.history)) == (TaskState.COMPLETED, 2, 1, 2)
    registry = Registry()
    await registry.load()
    entry = registry.by_id(agent)
    assert entry is not None
    assert (entry.slug, entry.enabled) == ("old", True)
    await check_counters(world)
    async with await psycopg.AsyncConnection.connect(world.dsn, autocommit=True) as connection:
        assert await delete_ended(connection, ["t-1"]) == {"t-1": False}
    for table in ("message", "event", "receipt", "pushconfig"):
        assert await world.query(f"SELECT count(*) FROM tasks_app_{table}") == [(0,)], table
    await check_counters(world)
