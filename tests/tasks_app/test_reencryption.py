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
from agents.secrets import EncryptionError, decrypt, encrypt
from agents.signing import Signer
from agents.signing_keys import generate_signing_key
from protocol.timestamps import now
from tasks_app.models import PushConfig
from tasks_app.push import reencryption

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


class Machines:
    """Several machines on one database, each with keys of its own: in its environment, or in its file."""

    def __init__(self, folder: Path, settings: Settings, keys: list[str], *, files: bool) -> None:
        self._settings = settings
        self._files = files
        self._layouts = [Layout(folder / name) for name in ("a", "b")]
        self._keys = [keys, keys]
        for layout in self._layouts:
            layout.data_dir.mkdir()
        for number in range(2):
            self.give(number, keys)

    def be(self, number: int) -> None:
        """What follows happens on this machine."""
        self._settings.LAYOUT = self._layouts[number]
        self._settings.ENCRYPTION_KEYS = [] if self._files else self._keys[number]

    def give(self, number: int, keys: list[str]) -> None:
        """A machine gets other keys; with keys of the environment it is restarted for that."""
        self._keys[number] = keys
        path = self._layouts[number].encryption_key
        beside = path.with_suffix(".new")
        beside.write_text("".join(f"{key}\n" for key in keys))
        beside.replace(path)
        let_a_minute_pass(path)

    def unread(self) -> list[tuple[int, int]]:
        """(who stored, who cannot read it): all that is in the database, and what each machine stores now."""
        found = []
        for writer in range(2):
            self.be(writer)
            PushConfig.objects.filter(config_id="config-1").update(token=encrypt("t1"))
            for reader in range(2):
                self.be(reader)
                if reencryption.holders()[None]:
                    found.append((writer, reader))
        return found


@pytest.mark.parametrize("files", [True, False])
def test_a_key_is_changed_on_several_machines_one_after_the_other(
    key_file: Path, tmp_path: Path, settings: Settings, files: bool
) -> None:
    """The steps of docs/operations.md: at each moment each machine reads what any of them stores."""
    old, new = keys_of(key_file)[0], Fernet.generate_key().decode()
    machines = Machines(tmp_path, settings, [old], files=files)
    for keys in ([old, new], [new, old]):
        for number in range(2):
            machines.give(number, keys)
            assert machines.unread() == []
    command("reencrypt")
    assert command("list").splitlines() == [
        f"{fingerprint(new)} encrypts {SECRETS} secrets",
        f"{fingerprint(old)} decrypts 0 secrets",
    ]
    for number in range(2):
        machines.be(number)
        command("retire")
        if files:
            assert keys_of(settings.LAYOUT.encryption_key) == [new]
        else:
            machines.give(number, [new])
        assert machines.unread() == []
    check_everything_reads_with(new)


def test_a_key_that_is_used_before_all_machines_have_it_cannot_be_read_there(
    key_file: Path, tmp_path: Path, settings: Settings
) -> None:
    """Why they are given it as the last one first."""
    old, new = keys_of(key_file)[0], Fernet.generate_key().decode()
    machines = Machines(tmp_path, settings, [old], files=False)
    machines.give(0, [new, old])
    assert machines.unread() == [(0, 1)]
    token = encrypt("x")
    machines.be(0)
    assert decrypt(token) == "x"
    token = encrypt("x")
    machines.be(1)
    with pytest.raises(EncryptionError, match="a key that is not among those of ENCRYPTION_KEYS"):
        decrypt(token)
