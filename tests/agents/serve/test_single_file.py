"""The page as one file: all of it is inside, and whatever names the data hold, they end no script and turn no text."""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from attributary_agents.serve.page import STATIC, single_file

INDEX = """<!doctype html>
<html lang="en" data-base="{{base}}">
<head>
<meta charset="utf-8">
<title>Attributary</title>
<link rel="stylesheet" href="{{base}}/css/page.css">
<script type="importmap">{"imports": {"page/": "{{base}}/js/"}}</script>
<script src="{{base}}/vendor/plot.iife.min.js" defer></script>
<script type="module" src="{{base}}/js/main.js"></script>
</head>
<body>
<main></main>
</body>
</html>
"""
MAIN = 'import { h } from "page/views/a.js";\n// 100 % of </b>, `a\\n` # ü\n\th("\u2028");\n'
EVIL = [
    "</script><script>alert(1)</script>",
    "<!--",
    "\u2028\u2029\u202e\x7f\x85\x00",
    "\ud800",
    "{{base}}/",
    "]]>&lt;",
]


@pytest.fixture
def static(tmp_path: Path) -> Path:
    files = {
        "index.html": INDEX,
        "css/page.css": "main { color: red }\n",
        "vendor/plot.iife.min.js": "window.plot = 1;",
        "vendor/plot.LICENSE": "The MIT License: \N{COPYRIGHT SIGN} somebody\n",
        "js/main.js": MAIN,
        "js/views/a.js": "export const h = (text) => text;",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


class Parsed(HTMLParser):
    """A page as a browser reads it: elements in order, each with its attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self._is_inside = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))
        self._is_inside = True

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = False

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = tag, attributes, text + data

    def named(self, name: str, **attributes: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (found, text) for tag, found, text in self.elements if tag == name and attributes.items() <= found.items()
        ]


def data_of(page: Parsed) -> Any:
    ((_, text),) = page.named("script", id="data")
    return json.loads(text)


def test_style_scripts_and_licence_are_inside_and_nothing_is_named_outside(static: Path) -> None:
    page = Parsed(single_file({"health": {}}, static))
    assert page.named("link") == []
    assert [text for _, text in page.named("style")] == ["main { color: red }\n"]
    assert all("src" not in attributes for attributes, _ in page.named("script"))
    plot = next(text for _, text in page.named("script") if "window.plot" in text)
    assert plot.startswith("/*\nThe MIT License: \N{COPYRIGHT SIGN} somebody\n*/\n")
    assert data_of(page) == {"health": {}}


def test_each_module_is_an_address_that_holds_it_whole(static: Path) -> None:
    ((_, text),) = Parsed(single_file({}, static)).named("script", type="importmap")
    found = json.loads(text)["imports"]
    assert found.keys() == {"page/main.js", "page/views/a.js"}
    kind, _, script = found["page/main.js"].partition(",")
    assert kind == "data:text/javascript;charset=utf-8"
    assert unquote(script) == MAIN
    # A URL loses its tabs and line ends, and ends at #.
    assert not set(script) & set('\t\n\r#<>"\\')
    assert script.isascii()


def test_the_policy_trusts_these_scripts_and_this_style_and_no_address(static: Path) -> None:
    html = single_file({"a": "b"}, static)
    page = Parsed(html)
    ((policy, _),) = page.named("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = {name: values for name, *values in (rule.split() for rule in (policy["content"] or "").split(";"))}
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == ["'none'"]
    assert rules["img-src"] == ["data:", "blob:"]

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    run = [text for attributes, text in page.named("script") if attributes.get("type") != "application/json"]
    assert rules["script-src"] == [*map(hashed, run), "'strict-dynamic'"]
    assert rules["style-src"] == [hashed(text) for _, text in page.named("style")]
    assert html.index("Content-Security-Policy") < min(html.index(tag) for tag in ("<style", "<script", "<title"))


def test_no_name_ends_the_script_that_it_stands_in(static: Path) -> None:
    data = {"models": {name: {"name": name} for name in EVIL}}
    html = single_file(data, static)
    page = Parsed(html)
    assert data_of(page) == data
    assert [attributes.get("type") for attributes, _ in page.named("script")] == [
        "importmap",
        None,
        "application/json",
        "module",
    ]
    ((_, text),) = page.named("script", id="data")
    assert not {"<", ">"} & set(text)
    assert all(unicodedata.category(one)[0] != "C" for one in text), "nothing turns the text, or ends a line"
    assert text.isascii()


def test_what_json_cannot_hold_is_refused(static: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        single_file({"loss": float("nan")}, static)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("index.html", INDEX.replace("</head>", '<link rel="icon" href="{{base}}/icon.png"></head>')),
        ("index.html", INDEX.replace("main.js", "main.js?1").replace('type="module" ', "")),
        ("index.html", INDEX.replace("</body>", "")),
        ("css/page.css", "a::after { content: '</style>' }"),
        ("vendor/plot.iife.min.js", 'const end = "</SCRIPT>";'),
        ("vendor/plot.iife.min.js", 'const hidden = "<!--";'),
    ],
)
def test_a_page_that_cannot_be_one_file_is_refused(static: Path, name: str, text: str) -> None:
    (static / name).write_text(text)
    with pytest.raises(ValueError, match=r"not known here|would end it|No such file"):
        single_file({}, static)


def test_the_page_itself_is_one_file_with_the_licence_of_what_it_plots_with() -> None:
    html = single_file({"health": {}})
    licence = (STATIC / "vendor/uPlot.LICENSE").read_text(encoding="utf-8").strip()
    assert licence in html
    assert "{{base}}" not in html
    assert "url(" not in "".join(text for _, text in Parsed(html).named("style")).replace("url(data:", "")
