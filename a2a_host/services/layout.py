"""Where everything of one copy of the host lives below its DATA_DIR. No Django here: the settings stand on this.

Every address follows from DATA_DIR alone, so that a management command in another shell finds the running services.
They are Unix sockets in a folder that only their owner may enter: no port to choose, and no other user of the machine
reaches them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

POSTGRES_USER = "a2a"
POSTGRES_DATABASE = "a2a"
POSTGRES_PORT = 5432  # Only a part of the socket's name.
_LONGEST_SOCKET = 107  # sizeof(sockaddr_un.sun_path) - 1 on Linux, in bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths and URLs of the copy whose DATA_DIR (absolute) this is."""

    data_dir: Path

    @property
    def run_dir(self) -> Path:
        """Folder of the sockets. A DATA_DIR too deep for a socket's name has it in /tmp, named by its hash."""
        folder = self.data_dir / "run"
        if len(os.fsencode(folder / f".s.PGSQL.{POSTGRES_PORT}")) <= _LONGEST_SOCKET:
            return folder
        name = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        return Path("/tmp") / f"a2a-host-{name}"

    @property
    def postgres_data(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def valkey_data(self) -> Path:
        return self.data_dir / "valkey"

    @property
    def valkey_socket(self) -> Path:
        return self.run_dir / "valkey.sock"

    @property
    def logs(self) -> Path:
        return self.data_dir / "logs"

    @property
    def lock(self) -> Path:
        """Held by the one `manage.py up` of this DATA_DIR."""
        return self.data_dir / "lock"

    @property
    def processes(self) -> Path:
        """What `manage.py up` started, as JSON: the next start ends what a killed one left."""
        return self.data_dir / "processes.json"

    @property
    def secret_key(self) -> Path:
        return self.data_dir / "secret_key"

    @property
    def encryption_key(self) -> Path:
        """Of the secrets in the database: Fernet keys, one a line, the newest first."""
        return self.data_dir / "encryption.key"

    @property
    def credentials(self) -> Path:
        return self.data_dir / "credentials.json"

    @property
    def parts(self) -> Path:
        """Files of big parts of messages and artifacts."""
        return self.data_dir / "parts"

    @property
    def beat_schedule(self) -> Path:
        return self.data_dir / "beat" / "schedule"

    @property
    def database_url(self) -> str:
        """Of the embedded PostgreSQL, as libpq reads it."""
        return self._postgres_url(POSTGRES_USER, POSTGRES_DATABASE)

    @property
    def superuser_url(self) -> str:
        """Of the embedded PostgreSQL's own administrator."""
        return self._postgres_url("postgres", "postgres")

    def _postgres_url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self.run_dir), safe='')}&port={POSTGRES_PORT}"

    @property
    def broker_url(self) -> str:
        """Of the embedded Valkey, as Celery reads it."""
        return f"redis+socket://{quote(str(self.valkey_socket))}"
