"""The agent card of 0.3 (0.3 §5.5), from the card of 1.0 (§4.4.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from protocol.card import AgentCard
from protocol.codec import encode

PROTOCOL_VERSION = "0.3.0"

Json = dict[str, Any]

_SAME = ("name", "description", "version", "provider", "iconUrl", "documentationUrl")
_SAME_LISTS = ("defaultInputModes", "defaultOutputModes")
_CAPABILITIES = ("streaming", "pushNotifications", "extensions")
_SCHEME_TYPES = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
# What 0.3 requires of each OAuth flow that it knows (0.3 §5.5.3); it has no device code.
_FLOWS = {
    "authorizationCode": ("authorizationUrl", "tokenUrl"),
    "clientCredentials": ("tokenUrl",),
    "implicit": ("authorizationUrl",),
    "password": ("tokenUrl",),
}


def print_v03(card: AgentCard) -> Json:
    """The 0.3 card, of the interfaces whose protocol version is 0.3; the first one is the preferred one.

    Raises ValueError if there is none.
    """
    given = _print(card)
    interfaces = [_interface(one) for one in given["supportedInterfaces"] if _is_v03(one["protocolVersion"])]
    if not interfaces:
        raise ValueError("The card has no interface of version 0.3.")
    printed: Json = {"protocolVersion": PROTOCOL_VERSION}
    printed.update((name, given[name]) for name in _SAME if name in given)
    printed |= {"url": interfaces[0]["url"], "preferredTransport": interfaces[0]["transport"]}
    # The main interface too: 0.3 §5.6.2 wants the list complete.
    printed["additionalInterfaces"] = interfaces
    printed["capabilities"] = {name: on for name, on in given["capabilities"].items() if name in _CAPABILITIES}
    printed |= _security(given.get("securitySchemes", {}), given.get("securityRequirements", []))
    printed.update((name, given[name]) for name in _SAME_LISTS)
    printed["skills"] = [_skill(skill) for skill in given["skills"]]
    if "extendedAgentCard" in given["capabilities"]:
        printed["supportsAuthenticatedExtendedCard"] = given["capabilities"]["extendedAgentCard"]
    if "signatures" in given:
        printed["signatures"] = given["signatures"]
    return printed


def print_both(card: AgentCard) -> Json:
    """One card that clients of both versions read: each ignores what only the other one knows.

    Raises ValueError if the card has no interface of version 0.3.
    """
    new, old = _print(card), print_v03(card)
    # A client of 1.0 that finds the old form of a security scheme may read that alone: it has to say all.
    for name, scheme in old.get("securitySchemes", {}).items():
        (whole,) = new["securitySchemes"][name].values()
        old["securitySchemes"][name] = _merge(whole, scheme)
    merged: Json = _merge(new, old)
    return merged


def _print(card: AgentCard) -> Json:
    printed: Json = msgspec.json.decode(encode(card))
    return printed


def _merge(new: Any, old: Any) -> Any:
    """What both hold, with the members of objects, also of those in lists of equal length, put together. `new` wins."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {**old, **{name: _merge(value, old[name]) if name in old else value for name, value in new.items()}}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_merge(*pair) for pair in zip(new, old, strict=True)]
    return new


def _is_v03(version: str) -> bool:
    return version.split(".")[:2] == ["0", "3"]


def _interface(interface: Json) -> Json:
    return {"url": interface["url"], "transport": interface["protocolBinding"]}


def _skill(skill: Json) -> Json:
    printed = {name: value for name, value in skill.items() if name != "securityRequirements"}
    if "securityRequirements" in skill:
        printed["security"] = [_requirement(one) for one in skill["securityRequirements"]]
    return printed


def _security(schemes: Json, requirements: list[Json]) -> Json:
    printed: Json = {}
    known = {name: scheme for name, given in schemes.items() if (scheme := _scheme(given)) is not None}
    if known:
        printed["securitySchemes"] = known
    if requirements:
        printed["security"] = [_requirement(one) for one in requirements]
    return printed


def _requirement(requirement: Json) -> dict[str, list[str]]:
    return {name: scopes.get("list", []) for name, scopes in requirement.get("schemes", {}).items()}


def _scheme(given: Json) -> Json | None:
    """The 0.3 form of a security scheme, None for one that 0.3 does not know."""
    for name, kind in _SCHEME_TYPES.items():
        if name not in given:
            continue
        scheme = {"type": kind, **given[name]}
        if kind == "apiKey":
            scheme["in"] = scheme.pop("location")
        elif kind == "oauth2":
            scheme["flows"] = {flow: _flow(flow, value) for flow, value in scheme["flows"].items() if flow in _FLOWS}
        return scheme
    return None


def _flow(name: str, given: Json) -> Json:
    needed: Json = {**dict.fromkeys(_FLOWS[name], ""), "scopes": {}}
    return needed | {member: value for member, value in given.items() if member != "pkceRequired"}
