"""Addresses of the OpenAPI document and of the page that shows it."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

# Those with the plain names of YAML and JSON first: browsers show them.
_RENDERERS = [OpenApiYamlRenderer2, OpenApiJsonRenderer2, OpenApiYamlRenderer, OpenApiJsonRenderer]

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(renderer_classes=_RENDERERS), name="api-schema"),
    path(
        "docs/",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="api/docs.html"),
        name="api-docs",
    ),
]
