"""Changing the encryption key: `manage.py encryptionkey` on a database with secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django import Settings

from a2a_host.management.commands.encryptionkey import fingerprint
from a2a_host.services.files import ensure_encryption_key
from a2a_host.services.layout import Layout
from agents.models import SigningKey
from agents.secrets import decrypt, encrypt
from agents.signing import Signer
from agents.signing_keys import generate_signing_key
from protocol.timestamps import now
from tasks_app import reencryption
from tasks_app.models import PushConfig

CONFIGS = 25


@pytest.fixture
def key_file(db: None, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of keys of a DATA_DIR, and a database with secrets that its key encrypted."""
    monkeypatch.setattr(reencryption, "BATCH", 4)
    settings.ENCRYPTION_KEYS = []
    settings.LAYOUT = Layout(tmp_path)
    ensure_encryption_key(settings.LAYOUT)
    values = {"url": "https://e.test/", "version": "1.0", "created_at": now(), "cursor": 0, "last_seq": 0}
    PushConfig.objects.bulk_create(
        PushConfig(
            task_id=f"task-{number // 3}",
            config_id=f"config-{number}",
            token=encrypt(f"t{number}") if number % 2 else "",
            credentials=encrypt(f"c{number}") if number % 3 else "",
            **values,
        )
        for number in range(CONFIGS)
    )
    generate_signing_key()
    return settings.LAYOUT.encryption_key


def command(*words: str) -> str:
    """What the command prints."""
    out = StringIO()
    call_command("encryptionkey", *words, stdout=out)
    return out.getvalue()


def keys_of(path: Path) -> list[str]:
    return path.read_text().split()


def let_a_minute_pass(path: Path) -> None:
    os.utime(path, (path.stat().st_mtime - 61,) * 2)


def check_everything_reads_with(key: str) -> None:
    """Every secret is what it was, under this key alone."""
    fernet = Fernet(key)
    for row in PushConfig.objects.all():
        number = int(row.config_id.removeprefix("config-"))
        assert (fernet.decrypt(row.token) if row.token else b"") == (f"t{number}".encode() if number % 2 else b"")
        secret = fernet.decrypt(row.credentials) if row.credentials else b""
        assert secret == (f"c{number}".encode() if number % 3 else b"")
    assert b"PRIVATE KEY" in fernet.decrypt(SigningKey.objects.get().private_key)


SECRETS = sum(n % 2 > 0 for n in range(CONFIGS)) + sum(n % 3 > 0 for n in range(CONFIGS)) + 1


def test_a_new_key_encrypts_everything_and_the_old_one_goes(key_file: Path) -> None:
    (old,) = keys_of(key_file)
    assert command("list") == f"{fingerprint(old)} encrypts {SECRETS} secrets\n"
    said = command("new")
    new, kept = keys_of(key_file)
    assert kept == old != new
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert said == (f"{fingerprint(new)} encrypts from now on.\nEncrypted {SECRETS} secrets with {fingerprint(new)}.\n")
    check_everything_reads_with(new)
    assert command("list") == f"{fingerprint(new)} encrypts {SECRETS} secrets\n{fingerprint(old)} decrypts 0 secrets\n"
    with pytest.raises(CommandError, match=r"younger than 60 s"):
        command("retire")
    assert keys_of(key_file) == [new, old]
    let_a_minute_pass(key_file)
    assert command("retire") == f"Removed {fingerprint(old)}. Keep it as long as you keep backups from its time.\n"
    assert keys_of(key_file) == [new]
    check_everything_reads_with(new)
    Signer.of(SigningKey.objects.get())
    with pytest.raises(CommandError, match=r"^There is one key only\.$"):
        command("retire")


def test_an_interrupted_change_is_finished_by_the_next_run(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (old,) = keys_of(key_file)
    rows, done = reencryption._rows, 0

    def interrupted(place: reencryption.Place) -> Iterator[dict[str, Any]]:
        nonlocal done
        for row in rows(place):
            if done == 7:
                raise KeyboardInterrupt
            done += 1
            yield row

    with monkeypatch.context() as patch:
        patch.setattr(reencryption, "_rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            command("new")
    new, _ = keys_of(key_file)
    held = reencryption.holders()
    assert 0 < held[0] < SECRETS
    assert held[0] + held[1] == SECRETS
    left = held[1]
    assert command("reencrypt") == f"Encrypted {left} secrets with {fingerprint(new)}.\n"
    assert command("reencrypt") == f"Encrypted 0 secrets with {fingerprint(new)}.\n"
    check_everything_reads_with(new)
    assert old in keys_of(key_file)


def test_a_secret_that_changes_meanwhile_stays_as_it_is(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller replaces a config between the reading and the writing of its row."""
    rows = reencryption._rows

    def replaced(place: reencryption.Place) -> Iterator[dict[str, Any]]:
        for row in rows(place):
            if row.get("config_id") == "config-1":
                PushConfig.objects.filter(config_id="config-1").update(token=encrypt("fresh"), credentials="")
            yield row

    monkeypatch.setattr(reencryption, "_rows", replaced)
    command("new")
    row = PushConfig.objects.get(config_id="config-1")
    assert (decrypt(row.token), row.credentials) == ("fresh", "")
    assert reencryption.holders()[1] == 0


def test_what_a_process_stored_with_the_old_key_is_not_lost(key_file: Path) -> None:
    (old,) = keys_of(key_file)
    command("new")
    new, _ = keys_of(key_file)
    late = Fernet(old).encrypt(b"t3").decode()
    PushConfig.objects.filter(config_id="config-3").update(token=late)
    let_a_minute_pass(key_file)
    command("retire")
    assert keys_of(key_file) == [new]
    check_everything_reads_with(new)


def test_no_key_goes_while_there_is_a_secret_that_none_can_read(key_file: Path) -> None:
    stranger = Fernet(Fernet.generate_key()).encrypt(b"x").decode()
    PushConfig.objects.filter(config_id="config-3").update(token=stranger)
    command("new")
    assert command("list").endswith("No key can read 1 secrets.\n")
    let_a_minute_pass(key_file)
    before = keys_of(key_file)
    with pytest.raises(CommandError, match=r"^1 secrets cannot be read with"):
        command("retire")
    assert keys_of(key_file) == before


def test_a_running_process_takes_up_a_new_key(key_file: Path) -> None:
    """Nothing is restarted, and the key that a process read once counts no longer."""
    (old,) = keys_of(key_file)
    token = encrypt("before")
    command("new")
    new, _ = keys_of(key_file)
    assert Fernet(new).decrypt(encrypt("after")) == b"after"
    assert decrypt(token) == "before"
    assert old != new


def test_keys_of_the_environment_are_changed_by_hand(key_file: Path, settings: Settings) -> None:
    (old,) = keys_of(key_file)
    settings.ENCRYPTION_KEYS = [old]
    new = command("new").splitlines()[1]
    settings.ENCRYPTION_KEYS = [new, old]
    assert command("retire") == (
        f"No secret needs {fingerprint(old)} any more: remove all but the first from ENCRYPTION_KEYS.\n"
    )
    check_everything_reads_with(new)
    assert keys_of(key_file) == [old]
