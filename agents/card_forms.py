"""What is signed of a card: its canonical forms (§8.4.1, RFC 8785).

A reader checks a signature over what it holds of the card, and that differs: who reads 1.0 keeps the members of 1.0,
who reads 0.3 those of 0.3, and the SDKs also drop members that are empty, which §8.4.1 keeps where they are required.
A card may have several signatures, and one that fits is enough, so each form that differs gets one.
"""

from __future__ import annotations

import json
from typing import Any

import rfc8785

Json = dict[str, Any]

# What the SDK for 0.3 leaves out, because its types have it as their default.
_V03_DEFAULTS = {"protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}


def canonical_forms(printed: Json, as_v1: Json, as_v03: Json | None) -> list[bytes]:
    """The payloads to sign of a card without signatures: as it is printed, as its 1.0 members, as its 0.3 members.

    No form twice; the one of the card as it is comes first.
    """
    forms = [rfc8785.dumps(printed), rfc8785.dumps(as_v1), rfc8785.dumps(_without_empty(as_v1))]
    if as_v03 is not None:
        forms += [rfc8785.dumps(as_v03), _sdk_v03(as_v03)]
    return list(dict.fromkeys(forms))


def read_as_v1(as_v1: Json, as_v03: Json) -> Json:
    """A card in 0.3 alone as the SDK for 1.0 reads it: `as_v1`, the same card in 1.0, but for what 0.3 cannot say."""
    interfaces = [
        {"url": as_v03["url"], "protocolBinding": as_v03["preferredTransport"]},
        *({"url": i["url"], "protocolBinding": i["transport"]} for i in as_v03.get("additionalInterfaces", [])),
    ]
    capabilities = {
        name: value for name, value in as_v1["capabilities"].items() if value or name in as_v03["capabilities"]
    }
    return as_v1 | {
        "supportedInterfaces": [i | {"protocolVersion": as_v03["protocolVersion"]} for i in interfaces],
        "capabilities": capabilities,
    }


def _sdk_v03(card: Json) -> bytes:
    """As a2a-sdk 0.3 has it, which is RFC 8785 for ASCII only."""
    kept = {name: value for name, value in card.items() if _V03_DEFAULTS.get(name) != value}
    if "securitySchemes" in kept:
        kept["securitySchemes"] = {
            name: {member: value for member, value in scheme.items() if member != "type"}
            for name, scheme in kept["securitySchemes"].items()
        }
    return json.dumps(_without_empty(kept), separators=(",", ":"), sort_keys=True).encode()


def _without_empty(value: Any) -> Any:
    """Without what is "", [], {} or null, at any depth; None for what is that itself."""
    if isinstance(value, dict):
        members = {name: kept for name, inner in value.items() if (kept := _without_empty(inner)) is not None}
        return members or None
    if isinstance(value, list):
        return [kept for inner in value if (kept := _without_empty(inner)) is not None] or None
    return None if value == "" else value
