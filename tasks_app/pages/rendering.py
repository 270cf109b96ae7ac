"""Text that callers and agents wrote, as HTML that is safe to show.

Whatever comes out of here as `SafeString` was either escaped whole (code, JSON) or sanitised (Markdown).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename, get_lexer_for_mimetype
from pygments.util import ClassNotFound

RICH_LIMIT = 100_000  # characters that are rendered as Markdown or coloured; longer text is shown plain
_NO_LANGUAGE = frozenset({"text/plain", "application/octet-stream"})
MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})

_TAGS = {
    *("a", "blockquote", "br", "code", "div", "em", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES = {
    "a": {"href", "title"}, "code": {"class"}, "div": {"class"}, "ol": {"start"}, "span": {"class"},
    "td": {"align"}, "th": {"align"},
}  # fmt: skip
_LOOKS_LIKE_MARKDOWN = re.compile(
    r"^(?:#{1,6} \S|```|~~~|\|.+\|\s*$\n\|[ :|-]+\|)|\*\*\S[^*\n]*\*\*|\[[^\]\n]+\]\(https?://", re.MULTILINE
)
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_LONG_STRING = 2000


def _highlight(code: str, lexer: Lexer) -> str:
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _fence(code: str, name: str, _attributes: str) -> str:
    """Colour a fenced block; an empty answer makes markdown-it escape it itself."""
    if not name:
        return ""
    try:
        return _highlight(code, get_lexer_by_name(name, stripnl=False))
    except ClassNotFound:
        return ""


def _fit_in(tokens: Sequence[Token]) -> None:
    """Put headings below those of the page, and align table cells without style, which the page's policy forbids."""
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 3, 6)}"
        style = token.attrGet("style")
        if isinstance(style, str) and style.startswith("text-align:"):
            token.attrs = {"align": style.removeprefix("text-align:")}


_markdown = MarkdownIt("commonmark", {"html": False, "highlight": _fence})
_markdown.enable(["table", "strikethrough"]).disable("image")
_cleaner = nh3.Cleaner(
    tags=_TAGS,
    attributes=_ATTRIBUTES,
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
)


def markdown(text: str) -> SafeString:
    """Markdown as sanitised HTML: no raw HTML, no images (they would call out), links to http(s) and mailto only."""
    tokens = _markdown.parse(text)
    _fit_in(tokens)
    html = _markdown.renderer.render(tokens, _markdown.options, {})
    return mark_safe(_cleaner.clean(html))


def is_markdown(text: str, media_type: str) -> bool:
    """Whether to show a text part as Markdown: it says so, or says nothing and looks like it."""
    if len(text) > RICH_LIMIT:
        return False
    return media_type in MARKDOWN_TYPES or (not media_type and bool(_LOOKS_LIKE_MARKDOWN.search(text)))


def code(text: str, media_type: str, filename: str) -> SafeString | None:
    """Coloured code of a known language; None if the language is not known or the text too long."""
    lexer = _lexer(media_type, filename)
    if lexer is None or len(text) > RICH_LIMIT:
        return None
    return mark_safe(_highlight(text, lexer))


def _lexer(media_type: str, filename: str) -> Lexer | None:
    if media_type.endswith("+json"):
        media_type = "application/json"
    if media_type and media_type not in _NO_LANGUAGE:
        with suppress(ClassNotFound):
            return get_lexer_for_mimetype(media_type, stripnl=False)
    if filename and not filename.endswith(".txt"):
        with suppress(ClassNotFound):
            return get_lexer_for_filename(filename, stripnl=False)
    return None


def json_code(text: str) -> SafeString:
    """JSON, indented and coloured."""
    pretty = pretty_json(text)
    if len(pretty) > RICH_LIMIT:
        return format_html("{}", pretty)
    return mark_safe(_highlight(pretty, get_lexer_by_name("json")))


def pretty_json(text: str) -> str:
    r"""JSON indented by two spaces for reading: numbers as they were written, `\u` escapes as characters, strings over
    2,000 characters shortened. What is no JSON comes back as it is.
    """
    try:
        pretty = msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:
        return text
    return _STRING.sub(_readable, pretty)


def _readable(match: re.Match[str]) -> str:
    token = match[0]
    if len(token) > _LONG_STRING + 2:
        return f'"{token[1 : _LONG_STRING + 1]}… ({len(token) - _LONG_STRING - 2} more)"'
    if "\\u" in token:
        text = json.loads(token)
        if text.isprintable():  # control characters and lone surrogates are better seen as escapes
            return json.dumps(text, ensure_ascii=False)
    return token
