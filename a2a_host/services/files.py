"""Files of DATA_DIR that only their owner may read."""

from __future__ import annotations

import base64
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from a2a_host.services.errors import ServiceError
from a2a_host.services.layout import Layout

ADMIN_USERNAME = "admin"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What `credentials.json` holds. `admin_password` None: the database had an admin before this DATA_DIR."""

    admin_username: str
    admin_password: str | None
    api_key: str


def write_private(path: Path, text: str) -> None:
    """Replace `path` in one step by a file of mode 0600 that is on disk when this returns."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    fresh.rename(path)


def ensure_secret_key(layout: Layout) -> None:
    """Make Django's SECRET_KEY once. The settings read it."""
    if not layout.secret_key.exists():
        write_private(layout.secret_key, secrets.token_urlsafe(50) + "\n")


def ensure_encryption_key(layout: Layout) -> None:
    """Make the key of stored secrets once: 32 random bytes as Fernet reads them (`agents.secrets`)."""
    if not layout.encryption_key.exists():
        write_private(layout.encryption_key, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() + "\n")


def ensure_credentials(layout: Layout, admin_exists: bool) -> Credentials:
    """Read the credentials of this DATA_DIR, or make them once. An admin that exists keeps its password."""
    if layout.credentials.exists():
        try:
            return Credentials(**json.loads(layout.credentials.read_text()))
        except (ValueError, TypeError) as error:
            raise ServiceError(f"{layout.credentials} cannot be read ({error}): repair it or remove it") from error
    password = None if admin_exists else secrets.token_urlsafe(12)
    credentials = Credentials(ADMIN_USERNAME, password, "a2a_" + secrets.token_urlsafe(32))
    write_private(layout.credentials, json.dumps(asdict(credentials), indent=2) + "\n")
    return credentials
