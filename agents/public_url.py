"""The address that callers use: PUBLIC_URL, or what the request says of it."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

# A host name or address with an optional port; anything else in Host is nobody's address.
_HOST = re.compile(rb"[A-Za-z0-9._-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")

_FORWARDED = (b"x-forwarded-proto", b"x-forwarded-host")


def base_url(scope: Any, headers: dict[bytes, bytes]) -> str:
    """Such as `https://api.example.com`, without a slash at the end.

    Without PUBLIC_URL it is the request's Host; X-Forwarded-Proto and X-Forwarded-Host count from trusted proxies only.
    """
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL)
    trusted = is_trusted_proxy((scope.get("client") or ("", 0))[0])
    proto, host = (headers.get(name, b"") if trusted else b"" for name in _FORWARDED)
    return _address(scope["scheme"], headers.get(b"host", b""), proto, host)


def base_url_of(request: HttpRequest) -> str:
    """The same for a request of Django's. Raises DisallowedHost."""
    scope = {"scheme": request.scheme, "client": (request.META.get("REMOTE_ADDR", ""), 0)}
    headers = {name: request.headers.get(name.decode(), "").encode("latin-1") for name in _FORWARDED}
    return base_url(scope, {**headers, b"host": request.get_host().encode()})


@lru_cache(maxsize=1024)
def is_known(url: str) -> bool:
    """Whether the operator named this address, so that what is signed may hold it.

    Others come from a Host header, and whoever asks chooses that: a signature over it would vouch for anybody.
    """
    hosts = [host for host in settings.ALLOWED_HOSTS if host != "*"]
    return url == settings.PUBLIC_URL or validate_host(split_domain_port(urlsplit(url).netloc)[0], hosts)


@lru_cache(maxsize=1024)
def _address(scheme: str, host: bytes, forwarded_proto: bytes, forwarded_host: bytes) -> str:
    proto = _first(forwarded_proto).lower()
    if proto in (b"http", b"https"):
        scheme = proto.decode()
    host = _first(forwarded_host) or host
    if not _HOST.fullmatch(host):
        host = f"{settings.HOST}:{settings.PORT}".encode()
    return f"{scheme}://{host.decode()}"


def _first(value: bytes) -> bytes:
    return value.partition(b",")[0].strip()


@lru_cache(maxsize=1024)
def is_trusted_proxy(address: str) -> bool:
    """Whether a peer may speak for the address that callers used (TRUSTED_PROXIES)."""
    try:
        peer = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(peer in network for network in settings.TRUSTED_PROXIES)
