"""The agent card (case D06)."""

from __future__ import annotations

import pytest

from protocol.card import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    APIKeySecurityScheme,
    AuthorizationCodeOAuthFlow,
    HTTPAuthSecurityScheme,
    OAuth2SecurityScheme,
    OAuthFlows,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    missing_fields,
)
from protocol.codec import decode, encode
from tests.protocol.support import printed, violations


def card(**fields: object) -> AgentCard:
    values = {
        "name": "Echo",
        "description": "",
        "supported_interfaces": [
            AgentInterface(url="https://e.test/a", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        "version": "",
        "capabilities": AgentCapabilities(),
        "default_input_modes": [],
        "default_output_modes": [],
        "skills": [],
    }
    return AgentCard(**(values | fields))  # type: ignore[arg-type]


MINIMAL = (
    b'{"name":"Echo","description":"","supportedInterfaces":[{"url":"https://e.test/a","protocolBinding":"JSONRPC",'
    b'"protocolVersion":"1.0"}],"version":"","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],'
    b'"skills":[]}'
)


@pytest.mark.spec("4.4.1")
def test_required_fields_are_always_printed() -> None:
    assert encode(card()) == MINIMAL
    assert encode(decode(AgentCard, MINIMAL)) == MINIMAL


@pytest.mark.spec("5.7")
@pytest.mark.parametrize("value", [True, False, None])
def test_a_flag_that_is_false_differs_from_one_that_is_not_there(value: bool | None) -> None:
    capabilities = AgentCapabilities(streaming=value, extended_agent_card=value)
    expected = {} if value is None else {"streaming": value, "extendedAgentCard": value}
    data = encode(card(capabilities=capabilities))
    assert decode(AgentCard, data).capabilities == capabilities
    assert printed(decode(AgentCard, data))["capabilities"] == expected


@pytest.mark.spec("5.7")
def test_an_empty_documentation_url_stays() -> None:
    assert decode(AgentCard, encode(card(documentation_url="", icon_url=None))).documentation_url == ""
    assert decode(AgentCard, MINIMAL).documentation_url is None


@pytest.mark.spec("4.5.1")
def test_prints_security() -> None:
    flow = AuthorizationCodeOAuthFlow(authorization_url="a", token_url="t", scopes={}, pkce_required=True)
    secured = card(
        security_schemes={
            "bearer": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer")),
            "oauth": SecurityScheme(
                oauth2_security_scheme=OAuth2SecurityScheme(flows=OAuthFlows(authorization_code=flow))
            ),
        },
        security_requirements=[
            SecurityRequirement(schemes={"bearer": StringList(), "oauth": StringList(list=["read"])})
        ],
    )
    shown = printed(secured)
    assert shown["securitySchemes"] == {
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
        "oauth": {
            "oauth2SecurityScheme": {
                "flows": {
                    "authorizationCode": {
                        "authorizationUrl": "a",
                        "tokenUrl": "t",
                        "scopes": {},
                        "pkceRequired": True,
                    }
                }
            }
        },
    }
    assert shown["securityRequirements"] == [{"schemes": {"bearer": {}, "oauth": {"list": ["read"]}}}]
    assert encode(decode(AgentCard, encode(secured))) == encode(secured)


@pytest.mark.spec("4.4.1")
def test_refuses_a_card_that_cannot_be_called() -> None:
    assert violations(AgentCard, b"{}") == [
        ("name", "is required"),
        ("supportedInterfaces", "is required"),
        ("capabilities", "is required"),
    ]
    data = b'{"name":"n","capabilities":{},"supportedInterfaces":[{}],"securitySchemes":{"a":{"mtlsSecurityScheme":1}}}'
    assert violations(AgentCard, data) == [
        ("supportedInterfaces[0].url", "is required"),
        ("supportedInterfaces[0].protocolBinding", "is required"),
        ("supportedInterfaces[0].protocolVersion", "is required"),
        ("securitySchemes.a.mtlsSecurityScheme", "must be an object"),
    ]


@pytest.mark.spec("4.5")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ('"securitySchemes":[]', ("securitySchemes", "must be an object")),
        ('"securitySchemes":{"a":null}', ("securitySchemes.a", "must be an object")),
        (
            '"securityRequirements":[{"schemes":{"a":{"list":[1]}}}]',
            ("securityRequirements[0].schemes.a.list[0]", "must be a string"),
        ),
        (
            '"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"implicit":{"scopes":{"a":null}}}}}}',
            ("securitySchemes.o.oauth2SecurityScheme.flows.implicit.scopes.a", "must be a string"),
        ),
    ],
)
def test_names_what_is_wrong_in_a_map(members: str, expected: tuple[str, str]) -> None:
    assert violations(AgentCard, MINIMAL[:-1] + f",{members}}}".encode()) == [expected]


@pytest.mark.spec("4.5.1")
def test_schemes_of_the_future_do_not_hide_a_card() -> None:
    data = MINIMAL[:-1] + b',"securitySchemes":{"new":{"quantumSecurityScheme":{}}}}'
    assert decode(AgentCard, data).security_schemes == {"new": SecurityScheme()}


@pytest.mark.spec("4.5.7")
def test_refuses_two_flows_in_one() -> None:
    flows = b'{"flows":{"implicit":{},"password":{}}}'
    data = MINIMAL[:-1] + b',"securitySchemes":{"o":{"oauth2SecurityScheme":' + flows + b"}}}"
    assert violations(AgentCard, data) == [
        (
            "securitySchemes.o.oauth2SecurityScheme.flows",
            "must have only one of authorizationCode, clientCredentials, implicit, password, deviceCode, "
            "got implicit, password",
        )
    ]


@pytest.mark.spec("8.3.1")
def test_names_what_a_complete_card_still_needs() -> None:
    assert [one.field for one in missing_fields(card())] == [
        *("description", "version", "defaultInputModes", "defaultOutputModes", "skills"),
    ]
    skill = AgentSkill(id="s", name="S", description="d", tags=[])
    modes = ["text/plain"]
    almost = card(description="d", version="1", default_input_modes=modes, default_output_modes=modes, skills=[skill])
    assert [(one.field, one.description) for one in missing_fields(almost)] == [("skills[0].tags", "is required")]
    skill.tags = ["t"]
    assert missing_fields(almost) == []
    almost.security_schemes = {"k": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="", name="n"))}
    assert [one.field for one in missing_fields(almost)] == ["securitySchemes.k.apiKeySecurityScheme.location"]
