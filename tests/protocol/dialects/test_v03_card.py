"""Cards of 0.3, and cards that both versions read."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import conversions, types
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToJson, ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json

from protocol.card import AgentCard
from protocol.codec import decode
from protocol.dialects.v03 import V0_3
from protocol.dialects.v03.card import print_both, print_v03
from tests.protocol.strategies import messages

CARD: dict[str, Any] = {
    "name": "n",
    "description": "d",
    "version": "2",
    "supportedInterfaces": [
        {"url": "https://h/a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "https://h/a", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        {"url": "https://h/a", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3.0"},
    ],
    "provider": {"organization": "o", "url": "https://o"},
    "iconUrl": "https://i",
    "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": True},
    "securitySchemes": {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key", "description": "k"}},
        "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
        "oauth": {
            "oauth2SecurityScheme": {
                "flows": {
                    "authorizationCode": {
                        "authorizationUrl": "https://u",
                        "tokenUrl": "https://t",
                        "scopes": {"s": "S"},
                        "pkceRequired": True,
                    }
                }
            }
        },
        "device": {
            "oauth2SecurityScheme": {
                "flows": {"deviceCode": {"deviceAuthorizationUrl": "https://u", "tokenUrl": "https://t", "scopes": {}}}
            }
        },
        "id": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://c"}},
        "tls": {"mtlsSecurityScheme": {}},
    },
    "securityRequirements": [{"schemes": {"oauth": {"list": ["s"]}, "tls": {}}}, {"schemes": {"key": {}}}],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [
        {
            "id": "s",
            "name": "S",
            "description": "sd",
            "tags": ["t"],
            "securityRequirements": [{"schemes": {"bearer": {}}}],
        }
    ],
}
SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "k"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {
        "type": "oauth2",
        "flows": {
            "authorizationCode": {"authorizationUrl": "https://u", "tokenUrl": "https://t", "scopes": {"s": "S"}}
        },
    },
    "device": {"type": "oauth2", "flows": {}},
    "id": {"type": "openIdConnect", "openIdConnectUrl": "https://c"},
    "tls": {"type": "mutualTLS"},
}


def card(**changes: Any) -> AgentCard:
    return decode(AgentCard, json.encode(CARD | changes))


def test_the_card_of_0_3() -> None:
    printed = print_v03(card())
    assert printed == {
        "protocolVersion": "0.3.0",
        "name": "n",
        "description": "d",
        "version": "2",
        "url": "https://h/a",
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            {"url": "https://h/a", "transport": "JSONRPC"},
            {"url": "https://h/a", "transport": "HTTP+JSON"},
        ],
        "provider": {"organization": "o", "url": "https://o"},
        "iconUrl": "https://i",
        "capabilities": {"streaming": True, "pushNotifications": False},
        "supportsAuthenticatedExtendedCard": True,
        "securitySchemes": SCHEMES,
        "security": [{"oauth": ["s"], "tls": []}, {"key": []}],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {"id": "s", "name": "S", "description": "sd", "tags": ["t"], "security": [{"bearer": []}]},
        ],
    }
    types.AgentCard.model_validate(printed)
    assert json.decode(json.encode(print_v03(card()))) == printed
    assert json.decode(V0_3.write(AgentCard, json.encode(CARD))) == printed


def test_a_card_without_interfaces_of_0_3() -> None:
    newer = card(supportedInterfaces=CARD["supportedInterfaces"][:1])
    with pytest.raises(ValueError, match="no interface of version 0"):
        print_v03(newer)


def test_one_card_for_both() -> None:
    both = print_both(card())
    old, new = print_v03(card()), CARD
    assert both["securitySchemes"]["bearer"] == new["securitySchemes"]["bearer"] | SCHEMES["bearer"]
    assert both["skills"][0] == new["skills"][0] | old["skills"][0]
    assert both["supportedInterfaces"] == new["supportedInterfaces"]
    # Clients of 0.3 see the old card in it, those of 1.0 the new one.
    assert types.AgentCard.model_validate(both) == types.AgentCard.model_validate(old)
    assert decode(AgentCard, json.encode(both)) == card()
    assert parse_agent_card(dict(both)) == ParseDict(new, a2a_pb2.AgentCard())


@given(messages(a2a_pb2.AgentCard.DESCRIPTOR), st.sampled_from(["0.3", "0.3.0"]))
@settings(max_examples=60, deadline=None)
def test_our_card_is_that_of_the_sdk(message: Any, version: str) -> None:
    for interface in message.supported_interfaces:
        interface.protocol_version = version
    for extension in message.capabilities.extensions:
        extension.uri = extension.uri or "u"
    known = {name: scheme for name, scheme in message.security_schemes.items() if scheme.WhichOneof("scheme")}
    for name in set(message.security_schemes) - set(known):
        del message.security_schemes[name]
    for scheme in known.values():
        if scheme.HasField("api_key_security_scheme"):
            scheme.api_key_security_scheme.location = "cookie"
    expected = conversions.to_compat_agent_card(message)
    ours = types.AgentCard.model_validate_json(
        json.encode(print_v03(decode(AgentCard, MessageToJson(message).encode())))
    )
    # The SDK leaves the preferred interface out of the list, which 0.3 §5.6.2 wants complete.
    assert ours.additional_interfaces is not None
    assert (ours.additional_interfaces[0].url, ours.additional_interfaces[0].transport) == (
        expected.url,
        expected.preferred_transport,
    )
    ours.additional_interfaces = ours.additional_interfaces[1:]
    ours.protocol_version = expected.protocol_version
    assert without_empty(ours) == without_empty(expected)


def without_empty(value: types.AgentCard) -> Any:
    def pruned(given: Any) -> Any:
        if isinstance(given, list):
            return [pruned(inner) for inner in given]
        if isinstance(given, dict):
            short = {key: inner if key == "params" else pruned(inner) for key, inner in given.items()}
            return {key: inner for key, inner in short.items() if inner not in (None, [], {}, "", False)}
        return given

    return pruned(value.model_dump(mode="json", by_alias=True))
