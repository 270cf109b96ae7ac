"""What an HTTP request says beside its body: caller, version, extensions (§3.2.6, §3.6)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from agents.access import authenticate
from agents.public_url import base_url
from agents.registry import AgentEntry
from protocol.errors import VersionNotSupportedError
from tasks_app.content.links import own_url
from tasks_app.execution.host import Host
from tasks_app.operations import Call

SUPPORTED_VERSIONS = ("1.0", "0.3")
_VERSION = re.compile(r"([0-9]+\.[0-9]+)(?:\.[0-9]+)?")  # Major.Minor counts, a patch does not (§3.6)

_WANTED = {
    b"authorization": "authorization",
    b"x-api-key": "api_key",
    b"a2a-version": "version",
    b"content-type": "content_type",
    b"accept": "accept",
    b"last-event-id": "last_event_id",
    b"content-length": "content_length",
    b"a2a-extensions": "extensions",
    b"x-a2a-extensions": "extensions_v03",
}


@dataclass(slots=True)
class ServiceParameters:
    """Headers as they came; "" where there was none. Lines of one name are joined by commas (RFC 9110 §5.3)."""

    authorization: str = ""
    api_key: str = ""
    version: str = ""
    content_type: str = ""
    accept: str = ""
    last_event_id: str = ""
    content_length: str = ""
    extensions: str = ""
    extensions_v03: str = ""
    scope: Any = None  # of the HTTP request or upgrade; None where there is none

    @property
    def declared_length(self) -> int | None:
        """Content-Length, if it is one; a huge one is only told to be huge, as Python reads no number of any length."""
        if not self.content_length.isdecimal():
            return None
        return int(self.content_length.lstrip("0")[:20] or "0")

    def call(self, host: Host, entry: AgentEntry, binding: str) -> Call:
        """The call. Raises UnauthenticatedError."""
        caller = authenticate(host.registry, entry, self.authorization or None, self.api_key or None)
        return Call(
            host=host,
            entry=entry,
            caller=caller,
            dialect=f"{binding}/1.0",
            requested=_uris(self.extensions),
            requested_v03=_uris(self.extensions_v03),
            resume_after=event_id(self.last_event_id),
            find_base_url=self.base_url,
        )

    def base_url(self) -> str:
        """Where the caller reached the host over HTTP. Few calls need it."""
        return own_url() if self.scope is None else base_url(self.scope, dict(self.scope["headers"]))

    def served_version(self, served: Collection[str] = SUPPORTED_VERSIONS) -> str | None:
        """The version that the request names, None if it names none: that of its method or path then counts (§3.6).

        Raises VersionNotSupportedError for one that is not `served`.
        """
        version = self.version.strip()
        if not version or version in served:
            return version or None
        match = _VERSION.fullmatch(version)
        if match is None or match[1] not in served:
            raise VersionNotSupportedError(version[:20], served)
        return match[1]


def event_id(text: str) -> int | None:
    """The number of an event, None for what is none: whoever names it is told everything."""
    return int(text) if len(text) < 10 and text.isascii() and text.isdecimal() else None


_NO_URIS: frozenset[str] = frozenset()


def _uris(header: str) -> frozenset[str]:
    """The URIs of A2A-Extensions (§3.2.6)."""
    return frozenset(uri for part in header.split(",") if (uri := part.strip())) if header else _NO_URIS


def activated(call: Call) -> tuple[tuple[str, str], ...]:
    """The service parameter of a reply that names the extensions it was made with, as (name, value), if there are any.

    0.3 has a name of its own for it.
    """
    extensions = call.extensions
    if not extensions:
        return ()
    name = "x-a2a-extensions" if call.version == "0.3" else "a2a-extensions"
    return ((name, ", ".join(uri for uri in sorted(extensions))),)


def read_service_parameters(scope: Any) -> ServiceParameters:
    """From headers, and the version from the query where no header has it (§3.6.1)."""
    found = ServiceParameters(scope=scope)
    for name, value in scope["headers"]:
        attribute = _WANTED.get(name)
        if attribute is None:
            continue
        text = value.decode("latin-1")
        earlier = getattr(found, attribute)
        setattr(found, attribute, text if earlier in ("", text) else f"{earlier}, {text}")
    query = scope["query_string"]
    if query and not found.version:
        found.version = version_in_query(query)
    return found


def version_in_query(query: bytes) -> str:
    """The value of a parameter A2A-Version, whatever its case."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return next((value for name, value in pairs if name.lower() == "a2a-version"), "")
