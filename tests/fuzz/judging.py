"""What no reply may be, whatever was asked."""

from __future__ import annotations

import json
import re
from typing import Any

JSON_TYPES = ("application/json", "application/a2a+json")
# What would give away the inside: markup, stack traces, SQL, files, modules.
_INSIDE = re.compile(
    rb"<html|<!doctype|<body|Traceback|File \\?\"|\.py\b|psycopg|msgspec|asyncpg|SELECT |INSERT |site-packages|"
    rb"tasks_app|a2a_host|django|NoneType|object at 0x",
    re.IGNORECASE,
)
_CODES = {-32700, -32600, -32601, -32602, -32000, *range(-32009, -32000)}


def give_away(text: bytes) -> Any:
    """Whether a text tells of the inside."""
    return _INSIDE.search(text)


def judge(status: int, content_type: str, body: bytes) -> list[Any]:
    """The JSON documents of a reply: one, none for an empty one, all of a stream. Raises AssertionError."""
    assert status < 500, (status, body[:500])
    found = give_away(body)
    assert not found, (found, body[:500])
    media_type = content_type.partition(";")[0]
    if media_type == "text/plain" and status == 400:
        assert body == b"Invalid HTTP request received."  # by the HTTP server: it was no HTTP
        return []
    if media_type == "text/event-stream":
        assert status == 200
        return [_parsed(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]
    if not body:
        assert status in (200, 204, 304), status
        return []
    assert media_type in JSON_TYPES, content_type
    return [_parsed(body)]


def judge_rpc(document: Any) -> Any:
    """The result of a JSON-RPC response, None for an error. Raises AssertionError."""
    assert document["jsonrpc"] == "2.0"
    assert "id" in document
    assert ("result" in document) != ("error" in document), document
    if "error" not in document:
        return document["result"]
    error = document["error"]
    assert error["code"] in _CODES, error
    _judge_details(error["message"], error["data"])
    return None


def judge_rest(status: int, document: Any) -> Any:
    """The document of an HTTP+JSON reply, None for an error, of 1.0 or 0.3. Raises AssertionError."""
    if status in (200, 202):
        assert "error" not in document
        return document
    error = document["error"]
    if isinstance(error, str):
        assert document["code"] in _CODES, document
        _judge_details(document["message"], document["data"])
    else:
        assert error["code"] == status
        _judge_details(error["message"], error["details"])
    return None


def _judge_details(message: str, details: list[dict[str, Any]]) -> None:
    assert message
    assert details[0]["reason"] not in ("INTERNAL", "UNKNOWN"), message
    for detail in details[1:]:
        assert all(violation["description"] for violation in detail["fieldViolations"])


def _parsed(text: bytes) -> Any:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def task_ids(document: Any) -> set[str]:
    """Ids of the tasks that a reply to a send tells of, in any version."""
    if not isinstance(document, dict):
        return set()
    task = document.get("task")
    if isinstance(task, dict) and "status" in task and "id" in task:
        return {task["id"]}
    if "status" in document and isinstance(document.get("id"), str):
        return {document["id"]}
    return set()
