"""From a dotted path to an executor, with errors for the person who typed it."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from a2a.server.agent_execution import AgentExecutor

from agents.runtimes.errors import ExecutorError

MAX_TEXT = 300
PATH = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)+$")


def load_executor(path: str) -> type[AgentExecutor]:
    """The AgentExecutor class at `package.module.Class`. Imports the module; raises ExecutorError."""
    if not PATH.match(path):
        raise ExecutorError("Give the dotted path of a class, such as package.module.Class.")
    module_path, _, name = path.rpartition(".")
    found = getattr(_load_module(module_path), name, None)
    if found is None:
        raise ExecutorError(f"Module {module_path} has no class {name}.")
    if not (isinstance(found, type) and issubclass(found, AgentExecutor)):
        raise ExecutorError(f"{path} is not a subclass of a2a.server.agent_execution.AgentExecutor.")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ExecutorError(f"{path} does not implement {missing}.")
    return found


def construct(executor: type[AgentExecutor]) -> AgentExecutor:
    """A new executor, made without arguments. Raises ExecutorError."""
    try:
        return executor()
    except (Exception, SystemExit) as error:
        raise ExecutorError(f"{executor.__name__}() raises {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Type and message of an exception on one line, without the path that an ImportError ends in."""
    text = re.sub(r" \(/[^()]*\)$", "", " ".join(str(error).split()))
    return f"{type(error).__name__}: {text}"[:MAX_TEXT].removesuffix(": ")


def _load_module(path: str) -> Any:
    # A module that was written after this process started is found only with fresh directory caches.
    importlib.invalidate_caches()
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name and (path == error.name or path.startswith(error.name + ".")):
            raise ExecutorError(f"There is no module {error.name} on the import path (see AGENTS_DIR).") from error
        raise ExecutorError(f"Importing {path} raises {describe(error)}") from error
    except (Exception, SystemExit) as error:
        raise ExecutorError(f"Importing {path} raises {describe(error)}") from error
