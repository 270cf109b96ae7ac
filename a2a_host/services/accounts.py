"""The user that PostgreSQL and Valkey run as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from a2a_host.services.errors import ServiceError

SYSTEM_USER = "a2a-host"
_USERADD = [
    "/usr/sbin/useradd",
    "--system",
    "--user-group",
    "--no-create-home",
    "--home-dir",
    "/nonexistent",
    "--shell",
    "/usr/sbin/nologin",
]
_PATIENCE = 10.0  # seconds that another useradd may hold the lock of /etc/passwd


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group of the machine, by number."""

    uid: int
    gid: int


def service_account(data: Path) -> Account | None:
    """Whom PostgreSQL with its files in `data` runs as; None is this process's own user.

    Started by root, that is the owner of the files, or for new ones a system user, which is made if it is missing.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        owner = data.stat()
        return Account(owner.st_uid, owner.st_gid)
    entry = _find(SYSTEM_USER) or _make_system_user() or _find("nobody")
    if entry is None:
        raise ServiceError(f"PostgreSQL cannot run as root: make a system user with 'useradd --system {SYSTEM_USER}'")
    return Account(entry.pw_uid, entry.pw_gid)


def own(path: Path, account: Account | None) -> None:
    """Make `path` a folder that only `account` may enter (and root). Raises ServiceError if it is somebody else's.

    Some of these are in /tmp, where anybody may have put something under the name before.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), account.uid if account else -1):
        raise ServiceError(f"{path} is not ours: remove it")
    if account is not None:
        os.chown(path, account.uid, account.gid)
    path.chmod(0o700)


def _find(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _make_system_user() -> pwd.struct_passwd | None:
    """None where it cannot be made: no useradd, or /etc is read-only.

    Copies that start at the same time come one after the other: two useradd of one name both "succeed", and the later
    one changes the number that the earlier one gave.
    """
    if not os.access(_USERADD[0], os.X_OK) or not os.access("/etc", os.W_OK):
        return None
    folder = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        return _find(SYSTEM_USER) or _add_user()
    finally:
        os.close(folder)


def _add_user() -> pwd.struct_passwd | None:
    """Run useradd, again for some time while another program changes the users."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        result = subprocess.run([*_USERADD, SYSTEM_USER], capture_output=True, text=True)
        entry = _find(SYSTEM_USER)
        if entry is not None or "lock" not in result.stderr or time.monotonic() > deadline:
            return entry
        time.sleep(0.1)
