"""Every error, provoked over the wire in every binding and version: one fault, one error, whatever the binding."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest

from protocol import errors
from protocol.errors import A2AError
from tests.errors.columns import COLUMNS, Ask, Column, Host, Json, check_silent
from tests.errors.conftest import EXTENSION
from tests.support.deployment import Deployment

RPC = ("jsonrpc", "websocket")
FINISHED = "{finished}"
_ROWS = """SELECT (SELECT count(*) FROM tasks_app_task), (SELECT count(*) FROM tasks_app_message),
    (SELECT count(*) FROM tasks_app_event), (SELECT count(*) FROM tasks_app_receipt),
    (SELECT count(*) FROM tasks_app_pushconfig)"""


@dataclass(frozen=True)
class Fault:
    """What a caller does to get an error: where it can be done, and what the error says of it."""

    ask: Ask
    bindings: tuple[str, ...] = ("jsonrpc", "websocket", "rest", "grpc")
    metadata: Json = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    # The same fault as columns have to say it, by binding or by column.
    asks: dict[str, Ask] = field(default_factory=dict)
    # Columns that name the fields otherwise, and those of its bindings in which it is no fault.
    other_fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fine_in: tuple[str, ...] = ()

    def ask_in(self, column: Column) -> Ask:
        """The call of a column."""
        return self.asks.get(column.name, self.asks.get(column.binding, self.ask))


HELLO: list[Json] = [{"text": "hi"}]
IMAGE: list[Json] = [{"raw": "AAAA", "mediaType": "image/png"}]

FAULTS: dict[type[A2AError], Fault] = {
    errors.TaskNotFoundError: Fault(Ask("GetTask"), metadata={"taskId": "none"}),
    errors.PushNotificationConfigNotFoundError: Fault(
        Ask("GetTaskPushNotificationConfig", task=FINISHED),
        metadata={"taskId": FINISHED, "pushNotificationConfigId": "none"},
    ),
    errors.TaskNotCancelableError: Fault(
        Ask("CancelTask", task=FINISHED), metadata={"taskId": FINISHED, "state": "TASK_STATE_COMPLETED"}
    ),
    errors.PushNotificationNotSupportedError: Fault(Ask("CreateTaskPushNotificationConfig", slug="deaf")),
    errors.UnsupportedOperationError: Fault(Ask("SendStreamingMessage", parts=HELLO, slug="quiet")),
    errors.ContentTypeNotSupportedError: Fault(
        Ask("SendMessage", parts=IMAGE, slug="plain"), metadata={"mediaType": "image/png"}
    ),
    errors.ExtendedAgentCardNotConfiguredError: Fault(
        Ask("GetExtendedAgentCard", slug="bare"),
        fine_in=("grpc-0.3",),  # its GetAgentCard gives the card that there is
    ),
    errors.ExtensionSupportRequiredError: Fault(
        Ask("SendMessage", parts=HELLO, slug="strict"), metadata={"extensions": EXTENSION}
    ),
    errors.VersionNotSupportedError: Fault(
        Ask(headers={"a2a-version": "9.9"}), metadata={"version": "9.9", "supportedVersions": "1.0, 0.3"}
    ),
    errors.ParseError: Fault(
        Ask("SendMessage", raw=b"{", parts=HELLO), asks={"grpc": Ask("SendMessage", raw=b"\xff", parts=HELLO)}
    ),
    errors.EnvelopeError: Fault(Ask(raw=b'{"jsonrpc":"1.0","id":1,"method":"GetTask"}'), bindings=RPC),
    errors.MethodNotFoundError: Fault(Ask("Nothing"), bindings=(*RPC, "grpc"), metadata={"method": "Nothing"}),
    errors.InvalidParamsError: Fault(
        Ask("SendMessage", parts=[]), fields=("message.parts",), other_fields={"grpc-0.3": ("message.content",)}
    ),
    errors.UnauthenticatedError: Fault(Ask(slug="closed", with_key=False)),
    errors.AgentNotFoundError: Fault(Ask(slug="nobody"), metadata={"agent": "nobody"}),
    errors.RequestTooLargeError: Fault(
        Ask("SendMessage", parts=[{"text": "x" * 2000}], slug="small"),
        bindings=("jsonrpc", "rest", "grpc"),  # WebSocket closes with 1009, as its own protocol has it
        metadata={"limitBytes": "1024"},
    ),
    errors.UnsupportedMediaTypeError: Fault(
        Ask("SendMessage", parts=HELLO, headers={"content-type": "text/plain"}),
        bindings=("jsonrpc", "rest"),
        metadata={"contentType": "text/plain"},
    ),
    errors.RouteNotFoundError: Fault(
        Ask(path="/nowhere"),
        bindings=("rest", "websocket"),
    ),
    errors.MethodNotAllowedError: Fault(Ask(verb="PUT"), bindings=("rest", "jsonrpc")),
    errors.UpgradeRequiredError: Fault(Ask(verb="GET"), bindings=("websocket",), metadata={"upgrade": "websocket"}),
}
# Provoked below, by taking something from the host.
OUTAGES = {errors.InternalError, errors.UnavailableError}
UNHEARD: dict[type[A2AError], str] = {
    errors.InvalidRequestError: "only its subclass is raised",
    errors.InvalidAgentResponseError: "an agent that breaks the rules FAILs its task; its caller reads that",
    errors.PermissionDeniedError: "whoever may call an agent may do all of it; other callers' tasks are not found",
}


def test_every_error_is_in_the_table() -> None:
    known = {one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, A2AError)}
    tables = [set(FAULTS), OUTAGES, set(UNHEARD)]
    assert set.union(*tables) == known - {A2AError}
    assert sum(map(len, tables)) == len(known) - 1


CASES = [
    pytest.param(error, column, id=f"{error.__name__}-{column.name}")
    for error, fault in FAULTS.items()
    for column in COLUMNS
    if column.binding in fault.bindings and column.name not in fault.fine_in
]


@pytest.mark.spec("5.4")
@pytest.mark.parametrize(("error", "column"), CASES)
def test_one_fault_one_error(
    host: Host, deployment: Deployment, finished: str, error: type[A2AError], column: Column
) -> None:
    fault = FAULTS[error]
    ask = fault.ask_in(column)
    ask = replace(ask, task=ask.task.replace(FINISHED, finished))
    before = deployment.query(_ROWS)
    refused, text = column.refusal(host, ask)
    assert deployment.query(_ROWS) == before
    assert refused.reason == error.reason
    check_silent(text)
    metadata = {name: str(value).replace(FINISHED, finished) for name, value in fault.metadata.items()}
    assert {name: refused.metadata.get(name) for name in metadata} == metadata
    assert tuple(refused.fields) == fault.other_fields.get(column.name, fault.fields)


@pytest.mark.spec("5.4")
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_fault_of_the_host_says_nothing_of_itself(host: Host, deployment: Deployment, column: Column) -> None:
    deployment.query("ALTER TABLE tasks_app_task RENAME TO elsewhere")
    try:
        refused, text = column.refusal(host, Ask("GetTask"))
    finally:
        deployment.query("ALTER TABLE elsewhere RENAME TO tasks_app_task")
    assert (refused.reason, refused.message, refused.metadata) == ("INTERNAL", "Internal error", {})
    check_silent(text)


@pytest.mark.spec("5.4")
def test_a_host_without_its_database_says_when_to_try_again(host: Host, deployment: Deployment, postgres: str) -> None:
    with unreachable(deployment, postgres), ThreadPoolExecutor(len(COLUMNS)) as pool:
        answers = list(pool.map(lambda column: column.refusal(host, Ask("GetTask")), COLUMNS))
    assert [refused.reason for refused, _ in answers] == ["UNAVAILABLE"] * len(COLUMNS)
    for _, text in answers:
        check_silent(text)


@contextmanager
def unreachable(deployment: Deployment, postgres: str) -> Iterator[None]:
    """No process of the deployment reaches its database."""
    ((name, own),) = deployment.query("SELECT current_database(), pg_backend_pid()")
    with psycopg.connect(postgres, autocommit=True) as connection:
        _allow(connection, name, False)
        try:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s", [name, own]
            )
            yield
        finally:
            _allow(connection, name, True)


def _allow(connection: psycopg.Connection[Any], name: str, allowed: bool) -> None:
    database = psycopg.sql.Identifier(name)
    connection.execute(
        psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(database, psycopg.sql.SQL(str(allowed)))
    )
