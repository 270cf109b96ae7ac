"""Who may see the pages, and the headers they carry."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase

P = ParamSpec("P")

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


def secure(response: HttpResponseBase) -> HttpResponseBase:
    """Add the headers of a page. A policy that the view has set already, for a file, stays."""
    response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
    response.headers.setdefault("Cache-Control", "no-store, private")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    return response


def staff_page(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Let staff in, send strangers to the login page and refuse other users (403)."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        user = request.user
        if not user.is_authenticated:
            return _to_login(request)
        if not (user.is_active and user.is_staff):
            raise PermissionDenied
        return secure(view(request, *args, **kwargs))

    return guarded


def _to_login(request: HttpRequest) -> HttpResponseBase:
    if getattr(request, "htmx", False):
        # A redirect would put the login page into a fragment of this one; a reload of the page leads there.
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return redirect_to_login(request.get_full_path())
