"""The agent card (§4.4) and its security schemes (§4.5), in the style of `protocol.model`.

Fields without a default are printed even when empty. Reading a card takes `""` and `[]` for most of them, so that a
card from elsewhere stays readable; `missing_fields` says what a complete card still needs.
`None` marks proto's `optional`: False and absent differ, which matters to a signature (§8.4.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from protocol.errors import Violation
from protocol.model import JsonObject, Text, Wire

# For a field that is itself called list.
Strings = list[str]


class AgentInterface(Wire, kw_only=True):
    """A URL, its binding (`JSONRPC`, `HTTP+JSON`, `GRPC`) and the protocol version there, as `1.0` (§4.4.6)."""

    url: Text
    protocol_binding: Text
    tenant: str = ""
    protocol_version: Text


class AgentProvider(Wire, kw_only=True):
    """Who runs the agent (§4.4.2)."""

    url: str
    organization: str


class AgentExtension(Wire, kw_only=True):
    """A protocol extension that the agent supports or requires (§4.4.4)."""

    uri: str = ""
    description: str = ""
    required: bool = False
    params: JsonObject | UnsetType = UNSET


class AgentCapabilities(Wire, kw_only=True):
    """Optional abilities (§4.4.3). None: not stated."""

    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: list[AgentExtension] = field(default_factory=list)
    extended_agent_card: bool | None = None


class StringList(Wire, kw_only=True):
    """Scopes of one security requirement."""

    list: Strings = field(default_factory=list)


class SecurityRequirement(Wire, kw_only=True):
    """Scheme names that must hold together, each with its scopes."""

    schemes: dict[str, StringList] = field(default_factory=dict)


class AgentSkill(Wire, kw_only=True):
    """Something the agent can do (§4.4.5)."""

    id: Text
    name: Text
    description: str
    tags: list[str]
    examples: list[str] = field(default_factory=list)
    input_modes: list[str] = field(default_factory=list)
    output_modes: list[str] = field(default_factory=list)
    security_requirements: list[SecurityRequirement] = field(default_factory=list)


class AgentCardSignature(Wire, kw_only=True):
    """A JSON Web Signature over the card (§4.4.7, §8.4.2); `protected` and `signature` are base64url."""

    protected: Text
    signature: Text
    header: JsonObject | UnsetType = UNSET


class APIKeySecurityScheme(Wire, kw_only=True):
    """A key in a `query`, `header` or `cookie` parameter (§4.5.2)."""

    description: str = ""
    location: Text
    name: Text


class HTTPAuthSecurityScheme(Wire, kw_only=True):
    """HTTP authentication such as Bearer (§4.5.3)."""

    description: str = ""
    scheme: Text
    bearer_format: str = ""


class AuthorizationCodeOAuthFlow(Wire, kw_only=True):
    """§4.5.8."""

    authorization_url: Text
    token_url: Text
    refresh_url: str = ""
    scopes: dict[str, str]
    pkce_required: bool = False


class ClientCredentialsOAuthFlow(Wire, kw_only=True):
    """§4.5.9."""

    token_url: Text
    refresh_url: str = ""
    scopes: dict[str, str]


class ImplicitOAuthFlow(Wire, kw_only=True):
    """Deprecated in the specification, still read and printed."""

    authorization_url: str = ""
    refresh_url: str = ""
    scopes: dict[str, str] = field(default_factory=dict)


class PasswordOAuthFlow(Wire, kw_only=True):
    """Deprecated in the specification, still read and printed."""

    token_url: str = ""
    refresh_url: str = ""
    scopes: dict[str, str] = field(default_factory=dict)


class DeviceCodeOAuthFlow(Wire, kw_only=True):
    """RFC 8628 (§4.5.10)."""

    device_authorization_url: Text
    token_url: Text
    refresh_url: str = ""
    scopes: dict[str, str]


class OAuthFlows(Wire, kw_only=True):
    """One OAuth 2.0 flow (§4.5.7). None set: a flow that this version does not know."""

    AT_MOST_ONE_OF: ClassVar[tuple[str, ...]] = (
        "authorization_code",
        "client_credentials",
        "implicit",
        "password",
        "device_code",
    )

    authorization_code: AuthorizationCodeOAuthFlow | UnsetType = UNSET
    client_credentials: ClientCredentialsOAuthFlow | UnsetType = UNSET
    implicit: ImplicitOAuthFlow | UnsetType = UNSET
    password: PasswordOAuthFlow | UnsetType = UNSET
    device_code: DeviceCodeOAuthFlow | UnsetType = UNSET


class OAuth2SecurityScheme(Wire, kw_only=True):
    """OAuth 2.0 (§4.5.4)."""

    description: str = ""
    flows: OAuthFlows
    oauth2_metadata_url: str = ""


class OpenIdConnectSecurityScheme(Wire, kw_only=True):
    """OpenID Connect (§4.5.5)."""

    description: str = ""
    open_id_connect_url: Text


class MutualTlsSecurityScheme(Wire, kw_only=True):
    """A client certificate (§4.5.6)."""

    description: str = ""


class SecurityScheme(Wire, kw_only=True):
    """One way to authenticate (§4.5.1). None set: a scheme that this version does not know."""

    AT_MOST_ONE_OF: ClassVar[tuple[str, ...]] = (
        "api_key_security_scheme",
        "http_auth_security_scheme",
        "oauth2_security_scheme",
        "open_id_connect_security_scheme",
        "mtls_security_scheme",
    )

    api_key_security_scheme: APIKeySecurityScheme | UnsetType = UNSET
    http_auth_security_scheme: HTTPAuthSecurityScheme | UnsetType = UNSET
    oauth2_security_scheme: OAuth2SecurityScheme | UnsetType = UNSET
    open_id_connect_security_scheme: OpenIdConnectSecurityScheme | UnsetType = UNSET
    mtls_security_scheme: MutualTlsSecurityScheme | UnsetType = UNSET


class AgentCard(Wire, kw_only=True):
    """What an agent says about itself (§4.4.1)."""

    name: Text
    description: str
    supported_interfaces: Annotated[list[AgentInterface], Meta(min_length=1)]
    provider: AgentProvider | UnsetType = UNSET
    version: str
    documentation_url: str | None = None
    capabilities: AgentCapabilities
    security_schemes: dict[str, SecurityScheme] = field(default_factory=dict)
    security_requirements: list[SecurityRequirement] = field(default_factory=list)
    default_input_modes: list[str]
    default_output_modes: list[str]
    skills: list[AgentSkill]
    signatures: list[AgentCardSignature] = field(default_factory=list)
    icon_url: str | None = None


def missing_fields(card: AgentCard) -> list[Violation]:
    """Required strings and lists that are empty (§5.7). Maps of scopes may be."""
    return list(_empty_fields(card, ""))


def _empty_fields(value: Any, path: str) -> Iterator[Violation]:
    if isinstance(value, Wire):
        for info in msgspec.structs.fields(value):
            inner = getattr(value, info.name)
            name = f"{path}.{info.encode_name}" if path else info.encode_name
            if info.required and inner in ("", []):
                yield Violation(name, "is required")
            yield from _empty_fields(inner, name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _empty_fields(inner, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _empty_fields(inner, f"{path}.{key}")
