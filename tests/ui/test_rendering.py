"""How parts are shown, by kind and media type."""

from __future__ import annotations

import pytest

from protocol.model import Part
from tasks_app.pages import parts, rendering
from tests.ui.support import data_part


def _block(part: Part) -> parts.Block:
    (block,) = parts.blocks([part], "m1")
    return block


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (Part(text="plain *words* and 2 * 3 * 4"), "text"),
        (Part(text="# Heading"), "markdown"),
        (Part(text="with **bold** words"), "markdown"),
        (Part(text="see [here](https://e.test)"), "markdown"),
        (Part(text="```\ncode\n```"), "markdown"),
        (Part(text="| a | b |\n|---|---|\n| 1 | 2 |"), "markdown"),
        (Part(text="#hashtag, #2"), "text"),
        (Part(text="# Heading", media_type="text/plain"), "text"),
        (Part(text="words", media_type="text/markdown; charset=utf-8"), "markdown"),
        (Part(text="x = 1", media_type="text/x-python"), "code"),
        (Part(text="x = 1", filename="a.py"), "code"),
        (Part(text="select 1", media_type="application/sql", filename="a.sql"), "code"),
        (Part(text="{}", media_type="application/vnd.api+json"), "code"),
        (Part(text="x", media_type="application/x-unheard-of"), "text"),
        (Part(text="x", filename="notes.txt"), "text"),
        (data_part("null"), "code"),
        (Part(raw="AAAA", media_type="IMAGE/PNG"), "image"),
        (Part(raw="AAAA"), "file"),
        (Part(url="https://e.test"), "link"),
        (Part(url="ftp://e.test"), "address"),
    ],
)
def test_kinds(part: Part, kind: str) -> None:
    assert _block(part).kind == kind


def test_long_text_is_shown_plain() -> None:
    text = "# Heading\n" * 10_001
    assert _block(Part(text=text, media_type="text/markdown")).kind == "text"
    assert _block(Part(text=text, media_type="text/x-python")).kind == "text"


def test_very_long_text_is_cut() -> None:
    block = _block(Part(text="x" * 200_001))
    assert (len(block.text), block.cut) == (200_000, 1)


def test_markdown() -> None:
    html = rendering.markdown("a ~~b~~ `c`\n\n| l | r |\n|:--|--:|\n| 1 | 2 |\n\n1. x\n2. y")
    assert html == (
        "<p>a <s>b</s> <code>c</code></p>\n"
        '<table>\n<thead>\n<tr>\n<th align="left">l</th>\n<th align="right">r</th>\n</tr>\n</thead>\n'
        '<tbody>\n<tr>\n<td align="left">1</td>\n<td align="right">2</td>\n</tr>\n</tbody>\n</table>\n'
        "<ol>\n<li>x</li>\n<li>y</li>\n</ol>\n"
    )


def test_headings_stay_below_those_of_the_page() -> None:
    html = rendering.markdown("# a\n## b\n### c\n###### d\n")
    assert html == "<h4>a</h4>\n<h5>b</h5>\n<h6>c</h6>\n<h6>d</h6>\n"


def test_code_in_markdown_is_coloured() -> None:
    html = rendering.markdown("```python\nif x:\n```\n\n```unheard-of\n<b>\n```")
    assert html == (
        '<pre><code class="language-python"><span class="k">if</span> <span class="n">x</span>'
        '<span class="p">:</span>\n</code></pre>\n'
        '<pre><code class="language-unheard-of">&lt;b&gt;\n</code></pre>\n'
    )


def test_json_keeps_numbers_and_reads_well() -> None:
    text = r'{"a":[1.0,1e5,12345678901234567890,-0],"\u4f60":"\u017elu\u0165 \"\u0000\" \\u0041 😀","e":{}}'
    assert rendering.pretty_json(text) == (
        '{\n  "a": [\n    1.0,\n    1e5,\n    12345678901234567890,\n    -0\n  ],\n'
        '  "你": "\\u017elu\\u0165 \\"\\u0000\\" \\\\u0041 😀",\n  "e": {}\n}'
    )
    assert rendering.pretty_json(r'"\ud83d\ude00 \u017elu\u0165"') == '"😀 žluť"'
    assert rendering.pretty_json(r'"\ud83d"') == r'"\ud83d"'
    assert rendering.pretty_json("{no json") == "{no json"


def test_long_strings_in_json_are_shortened() -> None:
    text = '{"a":"' + "x" * 2005 + '","b":[' + ",".join(["1"] * 1500) + '],"c":"y"}'
    pretty = rendering.pretty_json(text)
    assert f'"{"x" * 2000}… (5 more)"' in pretty
    assert pretty.count("1,\n") == 1499
    assert pretty.endswith('"c": "y"\n}')


def test_text_that_goes_on_in_the_next_chunk_is_one_text() -> None:
    chunks = [
        ("e1", [Part(text="# He", media_type="text/markdown")]),
        ("e2", [Part(text="llo", media_type="text/markdown"), Part(text="own")]),
        ("e3", [Part(text="!", media_type="text/plain")]),
        ("e4", [data_part("1")]),
        ("e5", [data_part("2")]),
    ]
    found = parts.joined(chunks)
    assert [(b.kind, b.text) for b in found] == [
        ("markdown", "# Hello"),
        ("text", "own"),
        ("text", "!"),
        ("code", ""),
        ("code", ""),
    ]
    assert [b.source for b in found] == ["e1/0", "e2/1", "e3/0", "e4/0", "e5/0"]


@pytest.mark.parametrize(("raw", "size"), [("", 0), ("AA==", 1), ("AAA=", 2), ("AAAA", 3), ("AAAAAA==", 4)])
def test_sizes_of_files(raw: str, size: int) -> None:
    assert _block(Part(raw=raw)).size == size


def test_a_small_text_file_is_previewed() -> None:
    block = _block(Part(raw="YSxi", media_type="text/csv"))
    assert (block.kind, block.text) == ("file", "a,b")
    assert _block(Part(raw="/////w==", media_type="text/plain")).text == ""
