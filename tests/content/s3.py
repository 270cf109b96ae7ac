"""An S3 server as a process: `python -m tests.content.s3 PORT`."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from a2a_host.services.network import accepts, listen
from tests.support.deployment import HOST, wait_until

BUCKET = "content"
KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "only for tests"}


class S3Server:
    """Moto's server, on a port that stays its own: `stop` and `start` take it away and bring it back, empty."""

    def __init__(self) -> None:
        with listen(HOST, 0) as listener:
            self.port: int = listener.getsockname()[1]
        self.url = f"http://{HOST}:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers."""
        command = [sys.executable, "-W", "ignore", "-m", "tests.content.s3", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: accepts(HOST, self.port, timeout=1.0), "the S3 server")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that keeps its files there."""
        return {"CONTENT_STORAGE": f"s3://{BUCKET}/parts?endpoint={self.url}&region=us-east-1&addressing=path"} | KEYS


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """One that runs, with its bucket."""
    server = S3Server()
    try:
        server.start()
        client(server).create_bucket(Bucket=BUCKET)
        yield server
    finally:
        server.stop()


def client(server: S3Server):  # type: ignore[no-untyped-def]
    """Of boto3, for what tests look at behind the host's back."""
    import boto3
    from botocore.config import Config

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return boto3.client(
            "s3",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            config=Config(s3={"addressing_style": "path"}, proxies={}),
        )


if __name__ == "__main__":
    from moto.server import main

    main(["-H", HOST, "-p", sys.argv[1]])
