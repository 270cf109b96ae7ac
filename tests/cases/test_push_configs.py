"""Push configs: made, read, listed and deleted, by their owner alone, without their secrets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.reading import state
from tests.support.callers import Caller
from tests.support.deployment import Deployment
from tests.support.push_configs import PushConfigs

HOOK = "https://hooks.example.com/a?b=c"
SECRETS = {"token": "tok-en-1", "authentication": {"scheme": "Bearer", "credentials": "cred-en-tials"}}
INSIDE = [
    *("http://169.254.169.254/x", "http://127.0.0.1:1/", "http://10.0.0.1/", "http://localhost/", "http://[::1]/"),
    *("http://2130706433/", "http://0x7f.1/", "http://[::ffff:10.0.0.1]/", "http://192.168.0.1/", "http://0.0.0.0/"),
]
NO_URLS = ["ftp://e.test/", "file:///etc/passwd", "gopher://e.test/", "e.test/x", "http://u:p@e.test/"]
INLINE = "configuration.taskPushNotificationConfig"


@pytest.mark.case("P13")
@pytest.mark.spec("3.1.7")
def test_configs_without_ids_get_one_each(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    configs = PushConfigs(ask)
    task = ask.say()["id"]
    first, second = configs.create(task, url=HOOK), configs.create(task, url="https://hooks.example.com/b")
    assert first == {"id": first["id"], "taskId": task, "url": HOOK}
    assert first["id"] not in ("", task, second["id"])
    assert configs.list(task) == {"configs": [first, second]}
    assert configs.get(task, second["id"]) == second


@pytest.mark.spec("3.1.7")
def test_the_same_id_takes_the_place_of_the_other(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    configs = PushConfigs(echo)
    task = echo.say()["id"]
    assert state(echo.get(task)) == "COMPLETED"  # §3.1.7: a finished task takes them too
    configs.create(task, id="a/b c", url=HOOK, **SECRETS)
    replaced = configs.create(task, id="a/b c", url="https://hooks.example.com/new")
    assert replaced == {"id": "a/b c", "taskId": task, "url": "https://hooks.example.com/new"}
    assert configs.list(task) == {"configs": [replaced]}


@pytest.mark.case("P11")
@pytest.mark.case("P12")
@pytest.mark.spec("3.1.10")
def test_deleting_twice_is_fine(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    configs = PushConfigs(ask)
    task = ask.say()["id"]
    configs.create(task, id="c", url=HOOK)
    configs.create(task, id="d", url=HOOK)
    assert configs.delete(task, "c") == {}
    assert configs.delete(task, "c") == {}
    assert configs.delete(task, "never") == {}
    assert configs.ids(task) == {"d"}


@pytest.mark.case("P15")
@pytest.mark.spec("3.1.8")
def test_what_is_not_there(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    configs = PushConfigs(ask)
    task = ask.say()["id"]
    with alice.refused("TASK_NOT_FOUND") as refused:
        configs.get(task, "zz")
    assert refused.value.metadata == {"taskId": task, "pushNotificationConfigId": "zz"}
    for call in (
        lambda: configs.create("none", url=HOOK),
        lambda: configs.list("none"),
        lambda: configs.get("none", "c"),
        lambda: configs.delete("none", "c"),
    ):
        with alice.refused("TASK_NOT_FOUND") as refused:
            call()
        assert refused.value.metadata == {"taskId": "none"}


@pytest.mark.case("U05")
@pytest.mark.spec("13.1")
def test_configs_of_somebody_elses_task_show_nothing(alice: Caller, bob: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say()["id"]
    config = PushConfigs(ask).create(task, id="c", url=HOOK, **SECRETS)
    others = PushConfigs(bob.at("ask", binding))
    with alice.nothing_stored():
        for call in (
            lambda: others.create(task, id="c", url="https://evil.example.com/"),
            lambda: others.list(task),
            lambda: others.get(task, "c"),
            lambda: others.delete(task, "c"),
        ):
            with bob.refused("TASK_NOT_FOUND") as refused:
                call()
            assert refused.value.metadata == {"taskId": task}
    assert PushConfigs(ask).list(task) == {"configs": [config]}


@pytest.mark.spec("3.1.9")
def test_configs_come_in_pages(alice: Caller, binding: str) -> None:
    ask = alice.at("ask", binding)
    configs = PushConfigs(ask)
    task, other = ask.say()["id"], ask.say()["id"]
    for name in "abcde":
        configs.create(task, id=name, url=HOOK)
    pages, token = [], ""
    while True:
        page = configs.list(task, pageSize=2, pageToken=token)
        pages.append([config["id"] for config in page["configs"]])
        token = page.get("nextPageToken", "")
        if not token:
            break
        kept = token
    assert pages == [["a", "b"], ["c", "d"], ["e"]]
    for wrong, id in (("made-up", task), (kept, other)):
        with alice.refused("INVALID_PARAMS", "pageToken"):
            configs.list(id, pageToken=wrong)


@pytest.mark.spec("13.2")
def test_a_task_has_only_so_many(alice: Caller, deployment: Deployment) -> None:
    ask = alice.at("ask", "jsonrpc")
    configs = PushConfigs(ask)
    task = ask.say()["id"]
    for number in range(50):
        configs.create(task, id=f"c{number}", url=HOOK)
    with alice.refused("UNSUPPORTED_OPERATION"):
        configs.create(task, url=HOOK)
    with alice.refused("UNSUPPORTED_OPERATION"):
        ask.say("on", taskId=task, configuration={"taskPushNotificationConfig": {"url": HOOK}})
    configs.create(task, id="c7", url="https://hooks.example.com/other")
    assert len(configs.ids(task)) == 50


@pytest.mark.case("R14")
@pytest.mark.spec("11.3")
def test_the_task_of_the_path_counts(alice: Caller) -> None:
    ask = alice.rest("ask")
    first, second = ask.say()["id"], ask.say()["id"]
    config = ask.call("POST", f"/tasks/{first}/pushNotificationConfigs", {"taskId": second, "url": HOOK})
    assert config["taskId"] == first
    assert (len(PushConfigs(ask).ids(first)), len(PushConfigs(ask).ids(second))) == (1, 0)


@pytest.mark.spec("13.2")
def test_secrets_are_never_given_back(alice: Caller, deployment: Deployment, binding: str) -> None:
    ask = alice.at("ask", binding)
    configs = PushConfigs(ask)
    inline = {"id": "inline", "url": HOOK, **SECRETS}
    task = ask.say(configuration={"taskPushNotificationConfig": inline})["id"]
    created = configs.create(task, id="made", url=HOOK, **SECRETS)
    shown = {"taskId": task, "url": HOOK, "authentication": {"scheme": "Bearer"}}
    assert created == {"id": "made", **shown}
    assert configs.get(task, "inline") == {"id": "inline", **shown}
    assert configs.list(task) == {"configs": [{"id": "inline", **shown}, {"id": "made", **shown}]}
    assert "tok-en" not in str(ask.get(task)) + str(ask.list())
    for table in ("task", "message", "event", "receipt", "pushconfig"):
        text = str(deployment.query(f"SELECT * FROM tasks_app_{table}"))
        assert "tok-en" not in text
        assert "cred-en" not in text
    secrets = deployment.query("SELECT token, credentials FROM tasks_app_pushconfig WHERE task_id = %s", [task])
    assert [len(rows) for rows in secrets] == [2, 2]
    assert all(secret.startswith("gAAAA") for rows in secrets for secret in rows)


@pytest.mark.case("P18")
@pytest.mark.spec("13.2")
@pytest.mark.parametrize("url", INSIDE)
def test_no_address_inside_is_stored(alice: Caller, binding: str, url: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say()["id"]
    with alice.refused("INVALID_PARAMS", "url") as refused:
        PushConfigs(ask).create(task, url=url)
    assert refused.value.violations["url"] == "must not lead to a private, local or reserved address"


@pytest.mark.case("P20")
@pytest.mark.spec("13.2")
@pytest.mark.parametrize("url", [*NO_URLS, ""])
def test_what_is_no_http_url_is_not_stored(alice: Caller, binding: str, url: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say()["id"]
    with alice.refused("INVALID_PARAMS", "url"):
        PushConfigs(ask).create(task, url=url)


@pytest.mark.case("P23")
@pytest.mark.spec("13.2")
@pytest.mark.parametrize("url", [INSIDE[0], INSIDE[1], NO_URLS[0]])
def test_no_send_goes_around_the_check(alice: Caller, binding: str, url: str) -> None:
    echo, ask = alice.at("echo", binding), alice.at("ask", binding)
    configuration = {"taskPushNotificationConfig": {"url": url}}
    with alice.refused("INVALID_PARAMS", f"{INLINE}.url"):
        echo.say(configuration=configuration)
    with alice.refused("INVALID_PARAMS", f"{INLINE}.url"):
        echo.say(configuration=configuration | {"returnImmediately": True})
    with alice.refused("INVALID_PARAMS", f"{INLINE}.url"):
        echo.say_streaming("hi", configuration=configuration)
    task = ask.say()["id"]
    with alice.refused("INVALID_PARAMS", f"{INLINE}.url"):
        ask.say("on", taskId=task, configuration=configuration)


@pytest.mark.spec("4.3.1")
@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"token": "a\r\nX-Evil: 1"}, "token"),
        ({"token": "ключ"}, "token"),
        ({"token": " a"}, "token"),
        ({"token": "a" * 4097}, "token"),
        ({"authentication": {"scheme": "Bear er", "credentials": "x"}}, "authentication.scheme"),
        ({"authentication": {"scheme": "Bearer", "credentials": "x\ny"}}, "authentication.credentials"),
        ({"authentication": {"scheme": ""}}, "authentication.scheme"),
        ({"authentication": {"scheme": "HMAC-SHA256"}}, "authentication.credentials"),
        ({"id": "a" * 256}, "id"),
    ],
)
def test_what_no_header_can_hold_is_refused(alice: Caller, binding: str, members: dict[str, Any], field: str) -> None:
    ask = alice.at("ask", binding)
    task = ask.say()["id"]
    with alice.refused("INVALID_PARAMS", field):
        PushConfigs(ask).create(task, url=HOOK, **members)
    with alice.refused("INVALID_PARAMS", f"{INLINE}.{field}"):
        ask.say(configuration={"taskPushNotificationConfig": {"url": HOOK, **members}})


@pytest.mark.spec("3.2.2")
def test_an_inline_config_names_no_task_and_needs_an_address(alice: Caller, binding: str) -> None:
    echo = alice.at("echo", binding)
    with alice.refused("INVALID_PARAMS", f"{INLINE}.url"):
        echo.say(configuration={"taskPushNotificationConfig": {"token": "t"}})
    with alice.refused("INVALID_PARAMS", f"{INLINE}.taskId"):
        echo.say(configuration={"taskPushNotificationConfig": {"url": HOOK, "taskId": "x"}})
