"""Paths, addresses and private files of a DATA_DIR."""

from __future__ import annotations

import base64
import os
import shutil
import stat
from pathlib import Path

import psycopg
import pytest
from kombu import Connection

from a2a_host.services.accounts import Account, own, service_account
from a2a_host.services.errors import ServiceError
from a2a_host.services.files import ensure_credentials, ensure_encryption_key, ensure_secret_key, write_private
from a2a_host.services.layout import Layout
from a2a_host.services.postgres import postgres_service, wait_for_postgres
from a2a_host.services.processes import Process
from a2a_host.services.valkey import valkey_service, wait_for_valkey


def test_addresses_follow_from_the_folder() -> None:
    layout = Layout(Path("/srv/a b/data"))
    assert layout.database_url == "postgresql://a2a@/a2a?host=%2Fsrv%2Fa%20b%2Fdata%2Frun&port=5432"
    assert layout.broker_url == "redis+socket:///srv/a%20b/data/run/valkey.sock"


def test_a_deep_folder_has_its_sockets_in_tmp() -> None:
    deep = Layout(Path("/" + "d" * 100))
    assert deep.run_dir == Path("/tmp/a2a-host-50e11fe02e128590")
    assert Layout(Path("/" + "d" * 88)).run_dir == Path("/" + "d" * 88 + "/run")
    assert Layout(Path("/" + "d" * 89)).run_dir.parent == Path("/tmp")
    assert Layout(Path("/" + "é" * 45)).run_dir.parent == Path("/tmp")  # Bytes count.


def test_services_run_in_a_deep_closed_folder_with_a_space(tmp_path: Path) -> None:
    closed = tmp_path / "closed to others"
    layout = Layout(closed / ("deep" * 30))
    layout.data_dir.mkdir(parents=True)
    closed.chmod(0o700)
    account = service_account(layout.postgres_data)
    postgres = Process(postgres_service(layout, account, durable=False))
    valkey = Process(valkey_service(layout, account))
    try:
        wait_for_postgres(layout, postgres)
        wait_for_valkey(layout, valkey)
        with psycopg.connect(layout.database_url) as connection:
            assert connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() == (
                False,
            )
            assert connection.info.server_version // 10000 == 18
        with Connection(layout.broker_url) as broker:
            broker.ensure_connection(max_retries=1)
    finally:
        postgres.kill()
        valkey.kill()
    assert stat.S_IMODE(layout.run_dir.stat().st_mode) == 0o700
    shutil.rmtree(layout.run_dir)


def test_a_folder_of_somebody_else_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(ServiceError) as caught:
        own(tmp_path / "link", None)
    assert str(caught.value) == f"{tmp_path}/link is not ours: remove it"
    if os.geteuid() == 0:
        os.chown(tmp_path / "target", 12345, 12345)
        with pytest.raises(ServiceError):
            own(tmp_path / "target", Account(65534, 65534))
        assert (tmp_path / "target").stat().st_uid == 12345
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o755


def test_files_of_another_postgres_are_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.postgres_data.mkdir()
    (layout.postgres_data / "PG_VERSION").write_text("17\n")
    with pytest.raises(ServiceError) as caught:
        postgres_service(layout, None)
    assert str(caught.value) == f"{tmp_path}/postgres was made by PostgreSQL 17, this is 18: dump it there"


def test_a_private_file_is_never_anybody_elses(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("open")
    path.chmod(0o644)
    write_private(path, "closed")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("closed", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_secrets_are_made_once(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    ensure_secret_key(layout)
    key = layout.secret_key.read_text()
    assert len(key) > 50
    ensure_secret_key(layout)
    assert layout.secret_key.read_text() == key
    credentials = ensure_credentials(layout, admin_exists=False)
    assert ensure_credentials(layout, admin_exists=True) == credentials


def test_the_encryption_key_is_private_and_made_once(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    ensure_encryption_key(layout)
    key = layout.encryption_key.read_text()
    assert len(base64.urlsafe_b64decode(key)) == 32
    assert stat.S_IMODE(layout.encryption_key.stat().st_mode) == 0o600
    ensure_encryption_key(layout)
    assert layout.encryption_key.read_text() == key


def test_broken_credentials_are_not_replaced(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.credentials.write_text("{")
    with pytest.raises(ServiceError, match=r"cannot be read .*: repair it or remove it"):
        ensure_credentials(layout, admin_exists=False)
    assert layout.credentials.read_text() == "{"
