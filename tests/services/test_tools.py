"""The scripts behind make: set-up, and the check of imports."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from tools.imports import findings

SETUP = settings.BASE_DIR / "tools" / "setup.sh"


def set_up(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run setup.sh for a project in `folder`."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "setup.sh").write_bytes(SETUP.read_bytes())
    command = ["sh", str(tools / "setup.sh"), python, ".venv", "requirements.txt"]
    environment = os.environ | {"PIP_NO_INDEX": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def fake_python(folder: Path, refuses: str) -> str:
    """A Python that cannot run code with `refuses` in it."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\ncase "$*" in *{shlex.quote(refuses)}*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("refuses", "complaint"),
    [
        ("ensurepip", "cannot make a virtual environment: apt-get install python3-venv"),
        ("version_info[:2]", "does not run"),
    ],
)
def test_a_python_that_will_not_do_is_one_line(tmp_path: Path, refuses: str, complaint: str) -> None:
    python = fake_python(tmp_path, refuses)
    result = set_up(tmp_path, python)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"a2a-host: {python} {complaint}\n")
    assert not (tmp_path / ".venv").exists()


def test_an_old_python_is_one_line(tmp_path: Path) -> None:
    python = fake_python(tmp_path, "(3, 11)")
    result = set_up(tmp_path, python)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (result.returncode, result.stderr) == (
        1,
        f"a2a-host: Python 3.11 or newer is needed, {python} is {version}\n",
    )


def test_no_python_is_one_line(tmp_path: Path) -> None:
    result = set_up(tmp_path, "python9")
    complaint = "a2a-host: python9 is missing: apt-get install python3 python3-venv\n"
    assert (result.returncode, result.stderr) == (1, complaint)


def test_only_what_changed_is_installed(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    first = set_up(tmp_path, sys.executable)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == f"Making .venv with Python {version}\nInstalling requirements.txt\n"
    assert set_up(tmp_path, sys.executable).stdout == ""
    (tmp_path / "requirements.txt").write_text("there-is-no-such-package==1\n")
    for _ in range(2):
        failed = set_up(tmp_path, sys.executable)
        assert (failed.returncode, failed.stdout) == (1, "Installing requirements.txt\n")
        assert failed.stderr.endswith("a2a-host: pip could not install requirements.txt (see above)\n")


def project(folder: Path, files: dict[str, str]) -> list[str]:
    """What the check finds in a project of these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return findings(folder)


def test_imports_may_go_down(tmp_path: Path) -> None:
    files = {"a2a_host/a.py": "import tasks_app.b\nfrom protocol import c", "tasks_app/b.py": "", "protocol/c.py": ""}
    assert project(tmp_path, files) == []


def test_imports_may_not_go_up(tmp_path: Path) -> None:
    files = {"agents/a.py": "def f():\n    from tasks_app.b import x", "tasks_app/b.py": "x = 1"}
    assert project(tmp_path, files) == [
        "agents/a.py:2 imports tasks_app.b.x: imports go down only, agents is below tasks_app"
    ]


def test_the_ground_floor_stands_without_django(tmp_path: Path) -> None:
    assert project(tmp_path, {"protocol/a.py": "from django.db import models"}) == [
        "protocol/a.py:1 imports django.db.models: protocol stands without Django"
    ]


def test_files_may_not_go_in_circles(tmp_path: Path) -> None:
    files = {
        "agents/a.py": "from agents import b",
        "agents/b.py": "from . import c",
        "agents/c.py": "import agents.a",
        "agents/d.py": "import agents.a",
    }
    circle = "agents.a → agents.b (agents/a.py:1) → agents.c (agents/b.py:1) → agents.a (agents/c.py:1)"
    assert project(tmp_path, files) == [f"circle: {circle}"]


def test_folders_may_not_go_in_circles(tmp_path: Path) -> None:
    files = {
        "agents/x/a.py": "import agents.y.b",
        "agents/y/b.py": "",
        "agents/y/c.py": "from ..x import d",
        "agents/x/d.py": "import agents.e",
        "agents/e.py": "",
    }
    circle = "agents/x → agents/y (agents/x/a.py:1) → agents/x (agents/y/c.py:1)"
    assert project(tmp_path, files) == [f"circle: {circle}"]


def test_nor_may_a_folder_and_what_it_holds_where_the_check_is_strict(tmp_path: Path) -> None:
    files = {
        "tasks_app/a.py": "import tasks_app.x.b",
        "tasks_app/x/b.py": "",
        "tasks_app/x/c.py": "from tasks_app import d",
        "tasks_app/d.py": "",
    }
    circle = "tasks_app → tasks_app/x (tasks_app/a.py:1) → tasks_app (tasks_app/x/c.py:1)"
    assert project(tmp_path, files) == [f"circle: {circle}"]


def test_this_project_keeps_to_it() -> None:
    assert findings(settings.BASE_DIR) == []


@pytest.mark.django_db
def test_every_model_has_its_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_requirements_say_every_version() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (settings.BASE_DIR / name).read_text().splitlines()
        pins = [line for line in lines if line and not line.startswith(("#", "-r "))]
        assert pins
        assert [line for line in pins if "==" not in line] == []
