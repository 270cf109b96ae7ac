"""Every setting, read from the environment with a type and a loud error. `X_FILE` names a file that holds X.

Without DATABASE_URL and BROKER_URL they are those of the services that `manage.py up` starts for this DATA_DIR.
"""

from __future__ import annotations

import ipaddress
import secrets
import sys
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from a2a_host.content_storage import content_storage
from a2a_host.database_url import database_settings
from a2a_host.openapi.settings import REST_FRAMEWORK as REST_FRAMEWORK
from a2a_host.openapi.settings import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS
from a2a_host.services.layout import Layout
from a2a_host.unfold import UNFOLD as UNFOLD
from agents.outbound.listed import Listed, read_list

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.FileAwareEnv()


def _number(name: str, default: int, lowest: int, highest: int) -> int:
    value = env.str(name, default=str(default))
    if not (value.isascii() and value.isdecimal()) or not lowest <= int(value) <= highest:
        raise ImproperlyConfigured(f"{name} must be a number from {lowest} to {highest}, got {value}")
    return int(value)


def _port(name: str, default: int, lowest: int = 1) -> int:
    return _number(name, default, lowest, 65535)


def _port_or_off(name: str, default: int) -> int:
    """0 when it is turned off, by 0 or an empty value."""
    return 0 if env.str(name, default=str(default)) == "" else _port(name, default, lowest=0)


def _seconds(name: str, default: float) -> float:
    value = env.str(name, default=str(default))
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86400:
        raise ImproperlyConfigured(f"{name} must be a number of seconds above 0, got {value}")
    return seconds


