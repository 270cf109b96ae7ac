"""Files in an S3 bucket, through django-storages."""

from __future__ import annotations

from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from storages.backends import s3

_PART = 8 * 1024 * 1024  # of an upload in several parts, each of which is in memory while it is sent


class S3Storage(s3.S3Storage):  # type: ignore[misc]
    """The same with time limits, and without a pool of threads for each transfer: a file is sent part by part."""

    def __init__(self, **options: Any) -> None:
        style = options.pop("addressing_style", "auto")
        retries = {"max_attempts": 2, "mode": "standard"}
        config = Config(s3={"addressing_style": style}, connect_timeout=5, read_timeout=20, retries=retries)
        transfer = TransferConfig(use_threads=False, multipart_chunksize=_PART)
        super().__init__(client_config=config, transfer_config=transfer, max_memory_size=_PART, **options)
