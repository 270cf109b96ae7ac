"""Check that imports go down only (a2a_host → tasks_app → agents → protocol) and never in a circle.

Every import counts, also those inside functions. Circles are looked for between files, and between folders of which
none holds the other; on the floors of STRICT between all folders. Prints one line per finding; exit code 1 if there
is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

FLOORS = ["protocol", "agents", "tasks_app", "a2a_host"]
DJANGO_FREE = {"protocol"}
STRICT = {"tasks_app"}

Graph = dict[str, dict[str, str]]  # importer → imported → where it is written, as path:line


def modules(root: Path) -> dict[str, Path]:
    """The project's modules by dotted name."""
    found = {}
    for floor in FLOORS:
        for path in sorted((root / floor).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if "migrations" not in parts:
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported_names(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """Dotted names that a module may import, with the line; of `from a import b` both `a.b` and, after it, `a`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno


def import_graph(root: Path, known: dict[str, Path]) -> tuple[Graph, list[str]]:
    """Who imports whom inside the project, and the imports that go up or out of bounds."""
    graph: Graph = {name: {} for name in known}
    findings = []
    for module, path in known.items():
        floor = module.split(".")[0]
        for name, line in imported_names(ast.parse(path.read_text()), module, path.name == "__init__.py"):
            top = name.split(".")[0]
            where = f"{path.relative_to(root)}:{line}"
            if top == "django" and floor in DJANGO_FREE:
                findings.append(f"{where} imports {name}: {floor} stands without Django")
            if top not in FLOORS:
                continue
            if FLOORS.index(top) > FLOORS.index(floor):
                findings.append(f"{where} imports {name}: imports go down only, {floor} is below {top}")
            target = name
            while target not in known and "." in target:
                target = target.rpartition(".")[0]
            if target in known and target != module:
                graph[module].setdefault(target, where)
    return graph, findings


def folder_graph(graph: Graph, known: dict[str, Path], root: Path) -> Graph:
    """The same between folders; without those where one holds the other, unless both are of a floor of STRICT."""
    folders: Graph = {str(path.parent.relative_to(root)): {} for path in known.values()}
    for module, targets in graph.items():
        source = known[module].parent
        for target, where in targets.items():
            folder = known[target].parent
            nested = folder.is_relative_to(source) or source.is_relative_to(folder)
            strict = module.split(".")[0] in STRICT and folder != source
            if strict or not nested:
                folders[str(source.relative_to(root))].setdefault(str(folder.relative_to(root)), where)
    return folders


def circles(graph: Graph) -> Iterator[list[str]]:
    """Every strongly connected set of more than one node, by one shortest circle through its first node."""
    done: set[str] = set()
    for start in sorted(graph):
        circle = _shortest_circle(graph, start)
        if circle and not done & set(circle):
            done |= set(circle)
            yield circle


def _shortest_circle(graph: Graph, start: str) -> list[str]:
    trails = [[start]]
    seen: set[str] = set()
    for trail in trails:
        for target in graph[trail[-1]]:
            if target == start:
                return [*trail, start]
            if target not in seen:
                seen.add(target)
                trails.append([*trail, target])
    return []


def findings(root: Path) -> list[str]:
    """Everything that is wrong below `root`, one line each."""
    known = modules(root)
    graph, lines = import_graph(root, known)
    for each in (graph, folder_graph(graph, known, root)):
        for circle in circles(each):
            steps = " → ".join([circle[0], *(f"{b} ({each[a][b]})" for a, b in pairwise(circle))])
            lines.append(f"circle: {steps}")
    return lines


if __name__ == "__main__":
    problems = findings(Path(__file__).resolve().parent.parent)
    print("\n".join(problems) or "Imports go down only, without circles.")
    sys.exit(1 if problems else 0)