def _networks(name: str, default: list[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    try:
        return [ipaddress.ip_network(network) for network in env.list(name, default=default)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from error


# --- where it runs -------------------------------------------------------------------------
HOST = env.str("HOST", default="127.0.0.1")
PORT = _port("PORT", 8000)
WEB_PROCESSES = _number("WEB_PROCESSES", 1, lowest=1, highest=64)  # They share PORT.
GRPC_PORT = _port_or_off("GRPC_PORT", 50051)
if GRPC_PORT == PORT:
    raise ImproperlyConfigured(f"PORT and GRPC_PORT must differ, both are {PORT}")
GRPC_PUBLIC_URL = env.str("GRPC_PUBLIC_URL", default="")  # What cards say of gRPC, as callers dial it.
if GRPC_PUBLIC_URL and (urlsplit(f"//{GRPC_PUBLIC_URL}").netloc != GRPC_PUBLIC_URL or ":" not in GRPC_PUBLIC_URL):
    raise ImproperlyConfigured(f"GRPC_PUBLIC_URL must be host:port, such as example.com:443, got {GRPC_PUBLIC_URL}")
GRPC_TLS_CERT = env.str("GRPC_TLS_CERT", default="")
GRPC_TLS_KEY = env.str("GRPC_TLS_KEY", default="")
if bool(GRPC_TLS_CERT) != bool(GRPC_TLS_KEY):
    raise ImproperlyConfigured("GRPC_TLS_CERT and GRPC_TLS_KEY are PEM files that belong together: set both or none")
for _name, _file in (("GRPC_TLS_CERT", GRPC_TLS_CERT), ("GRPC_TLS_KEY", GRPC_TLS_KEY)):
    if _file and not Path(_file).is_file():
        raise ImproperlyConfigured(f"{_name} is not a file: {_file}")
DATA_DIR = Path(env.str("DATA_DIR", default="") or BASE_DIR / ".data").resolve()
LAYOUT = Layout(DATA_DIR)
PUBLIC_URL = env.str("PUBLIC_URL", default="").rstrip("/")
if PUBLIC_URL and urlsplit(PUBLIC_URL).scheme not in ("http", "https"):
    raise ImproperlyConfigured(f"PUBLIC_URL must start with http:// or https://, got {PUBLIC_URL}")
TRUSTED_PROXIES = _networks("TRUSTED_PROXIES", ["127.0.0.0/8", "::1/128"])
AGENTS_DIR = env.str("AGENTS_DIR", default="")
if AGENTS_DIR:
    AGENTS_DIR = str(Path(AGENTS_DIR).resolve())
    if not Path(AGENTS_DIR).is_dir():
        raise ImproperlyConfigured(f"AGENTS_DIR is not a folder: {AGENTS_DIR}")
    if AGENTS_DIR not in sys.path:
        sys.path.append(AGENTS_DIR)


def _hosts(name: str) -> list[Listed]:
    try:
        return read_list(env.list(name, default=[]))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from error


# Where requests may go besides public addresses, and where they may never go: hosts, suffixes, networks, with or
# without a port.
OUTBOUND_ALLOW = _hosts("OUTBOUND_ALLOW")
OUTBOUND_DENY = _hosts("OUTBOUND_DENY")

# An idle stream says this often that it lives: proxies cut what is silent for half a minute.
KEEP_ALIVE_SECONDS = _seconds("KEEP_ALIVE_SECONDS", 15.0)
# A process that runs tasks and is silent for so long counts as dead. It is heard five times in that time.
LEASE_SECONDS = _seconds("LEASE_SECONDS", 8.0)
# How long runs may go on in a process that was told to stop. Everything has ended about four seconds later.
SHUTDOWN_GRACE_SECONDS = _seconds("SHUTDOWN_GRACE_SECONDS", 3.0)
# How long a process that answers callers polls for the database instead of sleeping until it answers.
BUSY_POLL_MICROSECONDS = _number("BUSY_POLL_MICROSECONDS", 1000, lowest=0, highest=100_000)
# Deleting what is kept no longer: so many tasks at most in one transaction, a pause after each (in seconds), and how
# often the worker looks for more.
RETENTION_BATCH = _number("RETENTION_BATCH", 500, lowest=1, highest=100_000)
RETENTION_PAUSE = _seconds("RETENTION_PAUSE", 0.1)
RETENTION_SECONDS = _seconds("RETENTION_SECONDS", 300.0)


# --- Django --------------------------------------------------------------------------------
def _secret_key() -> str:
    """The key that `manage.py up` keeps in DATA_DIR, else one for this process alone: never one that others know."""
    try:
        return LAYOUT.secret_key.read_text().strip()
    except OSError:
        return secrets.token_urlsafe(50)


SECRET_KEY = env.str("SECRET_KEY", default="") or _secret_key()
# Fernet keys of the secrets in the database, the newest first; without it those that DATA_DIR holds.
ENCRYPTION_KEYS = [key.strip() for key in env.list("ENCRYPTION_KEYS", default=[]) if key.strip()]
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", HOST])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
if PUBLIC_URL:
    _public = urlsplit(PUBLIC_URL)
    ALLOWED_HOSTS.append(_public.hostname or "")
    CSRF_TRUSTED_ORIGINS.append(f"{_public.scheme}://{_public.netloc}")
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _public.scheme == "https"
INSTALLED_APPS = [
    # It brings `runserver` to ASGI. Everywhere else its Twisted would cost every start most of a second.
    *(["daphne"] if "runserver" in sys.argv else []),
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "django_htmx",
    "agents",
    "tasks_app",
    "a2a_host",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "a2a_host.urls"
ASGI_APPLICATION = "a2a_host.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]


# --- database ------------------------------------------------------------------------------
EMBEDDED_DATABASE = not env.str("DATABASE_URL", default="")
DATABASE_URL = env.str("DATABASE_URL", default="") or LAYOUT.database_url
DATABASES = {"default": database_settings(DATABASE_URL)}
PG_BIN = env.str("PG_BIN", default="")  # A folder with pg_dump, pg_restore and psql, instead of the embedded ones.
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

# --- static files: served from the packages that bring them; collectstatic is for those with a server of their own
STATIC_URL = "static/"
STATIC_ROOT = env.str("STATIC_ROOT", default="") or None
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "home"

# --- big content: parts of messages and artifacts that are kept in files -------------------------
STORED_PART_BYTES = _number("STORED_PART_BYTES", 256 * 1024, lowest=1024, highest=2**31 - 1)
# How long the signed URL of a file is good for.
FILE_URL_SECONDS = _seconds("FILE_URL_SECONDS", 3600.0)
STORAGES = {
    "default": content_storage(
        env.str("CONTENT_STORAGE", default=""),
        LAYOUT.parts,
        env.str("AWS_ACCESS_KEY_ID", default=""),
        env.str("AWS_SECRET_ACCESS_KEY", default=""),
    ),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# --- Celery: its messages are doorbells, the work and its state are rows ----------------------
EMBEDDED_BROKER = not env.str("BROKER_URL", default="")
BROKER_URL = env.str("BROKER_URL", default="") or LAYOUT.broker_url
CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = TIME_ZONE
CELERY_BEAT_SCHEDULE = {
    "retention": {
        "task": "tasks_app.retention",
        "schedule": RETENTION_SECONDS,
        "options": {"expires": RETENTION_SECONDS},
    },
    "sweep": {"task": "tasks_app.sweep", "schedule": LEASE_SECONDS / 5, "options": {"expires": LEASE_SECONDS / 5}},
    "files": {"task": "tasks_app.remove_unnamed_files", "schedule": 3600.0, "options": {"expires": 3600.0}},
}

# --- logging: to standard error, which `manage.py up` keeps in DATA_DIR/logs -------------------
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO").upper()
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        name: {"level": LOG_LEVEL} for name in ("protocol", "agents", "tasks_app", "a2a_host", "celery.worker")
    },
}
