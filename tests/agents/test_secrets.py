"""Encryption of stored secrets: what is encrypted comes back, and a wrong key is heard of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from a2a_host.services.files import ensure_encryption_key
from a2a_host.services.layout import Layout
from agents.secrets import EncryptionError, decrypt, encrypt

SECRET = "s3cret \u0000 密钥 " * 100


@pytest.fixture
def data_dir(tmp_path: Path, settings: Settings) -> Path:
    """A DATA_DIR that has the only say of keys."""
    settings.ENCRYPTION_KEYS = []
    settings.LAYOUT = Layout(tmp_path)
    return tmp_path


def test_a_secret_comes_back_and_its_token_says_nothing() -> None:
    token = encrypt(SECRET)
    assert token.isascii()
    assert "s3cret" not in token
    assert decrypt(token) == SECRET
    assert encrypt(SECRET) != token


def test_the_key_of_the_data_dir_is_used(data_dir: Path) -> None:
    ensure_encryption_key(Layout(data_dir))
    token = encrypt(SECRET)
    assert decrypt(token) == SECRET
    assert Fernet((data_dir / "encryption.key").read_text().strip()).decrypt(token).decode() == SECRET


def test_a_new_key_in_front_leaves_old_secrets_readable(settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    token = encrypt(SECRET)
    settings.ENCRYPTION_KEYS = [new, old]
    assert decrypt(token) == SECRET
    assert Fernet(new).decrypt(encrypt(SECRET)).decode() == SECRET


def test_another_key_is_an_error_and_no_text(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    token = encrypt(SECRET)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(EncryptionError, match="a key that is not among those of ENCRYPTION_KEYS") as caught:
        decrypt(token)
    assert token not in str(caught.value)


@pytest.mark.parametrize("change", [lambda t: t[:-4] + "AAA=", lambda t: "plain text", lambda t: "", lambda t: "ключ"])
def test_what_is_no_token_of_ours_is_an_error(change: Callable[[str], str]) -> None:
    with pytest.raises(EncryptionError):
        decrypt(change(encrypt(SECRET)))


def test_no_key_is_an_error_that_names_the_file(data_dir: Path) -> None:
    with pytest.raises(EncryptionError, match=r"ENCRYPTION_KEYS is not set and .*/encryption\.key cannot be read"):
        encrypt(SECRET)


@pytest.mark.parametrize("keys", ["", "short", "Ключ", "a" * 44])
def test_a_key_that_is_none_is_an_error_that_names_its_place(data_dir: Path, keys: str) -> None:
    (data_dir / "encryption.key").write_text(keys)
    with pytest.raises(EncryptionError, match=r"/encryption\.key must hold Fernet keys"):
        encrypt(SECRET)
