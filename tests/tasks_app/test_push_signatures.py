"""How receivers know the host: the verification that docs/webhooks.md shows is run on what really arrives."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest

from agents.signing_keys import generate_signing_key, rotate_signing_keys
from agents.threads import in_thread
from protocol.errors import InvalidParamsError
from protocol.model import AuthenticationInfo
from tasks_app.push.delivery import Deliverer
from tests.support.receiver import Receiver
from tests.tasks_app.webhooks import all_done, steps, tell, wait_for_row
from tests.tasks_app.world import World

DOCS = Path(__file__).parents[2] / "docs" / "webhooks.md"


@dataclass(frozen=True, slots=True)
class Verifiers:
    """The functions of the page."""

    hmac: Callable[..., None]
    jwt: Callable[..., None]


@pytest.fixture(scope="module")
def verify() -> Verifiers:
    """What the page tells receivers to do."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL):
        exec(compile(block, str(DOCS), "exec"), names)
    return Verifiers(names["verify_hmac"], names["verify_jwt"])


@pytest.mark.spec("13.2")
@pytest.mark.parametrize("secret", ["a shared secret", "whsec_" + b64encode(b"\x00\xffraw bytes").decode()])
async def test_hmac_as_standard_webhooks_have_it(
    world: World, delivery: Deliverer, receiver: Receiver, verify: Verifiers, secret: str
) -> None:
    path = f"/hmac-{len(secret)}"
    receiver.answers[path] = lambda number: 500 if number == 0 else 200
    entry = await world.add_agent(steps, push_notifications=True)
    authentication = AuthenticationInfo(scheme="hmac-sha256", credentials=secret)
    task_id = await tell(world, entry, receiver.url(path), authentication=authentication)
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, 0, (await all_done(world, task_id))[0], True, False, 1, "HTTP 500")
    await world.query("UPDATE tasks_app_pushconfig SET due_at = now()")
    await delivery.sweep()
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    key = b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    first, again, *others = receiver.deliveries(path)
    for one in (first, again, *others):
        assert "authorization" not in one.headers
        verify.hmac(one.headers, one.body, key, set())
        with pytest.raises(ValueError, match="signature"):
            verify.hmac(one.headers, one.body + b" ", key, set())
        with pytest.raises(ValueError, match="signature"):
            verify.hmac(one.headers, one.body, b"another", set())
        stale = one.headers | {"webhook-timestamp": str(int(one.headers["webhook-timestamp"]) - 600)}
        with pytest.raises(ValueError, match="old"):
            verify.hmac(stale, one.body, key, set())
    seen: set[str] = set()
    verify.hmac(first.headers, first.body, key, seen)
    with pytest.raises(ValueError, match="seen"):  # a replay, or the same event once more: answered with 2xx, not done
        verify.hmac(again.headers, again.body, key, seen)


@pytest.mark.spec("13.2")
@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_jwt_with_the_key_of_the_host(
    world: World, delivery: Deliverer, receiver: Receiver, verify: Verifiers, algorithm: str, settings: Any
) -> None:
    settings.PUBLIC_URL = "https://agents.example.com"
    key = await in_thread(lambda: generate_signing_key(algorithm))
    await world.hosts[0].registry.load()
    entry = await world.add_agent(steps, push_notifications=True)
    url = receiver.url(f"/jwt-{algorithm}")
    task_id = await tell(world, entry, url, authentication=AuthenticationInfo(scheme="JWT"))
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    keys = jwt.PyJWKSet.from_json(world.hosts[0].registry.key_set.decode())
    seen: set[str] = set()
    for one in receiver.deliveries(f"/jwt-{algorithm}"):
        token = one.headers["authorization"].removeprefix("Bearer ")
        assert jwt.get_unverified_header(token) == {"alg": algorithm, "kid": key.kid, "typ": "JWT"}
        verify.jwt(one.headers, one.body, url, keys, seen)
        with pytest.raises(ValueError, match="seen"):
            verify.jwt(one.headers, one.body, url, keys, seen)
        with pytest.raises(ValueError, match="body"):
            verify.jwt(one.headers, one.body + b" ", url, keys, set())
        with pytest.raises(jwt.InvalidAudienceError):
            verify.jwt(one.headers, one.body, "https://elsewhere.example.com/", keys, set())
        claims = jwt.decode(token, options={"verify_signature": False})
        assert (claims["exp"] - claims["iat"], claims["taskId"]) == (300, task_id)
    assert len(seen) == len(receiver.deliveries(f"/jwt-{algorithm}"))
    # The next key signs as soon as it is active; what it signs, the published set verifies.
    await in_thread(rotate_signing_keys)
    await world.hosts[0].registry.load()
    task_id = await tell(world, entry, url, authentication=AuthenticationInfo(scheme="JWT"))
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    last = receiver.deliveries(f"/jwt-{algorithm}")[-1]
    verify.jwt(last.headers, last.body, url, jwt.PyJWKSet.from_json(world.hosts[0].registry.key_set.decode()), set())


async def test_a_key_that_is_gone_is_an_attempt_that_failed(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    await in_thread(generate_signing_key)
    await world.hosts[0].registry.load()
    entry = await world.add_agent(push_notifications=True)
    task_id = await tell(world, entry, receiver.url("/keyless"), authentication=AuthenticationInfo(scheme="JWT"))
    await world.query("DELETE FROM agents_signingkey")
    await world.hosts[0].registry.load()
    await delivery.deliver([task_id])
    last_seq = (await all_done(world, task_id))[0]
    await wait_for_row(world, task_id, 0, last_seq, True, False, 1, "the host has no signing key")
    assert receiver.deliveries("/keyless") == []


@pytest.mark.spec("4.3.2")
@pytest.mark.parametrize(
    ("scheme", "credentials", "field", "fault"),
    [
        ("JWT", "", "scheme", "cannot be JWT, since this host has no signing key"),
        ("HMAC-SHA256", "", "credentials", "must hold the shared secret of HMAC-SHA256"),
        ("hmac-sha256", "whsec_*", "credentials", "must have base64 after whsec_"),
        ("HMAC-SHA256", "whsec_", "credentials", "must have base64 after whsec_"),
    ],
)
async def test_a_signature_that_cannot_be_made_is_refused(
    world: World, delivery: Deliverer, scheme: str, credentials: str, field: str, fault: str
) -> None:
    entry = await world.add_agent(push_notifications=True)
    before = await world.dump()
    authentication = AuthenticationInfo(scheme=scheme, credentials=credentials)
    with pytest.raises(InvalidParamsError) as refused:
        await tell(world, entry, "http://127.0.0.1:1/", authentication=authentication)
    where = f"configuration.taskPushNotificationConfig.authentication.{field}"
    assert [(v.field, v.description) for v in refused.value.violations] == [(where, fault)]
    assert await world.dump() == before


async def test_a_scheme_of_this_name_with_credentials_is_sent_as_it_is(
    world: World, delivery: Deliverer, receiver: Receiver
) -> None:
    """Some receivers know `Authorization: JWT <token>`."""
    entry = await world.add_agent(push_notifications=True)
    authentication = AuthenticationInfo(scheme="JWT", credentials="a.b.c")
    task_id = await tell(world, entry, receiver.url("/own-jwt"), authentication=authentication)
    await delivery.deliver([task_id])
    await wait_for_row(world, task_id, *(await all_done(world, task_id)))
    assert {d.headers["authorization"] for d in receiver.deliveries("/own-jwt")} == {"JWT a.b.c"}
