"""HTTP requests as bytes: valid ones of each binding and version, spoiled in body, headers, query, path or method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from tests.fuzz.documents import QUERY_NAMES, REST_V0_3, REST_V1, TASK_REST, V0_3, V1, Document
from tests.fuzz.spoiling import VALUES, Draw, body

BASE = b"/agents/echo"
_LATIN = st.text(st.characters(min_codepoint=1, max_codepoint=255, exclude_characters="\r\n"), max_size=12)
_IDS = st.integers(0, 2**64)
_ENDPOINTS = (BASE, BASE, BASE, b"/a2a", BASE + b"/", BASE + b"/a2a/v1/")
_BASES = (BASE, BASE, BASE, b"/a2a", b"/a2a/echo")
_VERBS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW")
_TARGETS = (
    *(b"%00", b"%zz", b"%", b"%FF%FE", b"%2F", b"%2e%2e", b"..", b".", b"//", b"\xff", b"%F0%9F%98%80", b"%0d%0a"),
    *(b"?", b"#", b";", b":", b":cancel", b":send", b"%3Acancel", b"tasks", b"echo", b"v1", b"{id}", b"*", b"~"),
    b"%25",
    b"a" * 300,
)
_VALUES: dict[str, list[str]] = {
    "A2A-Version": ["1.0", "0.3", "", "2.0", "1", "1.0.1", "01.0", "9" * 200, "1.0, 0.3", "\xff", "1.0 "],
    "A2A-Extensions": ["", ",", "https://example.com/ext/1", "a b", "x" * 500, ",,,;", "\xe9"],
    "Content-Type": ["", "application/json", "application/a2a+json", "text/plain", "x", "application/json; charset=x"],
    "Accept": ["", "*/*", "text/html", "text/event-stream", "application/json", "q=1;;", "\xff", "x" * 500],
    "Authorization": ["", "Bearer", "Bearer x", "bearer \xff", "Basic YTpi", "Bearer " + "x" * 500, "Digest"],
    "X-API-Key": ["", "x", "\xff", "a2a_" + "x" * 40],
    "Last-Event-ID": ["", "0", "-1", "9" * 30, "x", "\xb2", "1.5"],
    "Content-Encoding": ["gzip", "identity", "x"],
    "Host": ["", "x", "[::1", "a b", "\xff", "x" * 300],
    "Origin": ["null", "https://evil.example"],
    "Cookie": ["sessionid=x; csrftoken=y"],
    "X-Forwarded-Proto": ["https", "javascript"],
    "X-Forwarded-Host": ["evil.example", "<script>"],
    "If-None-Match": ["*", '"x"', "\xff", "W/"],
    "If-Modified-Since": ["x", "Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 99 Jan 99999999 00:00:00 GMT"],
    "Expect": ["100-continue", "x"],
    "X-HTTP-Method-Override": ["DELETE"],
}
_HEADERS = list(_VALUES.items())


@dataclass(frozen=True)
class Request:
    """One request; `raw()` is what goes over the wire."""

    verb: str
    target: bytes
    headers: tuple[bytes, ...]
    body: bytes

    def raw(self, key: str) -> bytes:
        """The bytes of it, by a caller with this key unless its headers speak of keys themselves."""
        given = b"\r\n".join(self.headers).lower()
        lines = [b"%b %b HTTP/1.1" % (self.verb.encode(), self.target), b"Content-Length: %d" % len(self.body)]
        if b"host:" not in given:
            lines.append(b"Host: 127.0.0.1")
        if b"authorization:" not in given and b"x-api-key:" not in given:
            lines.append(b"Authorization: Bearer %b" % key.encode())
        return b"\r\n".join([*lines, *self.headers]) + b"\r\n\r\n" + self.body


def own_id(draw: Draw, document: Any) -> Any:
    """The same with a message id of its own, so that it is no repetition of another one."""
    if isinstance(document, dict) and "message" in document:
        return document | {"message": document["message"] | {"messageId": f"m{draw(_IDS)}"}}
    return document


def headers(draw: Draw, *usual: bytes) -> tuple[bytes, ...]:
    """Header lines: the usual ones, now and then with others."""
    lines = list(usual)
    for _ in range(max(0, draw.below(12) - 8)):
        name, values = _HEADERS[draw.below(len(_HEADERS))]
        chosen = draw.below(len(values) + 1)
        value = values[chosen] if chosen < len(values) else draw(_LATIN)
        lines = [line for line in lines if not line.lower().startswith(name.lower().encode())]
        lines.append(f"{name}: {value}".encode("latin-1"))
    return tuple(lines)


def query(draw: Draw) -> bytes:
    """A query string, mostly of parameters that operations know, with values that they may not."""
    pairs = []
    for _ in range(1 + draw.below(3)):
        text = str(draw(VALUES)).encode("utf-8", "surrogatepass")
        pairs.append(f"{QUERY_NAMES[draw.below(len(QUERY_NAMES))]}={quote(text, safe='')}".encode())
    return b"?" + b"&".join(pairs) + (b"" if draw.below(4) else _odd_target(draw))


def path(draw: Draw, usual: str) -> bytes:
    """A path below an agent, mostly as it is."""
    target = usual.encode()
    match draw.below(8):
        case 0:
            at = 1 + draw.below(len(target))  # what does not begin with a slash is not below the agent
            return target[:at] + _odd_target(draw) + target[at:]
        case 1:
            return target.replace(b"no-task", _odd_target(draw))
        case 2:
            return b"/echo" + target
        case 3:
            return quote(target, safe="").encode()
    return target


def _odd_target(draw: Draw) -> bytes:
    return _TARGETS[draw.below(len(_TARGETS))]


@st.composite
def rpc_requests(drawn: st.DrawFn, methods: dict[str, Document]) -> Request:
    """POSTs to an agent's URL."""
    draw = Draw(drawn)
    names = list(methods)
    method = names[draw.below(len(names))]
    params = own_id(draw, methods[method])
    content = body(draw, {"jsonrpc": "2.0", "id": "q1", "method": method, "params": params})
    target = _ENDPOINTS[draw.below(len(_ENDPOINTS))]
    return Request("POST", target, headers(draw, b"Content-Type: application/json"), content)


@st.composite
def rest_requests(
    drawn: st.DrawFn, routes: list[tuple[str, str, Document | None]], bases: tuple[bytes, ...] = _BASES
) -> Request:
    """Requests below an agent's URL, or another base of it."""
    draw = Draw(drawn)
    verb, usual, document = routes[draw.below(len(routes))]
    kind = draw.below(160)
    if kind % 16 == 0:
        verb = _VERBS[kind // 16 % len(_VERBS)]
    content = b"" if document is None else body(draw, own_id(draw, document))
    target = bases[draw.below(len(bases))] + path(draw, usual)
    if document is None or kind % 10 == 1:
        target += query(draw)
    usual_headers = () if document is None else (b"Content-Type: application/json",)
    return Request(verb, target, headers(draw, *usual_headers), content)


KINDS: dict[str, st.SearchStrategy[Request]] = {
    "jsonrpc-1.0": rpc_requests(V1),
    "jsonrpc-0.3": rpc_requests(V0_3),
    "rest-1.0": rest_requests(REST_V1),
    "rest-0.3": rest_requests(REST_V0_3),
    "task-rest": rest_requests(TASK_REST, (BASE, b"/a2a-tasks/echo")),
}
