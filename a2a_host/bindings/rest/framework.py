"""What Django REST framework needs to know of A2A: how it parses, renders, authenticates and reports errors.

The views run on the event loop and off Django's request handler, whose per-request work costs more than all else.
"""

from __future__ import annotations

import logging
from io import BytesIO
from typing import Any, cast

import msgspec
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from a2a_host.bindings.errors import codes_of, error_headers, http_error
from a2a_host.bindings.http import answer_type
from a2a_host.bindings.service_parameters import ServiceParameters
from a2a_host.bindings.sse import Frames
from agents.media_types import essence
from protocol.errors import (
    A2AError,
    InternalError,
    MethodNotAllowedError,
    RouteNotFoundError,
    UnauthenticatedError,
    UnsupportedMediaTypeError,
    VersionNotSupportedError,
)
from tasks_app.operations import Call

logger = logging.getLogger(__name__)


class A2AHttpRequest(HttpRequest):
    """The Django request of one call, with what the router found out already. `tenant` is that of the path, or ""."""

    call: Call | UnauthenticatedError
    parameters: ServiceParameters
    tenant: str


class A2AParser(BaseParser):
    """Gives the body as bytes: the codec of the protocol reads it, once."""

    media_type = "application/a2a+json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The whole body, as bytes."""
        return stream.read()


class JsonParser(A2AParser):
    """The same for callers that name plain JSON."""

    media_type = "application/json"


class A2ARenderer(BaseRenderer):
    """Sends documents that are JSON already."""

    media_type = "application/a2a+json"
    format = "a2a"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """Bytes as they are, anything else as JSON."""
        return data if isinstance(data, bytes) else msgspec.json.encode(data)


class JsonRenderer(A2ARenderer):
    """The same for callers that accept plain JSON only."""

    media_type = "application/json"
    format = "json"


class A2ANegotiation(BaseContentNegotiation):
    """The name of JSON that the caller prefers (`http.answer_type`). Never a 406."""

    def select_parser(self, request: Request, parsers: Any) -> BaseParser | None:
        """The parser of the request's media type; a body that says nothing of its type is JSON."""
        media_type = essence(request.content_type or A2AParser.media_type)
        return next((p for p in parsers if p.media_type == media_type), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """(renderer, media type)."""
        media_type = answer_type(request.META.get("HTTP_ACCEPT", ""), request.content_type or "").decode()
        return next(r for r in renderers if r.media_type == media_type), media_type


class CallAuthentication(BaseAuthentication):
    """The caller of an agent: `request.auth` is the `Call` that operations take."""

    def authenticate(self, request: Request) -> tuple[str, Call]:
        """(owner, call). Raises UnauthenticatedError."""
        call = cast(A2AHttpRequest, request._request).call
        if isinstance(call, UnauthenticatedError):
            raise call
        return call.caller.owner, call


class AsyncAPIView(APIView):
    """An APIView whose handlers are coroutines."""

    parser_classes = [A2AParser, JsonParser]
    renderer_classes = [A2ARenderer, JsonRenderer]
    authentication_classes = [CallAuthentication]
    permission_classes: list[Any] = []
    content_negotiation_class = A2ANegotiation
    version: str | None = None
    """The version of the protocol that the view is for, None if it is for none of them."""

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """The life of a request as in APIView.dispatch, with an awaited handler."""
        self.args, self.kwargs = args, kwargs
        drf_request = self.initialize_request(request, *args, **kwargs)
        self.request = drf_request
        self.headers = self.default_response_headers
        response: Any
        try:
            self.initial(drf_request, *args, **kwargs)
            drf_request.auth  # noqa: B018 authentication is lazy, and comes before everything else
            self._check_version()
            response = await self._handler(drf_request)(drf_request, *args, **kwargs)
        except Exception as error:
            response = self.handle_exception(error)
        return self.finalize_response(drf_request, response, *args, **kwargs)

    @property
    def parameters(self) -> ServiceParameters:
        """The service parameters of the call."""
        return cast(A2AHttpRequest, self.request._request).parameters

    @property
    def call(self) -> Call:
        """The authenticated call."""
        call: Any = self.request.auth
        assert isinstance(call, Call)
        return call

    @property
    def body(self) -> bytes:
        """The body as it came; an empty object for none."""
        data: Any = self.request.data
        return data or b"{}"

    def forget_body(self) -> None:
        """A big body is not kept while the agent works."""
        request: Any = self.request
        request._data = request._full_data = b""
        request._request._stream = BytesIO()

    def _check_version(self) -> None:
        """A version that was named wins over that of the path, and the agent has to serve it (§3.6)."""
        served = self.call.entry.versions
        named = self.parameters.served_version(served)
        if self.version is not None and named not in (None, self.version):
            raise RouteNotFoundError(self.request._request.path)
        if self.version is not None and self.version not in served:
            raise VersionNotSupportedError(self.version, served)

    def _handler(self, request: Request) -> Any:
        handler = getattr(self, (request.method or "").lower(), None) if self._allows(request) else None
        if handler is None:
            raise MethodNotAllowedError(self.allowed_methods)
        return handler

    def _allows(self, request: Request) -> bool:
        return request.method in self.verbs()

    def verbs(self) -> tuple[str, ...]:
        """The HTTP methods that this view answers."""
        return tuple(m.upper() for m in ("get", "head", "post", "delete") if hasattr(self, m))

    @property
    def allowed_methods(self) -> list[str]:
        """What the header Allow names."""
        return [*self.verbs(), "OPTIONS"]

    def get_exception_handler(self) -> Any:
        """One error, one document, whatever raised it."""
        return error_response


def error_response(error: Exception, context: Any) -> Response:
    """The google.rpc.Status of an error (§11.6)."""
    known = as_a2a_error(error, context["request"])
    headers = {name.decode(): value.decode() for name, value in error_headers(known)}
    return Response(http_error(known), status=codes_of(known).http, headers=headers)


def as_a2a_error(error: Exception, request: Request) -> A2AError:
    """An error of the framework in the protocol's terms; a fault of ours is logged and says nothing of itself."""
    if isinstance(error, A2AError):
        return error
    if isinstance(error, exceptions.UnsupportedMediaType):
        return UnsupportedMediaTypeError(request.content_type)
    logger.error("An HTTP+JSON call failed", exc_info=error)
    return InternalError()


class EventStreamResponse(HttpResponse):
    """Tells the binding to answer with events instead of a body."""

    def __init__(self, frames: Frames) -> None:
        super().__init__()
        self.frames = frames
