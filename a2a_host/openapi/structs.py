"""JSON Schema of the protocol's structs: msgspec's own, with what only `protocol.model` knows of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.inspect import CollectionType, DictType, Metadata, NoneType, StructType, Type, UnionType, type_info

from protocol.model import Wire

Schema = dict[str, Any]

# What `extra["json"]` of a type means (see `protocol.model`).
_FORMS: dict[str, Schema] = {
    "key": {"pattern": "^[^\\u0000]*$"},
    "base64": {"contentEncoding": "base64"},
    "timestamp": {"format": "date-time"},
    "object": {"type": "object"},
}
_CODE = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`")


def reference(kind: type[Wire], prefix: str = "") -> Schema:
    """The reference to the schema of a struct."""
    return {"$ref": f"#/components/schemas/{prefix}{kind.__name__}"}


def struct_schemas(kinds: Iterable[type[Wire]], prefix: str = "") -> dict[str, Schema]:
    """Schemas by component name of the structs and of all that they hold. `prefix` keeps versions apart."""
    roots = list(kinds)
    _, found = msgspec.json.schema_components(roots, ref_template=f"#/components/schemas/{prefix}{{name}}")
    structures = {structure.cls.__name__: structure for structure in _structures(roots)}
    schemas: dict[str, Schema] = {}
    for name, schema in sorted(found.items()):
        structure = structures.get(name)
        schemas[prefix + name] = _of_enum(schema) if structure is None else _of_struct(schema, structure)
    return schemas


def _structures(roots: Iterable[type[Wire]]) -> Iterator[StructType]:
    seen: set[type] = set()
    waiting: list[Type] = [type_info(kind) for kind in roots]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, Metadata):
            waiting.append(kind.type)
        elif isinstance(kind, UnionType):
            waiting += kind.types
        elif isinstance(kind, CollectionType):
            waiting.append(kind.item_type)
        elif isinstance(kind, DictType):
            waiting.append(kind.value_type)
        elif isinstance(kind, StructType) and kind.cls not in seen:
            seen.add(kind.cls)
            waiting += [field.type for field in kind.fields]
            yield kind


def _of_enum(schema: Schema) -> Schema:
    return {"type": "string", **schema, "description": _described(schema)}


def _of_struct(schema: Schema, structure: StructType) -> Schema:
    """Unknown members stay allowed, as readers ignore them (§5.7); of a oneof, one member has to be there."""
    properties = schema["properties"]
    result: Schema = {"type": "object", "description": _described(schema), "properties": {}}
    for field in structure.fields:
        result["properties"][field.encode_name] = _refined(properties[field.encode_name], field.type)
    if schema["required"]:
        result["required"] = schema["required"]
    names = {field.name: field.encode_name for field in structure.fields}
    kind: Any = structure.cls
    if choices := [{"required": [names[name]]} for name in kind.ONE_OF or kind.AT_MOST_ONE_OF]:
        result["oneOf"] = choices if kind.ONE_OF else [*choices, {"not": {"anyOf": choices}}]
    return result


def _refined(schema: Schema, kind: Type) -> Schema:
    """The schema of one field. Absent and null are the same (§5.7), so null is not among its values."""
    refined = {name: value for name, value in schema.items() if name != "default" or value not in ("", [], {}, None)}
    if isinstance(kind, Metadata):
        return _refined(refined, kind.type) | _FORMS.get((kind.extra or {}).get("json", ""), {})
    if isinstance(kind, UnionType):
        (inner,) = [one for one in kind.types if not isinstance(one, NoneType)]
        choices = [choice for choice in refined.pop("anyOf", []) if choice != {"type": "null"}]
        return _refined(refined | (choices[0] if choices else {}), inner)
    if isinstance(kind, CollectionType):
        return refined | {"items": _refined(refined["items"], kind.item_type)}
    return refined


def _described(schema: Schema) -> str:
    """The docstring, with fields by their names in JSON."""
    return _CODE.sub(lambda found: f"`{_camel(found[1])}`", schema.get("description", ""))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
