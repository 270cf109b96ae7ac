"""What Django's own handler serves: the admin, the pages for staff and the OpenAPI document.

The A2A paths never reach it (see `asgi`).
"""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="tasks"), name="home"),
    path("", include("tasks_app.urls")),
    path("api/", include("a2a_host.openapi.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "tasks_app.pages.errors.bad_request"
handler403 = "tasks_app.pages.errors.permission_denied"
handler404 = "tasks_app.pages.errors.page_not_found"
handler500 = "tasks_app.pages.errors.server_error"
