"""The structs and schemas of an operation in each version: what its requests are read from, what answers it."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Protocol, Union, get_args, get_origin

import msgspec

from a2a_host.bindings.methods import Operation
from a2a_host.openapi.structs import Schema, reference, struct_schemas
from protocol.card import AgentCard
from protocol.dialects.v03 import V0_3_PROTO, V0_3_WRAPPED, V03
from protocol.model import Wire


class Wording(Protocol):
    """How a version says an operation. The schemas refer to components that `components` gives."""

    suffix: str

    def requests(self, operation: Operation) -> list[tuple[str, type[Wire]]]:
        """The forms of a request, each a component prefix and a struct; the last one is that of queries."""

    def response(self, operation: Operation) -> Schema:
        """The schema of a response, or of the data of one event."""

    def components(self, operation: Operation) -> dict[str, Schema]:
        """The components of both, by name."""


class Words10:
    """1.0."""

    suffix = ""

    def requests(self, operation: Operation) -> list[tuple[str, type[Wire]]]:
        """See `Wording`."""
        return [("", operation.request)]

    def response(self, operation: Operation) -> Schema:
        """See `Wording`."""
        kind = operation.response
        return {"type": "object", "maxProperties": 0} if kind is Wire else reference(kind)

    def components(self, operation: Operation) -> dict[str, Schema]:
        """See `Wording`."""
        return struct_schemas([operation.request, operation.response])


class Words03:
    """0.3 in HTTP+JSON, in both of its forms: that of the specification's text and that of its protobuf definition."""

    suffix = "V03"

    _FORMS: dict[str, V03] = {"V03.": V0_3_WRAPPED, "V03Proto.": V0_3_PROTO}

    def requests(self, operation: Operation) -> list[tuple[str, type[Wire]]]:
        """See `Wording`."""
        return [(prefix, form.params(operation.request)) for prefix, form in self._FORMS.items()]

    def response(self, operation: Operation) -> Schema:
        """See `Wording`."""
        kind = operation.response
        if kind is Wire:
            return {"type": "object", "maxProperties": 0}
        if kind is AgentCard:
            return {"type": "object", "description": "The agent card as 0.3 has it."}
        return _any_of(_written(kind, form.result(kind), prefix) for prefix, form in self._FORMS.items())

    def components(self, operation: Operation) -> dict[str, Schema]:
        """See `Wording`."""
        found: dict[str, Schema] = {}
        for prefix, form in self._FORMS.items():
            kinds = [form.params(operation.request)]
            if operation.response not in (Wire, AgentCard):
                kinds += _structs(form.result(operation.response))
            found |= struct_schemas(kinds, prefix)
        return found


def _structs(annotation: Any) -> list[type[Wire]]:
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return [annotation]
    return [kind for inner in get_args(annotation) for kind in _structs(inner)]


def _written(kind: type[Wire], annotation: Any, prefix: str) -> Schema:
    """The schema of an annotation; a dict holds one member of the oneof of 1.0."""
    if get_origin(annotation) is list:
        return {"type": "array", "items": _written(kind, get_args(annotation)[0], prefix)}
    if get_origin(annotation) in (Union, types.UnionType):
        return _any_of(_written(kind, inner, prefix) for inner in get_args(annotation))
    if get_origin(annotation) is dict:
        names = [field.encode_name for field in msgspec.structs.fields(kind)]
        members = {name: {"type": "object"} for name in names}
        return {"type": "object", "properties": members, "minProperties": 1, "maxProperties": 1}
    return reference(annotation, prefix)


def _any_of(schemas: Iterable[Schema]) -> Schema:
    different: list[Schema] = []
    for schema in schemas:
        if schema not in different:
            different.append(schema)
    return different[0] if len(different) == 1 else {"anyOf": different}


WORDINGS: dict[str, Wording] = {"1.0": Words10(), "0.3": Words03()}
