"""CONTENT_STORAGE: where big parts of messages and artifacts are kept, as Django's STORAGES wants it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.core.exceptions import ImproperlyConfigured

_S3_OPTIONS = {"endpoint": "endpoint_url", "region": "region_name", "addressing": "addressing_style"}
_EXAMPLE = "s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1"


def content_storage(url: str, folder: Path, access_key: str = "", secret_key: str = "") -> dict[str, Any]:
    """The default storage: files in `folder`, or in the S3 bucket of a URL such as
    `s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1&addressing=path`.

    Without keys S3 is asked as botocore finds them: its variables, files and instance roles. Raises
    ImproperlyConfigured. Nothing of S3 is imported before the storage is used.
    """
    if not url:
        return {
            "BACKEND": "tasks_app.content.disk.DiskStorage",
            "OPTIONS": {"location": folder, "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700},
        }
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or parts.fragment:
        raise ImproperlyConfigured(f"CONTENT_STORAGE must be empty or like {_EXAMPLE}, got {url}")
    options: dict[str, Any] = {"bucket_name": parts.netloc, "location": parts.path.strip("/")}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _S3_OPTIONS or not value:
            raise ImproperlyConfigured(f"CONTENT_STORAGE: {name} must be one of {', '.join(_S3_OPTIONS)}, with a value")
        options[_S3_OPTIONS[name]] = value
    if options.get("addressing_style", "auto") not in ("auto", "path", "virtual"):
        raise ImproperlyConfigured("CONTENT_STORAGE: addressing must be auto, path or virtual")
    if bool(access_key) != bool(secret_key):
        raise ImproperlyConfigured("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together: set both or none")
    if access_key:
        options |= {"access_key": access_key, "secret_key": secret_key}
    return {"BACKEND": "tasks_app.content.s3.S3Storage", "OPTIONS": options}
