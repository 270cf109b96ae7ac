"""docs/guarantees.md promises nothing without a test, and names only tests that there are."""

from __future__ import annotations

import ast
import re

from django.conf import settings

_PAGE = settings.BASE_DIR / "docs" / "guarantees.md"
_PROOF = re.compile(r"`(tests/\S+?\.py)::(\w+)`")
_PROMISED = ("Sends", "Tasks", "Cancel", "Streams", "Webhooks", "Stopping", "The audit log")


def test_the_tests_that_it_names_are_there() -> None:
    named = _PROOF.findall(_PAGE.read_text())
    assert len(named) > 10
    missing = [f"{file}::{test}" for file, test in named if test not in functions_of(file)]
    assert missing == []


def test_every_promise_has_a_proof() -> None:
    sections = re.split(r"^## ", _PAGE.read_text(), flags=re.MULTILINE)
    promises = [p for s in sections if s.startswith(_PROMISED) for p in re.split(r"^- ", s, flags=re.MULTILINE)[1:]]
    assert len(promises) > len(_PROMISED)
    assert [promise for promise in promises if not _PROOF.search(promise)] == []


def functions_of(file: str) -> set[str]:
    """The names of a file's tests."""
    path = settings.BASE_DIR / file
    if not path.exists():
        return set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions)}
