"""Every setting, read from the environment with a type and a loud error.

`manage.py up` fills in what the embedded services decide (DATABASE_URL, BROKER_URL).
"""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.FileAwareEnv()

# --- where it runs -------------------------------------------------------------------------
HOST = env.str("HOST", default="127.0.0.1")
PORT = env.int("PORT", default=8000)
GRPC_PORT = env.int("GRPC_PORT", default=50051)
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / ".data"))).resolve()
PUBLIC_URL = env.str("PUBLIC_URL", default="").rstrip("/")
TRUSTED_PROXIES = [
    ipaddress.ip_network(n) for n in env.list("TRUSTED_PROXIES", default=["127.0.0.0/8", "::1/128"])
]
AGENTS_DIR = env.str("AGENTS_DIR", default="")
if AGENTS_DIR and AGENTS_DIR not in sys.path:
    sys.path.insert(0, AGENTS_DIR)

# --- Django --------------------------------------------------------------------------------
SECRET_KEY = env.str("SECRET_KEY", default="insecure-key-for-management-commands-only")
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
INSTALLED_APPS = [
    "daphne",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
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
DATABASES = {
    "default": env.db_url("DATABASE_URL", default="postgresql://a2a@127.0.0.1:5432/a2a")
    | {"CONN_HEALTH_CHECKS": True}
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
LOGIN_URL = "admin:login"

# --- Celery --------------------------------------------------------------------------------
BROKER_URL = env.str("BROKER_URL", default="redis://127.0.0.1:6379/0")
