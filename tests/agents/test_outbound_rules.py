"""Which URLs the host may call (§13.2)."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest
from pytest_django import Settings

from agents.outbound.listed import Listed, read_list
from agents.outbound.rules import ForbiddenUrlError, OutboundError, OutboundRules, is_public, read_url

PRIVATE = "must not lead to a private, local or reserved address"
LOOPBACK = [
    *("http://127.0.0.1/", "http://127.0.0.1:1/x", "http://127.1/", "http://127.0.1/", "http://2130706433/"),
    *("http://0x7f000001/", "http://0x7f.1/", "http://0X7F.0.0.0x1/", "http://017700000001/", "http://0177.1/"),
    *("http://127.0.0.1./", "http://127。0。0。1/", "http://localhost/", "http://LOCALHOST/", "http://localhost./"),
    *("http://a.b.localhost/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "https://[::ffff:127.0.0.1]/"),
    *("http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://[2002:7f00:1::]/"),
]
OTHERS = [
    *("http://169.254.169.254/latest/meta-data", "http://0xa9fea9fe/", "http://2852039166/", "http://169.254.43518/"),
    *("http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fd00:ec2::254]/", "http://[fc00::1]/"),
    *("http://10.0.0.1/", "http://10.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/"),
    *("http://100.64.0.1/", "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/"),
    *("http://0.0.0.0/", "http://0/", "http://[::]/", "http://255.255.255.255/", "http://224.0.0.1/"),
    *("http://240.0.0.1/", "http://[ff02::1]/", "http://198.18.0.1/", "http://192.0.2.1/", "http://[2001:db8::1]/"),
    *("http://[2001:0:7f00:1::1]/", "http://[fec0::1]/", "http://[100::1]/", "http://[5f00::1]/"),
    *("http://192.88.99.1/", "http://192.0.0.8/", "http://[3fff::1]/", "http://[2001:2::1]/"),
]


@pytest.fixture
def rules() -> OutboundRules:
    return OutboundRules([])


@pytest.mark.spec("13.2")
@pytest.mark.parametrize("url", LOOPBACK + OTHERS)
async def test_addresses_inside_are_refused_however_they_are_spelled(rules: OutboundRules, url: str) -> None:
    with pytest.raises(ForbiddenUrlError, match=f"^{PRIVATE}$"):
        await rules.check(url)


@pytest.mark.spec("13.2")
@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("ftp://e.test/", "must be an http or https URL"),
        ("file:///etc/passwd", "must be an http or https URL"),
        ("gopher://e.test/", "must be an http or https URL"),
        ("javascript:alert(1)", "must be an http or https URL"),
        ("e.test/x", "must be an http or https URL"),
        ("//e.test/x", "must be an http or https URL"),
        ("", "must be an http or https URL"),
        ("http:///x", "has no valid host name"),
        ("http:127.0.0.1", "has no valid host name"),
        ("http:/127.0.0.1/", "has no valid host name"),
        ("http://h%2fx/", "has no valid host name"),
        ("http://-/", "has no valid host name"),
        ("http://a..b/", "has no valid host name"),
        ("http://0177.0.0.1/", "is not a URL"),
        (f"http://{'a' * 64}.test/", "has no valid host name"),
        ("http://1.2.3.4.5/", "has no valid host name"),
        ("http://e.08/", "has no valid host name"),
        ("http://256.1.1.1/", "is not a URL"),
        ("http://user@e.test/", "must not hold a user name or password"),
        ("http://user:secret@e.test/", "must not hold a user name or password"),
        ("http://e.test\\@127.0.0.1/", "must not hold spaces or backslashes"),
        (" http://e.test/", "must not hold spaces or backslashes"),
        ("http://e.test/a b", "must not hold spaces or backslashes"),
        ("http://e.test/\r\nX: y", "must not hold spaces or backslashes"),
        ("http://e.test/\x00", "is not a URL"),
        ("http://e.test:0/", "has no valid port"),
        ("http://e.test:99999/", "has no valid port"),
        ("http://e.test:x/", "is not a URL"),
        ("http://①②⑦.0.0.1/", "is not a URL"),
        ("http://[::1/", "is not a URL"),
        (f"http://e.test/{'a' * 2048}", "must have at most 2048 characters"),
    ],
)
async def test_what_is_no_plain_http_url_is_refused(rules: OutboundRules, url: str, fault: str) -> None:
    with pytest.raises(ForbiddenUrlError, match=f"^{fault}$"):
        await rules.check(url)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://hooks.example.com/a?b=c", "hooks.example.com", 443),
        ("HTTP://Hooks.Example.com.:8080/", "hooks.example.com", 8080),
        ("http://ы.test/", "xn--01a.test", 80),
        ("http://a_b.test/#f", "a_b.test", 80),
        ("https://[2606:4700::1111]:8443/", "2606:4700::1111", 8443),
    ],
)
def test_reads_where_a_url_leads(url: str, host: str, port: int) -> None:
    target = read_url(url)
    assert (target.host, target.port) == (host, port)


@pytest.mark.parametrize(
    "url", ["https://8.8.8.8/", "http://[2606:4700::1111]/", "http://134744072/", "http://[::ffff:8.8.8.8]/"]
)
async def test_public_addresses_are_fine(rules: OutboundRules, url: str) -> None:
    await rules.check(url)
    assert is_public(ip_address("8.8.8.8"))


async def test_a_name_is_refused_for_one_private_address_among_its_own() -> None:
    rules = OutboundRules([], look_up=lambda host: [ip_address("8.8.8.8"), ip_address("10.0.0.1")])
    with pytest.raises(ForbiddenUrlError, match=f"^{PRIVATE}$"):
        await rules.check("http://hooks.test/")


async def test_a_name_that_cannot_be_resolved_is_taken_but_not_dialled(rules: OutboundRules) -> None:
    await rules.check("http://hooks.invalid/")
    with pytest.raises(OutboundError, match=r"^the host name cannot be resolved$") as refusal:
        await rules.addresses("hooks.invalid", 80)
    assert not isinstance(refusal.value, ForbiddenUrlError)


@pytest.mark.parametrize(
    ("allow", "url", "allowed"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000/", True),
        ("127.0.0.1", "http://localhost/", True),
        ("127.0.0.1:9000", "http://127.0.0.1:9000/", True),
        ("127.0.0.1:9000", "http://127.0.0.1:9001/", False),
        ("localhost", "http://localhost:1/", True),
        ("localhost", "http://127.0.0.1:1/", False),
        ("localhost:9000", "http://LOCALHOST.:9000/", True),
        ("localhost:9000", "http://localhost:9001/", False),
        ("10.0.0.0/8", "http://10.2.3.4/", True),
        ("10.0.0.0/8", "http://11.0.0.1/", True),
        ("10.0.0.0/8", "http://192.168.0.1/", False),
        ("fd00::/8", "http://[fd00::1]/", True),
        ("[::1]", "http://[::1]:7/", True),
        ("[::1]:80", "http://[::1]/", True),
        ("[::1]:80", "http://[::1]:81/", False),
        ("::1", "http://[::1]/", True),
    ],
)
async def test_the_operator_lists_exceptions(allow: str, url: str, allowed: bool) -> None:
    rules = OutboundRules(read_list(["unused.test", allow]))
    if allowed:
        await rules.check(url)
    else:
        with pytest.raises(ForbiddenUrlError, match=f"^{PRIVATE}$"):
            await rules.check(url)


@pytest.mark.parametrize(
    "entry", ["10.0.0.1/8", ".", "*.internal", "host:", "host:0", "host:x", "[::1", "[x]:1", "http://h/", "a b"]
)
def test_an_exception_that_is_none_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match=r"no host, suffix, host:port or network|has no valid port"):
        read_list([entry])


def test_exceptions_may_be_empty() -> None:
    assert read_list(["", " Hooks.Internal "]) == [Listed(host="hooks.internal")]


DENIED = "must not lead to a host that this one never calls"


@pytest.mark.spec("13.2")
@pytest.mark.parametrize(
    ("deny", "url", "fault"),
    [
        ("hooks.test", "https://HOOKS.test./x", DENIED),
        ("hooks.test", "https://a.hooks.test/x", ""),
        (".hooks.test", "https://a.b.hooks.test/x", DENIED),
        (".hooks.test", "https://hooks.test/x", DENIED),
        (".hooks.test", "https://otherhooks.test/x", ""),
        ("hooks.test:8443", "https://hooks.test/x", ""),
        ("hooks.test:8443", "https://hooks.test:8443/x", DENIED),
        ("8.8.8.8", "https://8.8.8.8/", DENIED),
        ("8.8.8.8", "http://134744072/", DENIED),
        ("8.8.8.8", "http://0x8.8.0x808/", DENIED),
        ("8.8.8.8", "https://[::ffff:8.8.8.8]/", DENIED),
        ("8.8.8.8", "https://[64:ff9b::8.8.8.8]/", DENIED),
        ("8.8.8.8", "https://[2002:808:808::]/", DENIED),
        ("8.8.8.8", "https://8.8.4.4/", ""),
        ("8.8.0.0/16", "https://hooks.test/", DENIED),
        ("8.8.0.0/16:443", "https://hooks.test/", DENIED),
        ("8.8.0.0/16:443", "http://hooks.test/", ""),
        ("2606:4700::/32", "https://[2606:4700::1111]/", DENIED),
        ("*", "https://hooks.test/", DENIED),
        ("*", "http://127.0.0.1:9000/", ""),
        ("*", "http://inside.allowed.test/", ""),
        ("127.0.0.1", "http://127.0.0.1:9000/", DENIED),
        (".allowed.test", "http://inside.allowed.test/", DENIED),
        ("*:80", "https://hooks.test/", ""),
        ("*:80", "http://hooks.test/", DENIED),
    ],
)
async def test_the_operator_rules_out_hosts(deny: str, url: str, fault: str) -> None:
    """Also public ones, and also what the other list allows."""
    allow = read_list(["127.0.0.1", ".allowed.test"])
    rules = OutboundRules(allow, read_list([deny]), look_up=lambda host: [ip_address("8.8.8.8")])
    if not fault:
        await rules.check(url)
        return
    with pytest.raises(ForbiddenUrlError, match=f"^{fault}$"):
        await rules.check(url)


@pytest.mark.spec("13.2")
@pytest.mark.parametrize("inside", ["10.0.0.1", "::1", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a00:1"])
async def test_an_alias_of_something_inside_is_refused(
    rules: OutboundRules, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    """What a name stands for in the end counts, however many CNAMEs lead there."""

    def getaddrinfo(host: str, port: None, **_: object) -> list[tuple[object, ...]]:
        assert host == "alias.test"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "inside.internal", (inside, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(ForbiddenUrlError, match=f"^{PRIVATE}$"):
        await rules.check("https://alias.test/")


def test_the_lists_of_the_settings_count(settings: Settings) -> None:
    settings.OUTBOUND_ALLOW, settings.OUTBOUND_DENY = read_list(["10.0.0.0/8"]), read_list(["10.9.0.0/16"])
    rules = OutboundRules.from_settings()
    faults = [rules.fault("x.test", 80, ip_address(address)) for address in ("10.1.1.1", "10.9.1.1", "192.168.0.1")]
    assert faults == ["", DENIED, PRIVATE]
