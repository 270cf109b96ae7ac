"""google.protobuf.Struct and Value as JSON, whoever sends them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value

Json = Any
"""What msgspec writes as JSON."""

Unfit = Callable[[], Json]
"""What stands for a number that JSON cannot hold (NaN, infinity); it may raise."""

EXACT = 2**53
"""Integers up to here are exact as doubles; larger ones stay in the form of a double."""


def struct_json(struct: Struct, unfit: Unfit) -> dict[str, Json]:
    """A Struct. A protobuf map has no order of its own; sorted, the same Struct is the same text."""
    return {name: value_json(value, unfit) for name, value in sorted(struct.fields.items())}


def value_json(value: Value, unfit: Unfit) -> Json:
    """A Value; None for one of no kind."""
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            return _number(value.number_value, unfit)
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return struct_json(value.struct_value, unfit)
        case "list_value":
            return [value_json(item, unfit) for item in value.list_value.values]
        case _:
            return None


def _number(number: float, unfit: Unfit) -> Json:
    """Whole numbers have no `.0`, except for -0.0."""
    if not math.isfinite(number):
        return unfit()
    whole = number.is_integer() and abs(number) <= EXACT and (number != 0 or math.copysign(1.0, number) > 0)
    return int(number) if whole else number
