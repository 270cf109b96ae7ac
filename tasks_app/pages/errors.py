"""Error pages in the look of the others."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.views import defaults

from tasks_app.pages.access import secure


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """400."""
    return secure(defaults.bad_request(request, exception, "400.html"))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """403."""
    return secure(defaults.permission_denied(request, exception, "403.html"))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """404."""
    return secure(defaults.page_not_found(request, exception, "404.html"))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """500."""
    return secure(defaults.server_error(request, "500.html"))
