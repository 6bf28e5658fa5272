"""Shows that what is served of the page's files means what their authors wrote."""

from __future__ import annotations

import gzip
import re

import pytest
from pygments.lexers.css import CssLexer
from pygments.lexers.javascript import JavascriptLexer
from pygments.token import Comment, String, Whitespace

from attributary_agents.serve.page import STATIC, VENDOR, Page, as_served, single_file

OURS = sorted(
    path.relative_to(STATIC).as_posix()
    for kind in ("js", "css")
    for path in STATIC.rglob(f"*.{kind}")
    if not path.is_relative_to(STATIC / "vendor")
)


def _meaning(name: str, text: str) -> list[str]:
    """Return the tokens as Pygments reads them, and a line break where one stands between two of them."""
    lexer = JavascriptLexer(stripnl=False) if name.endswith(".js") else CssLexer(stripnl=False)
    found: list[str] = []
    gap = ""
    for kind, value in lexer.get_tokens(text):
        if kind in Comment or kind in Whitespace or (not value.strip() and kind not in String):
            gap += value
            continue
        if "\n" in gap and found:
            found.append("\n")
        gap = ""
        found.append(value)
    return found


def test_the_pages_files_hold_what_is_to_be_taken_out() -> None:
    """Else the next test would show nothing."""
    assert len(OURS) > 20
    assert all(len(as_served(name, _text(name))) < len(_text(name)) for name in OURS)


@pytest.mark.parametrize("kind", ["js", "css"])
def test_all_tokens_and_line_breaks_between_them_stay(kind: str) -> None:
    for name in OURS:
        if name.endswith(kind):
            served = as_served(name, _text(name))
            assert _meaning(name, served) == _meaning(name, _text(name)), name
            if kind == "js":
                assert not re.search(r"^(//|/\*\*)", served, re.MULTILINE), name


def _text(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def test_comments_on_lines_of_their_own_go_and_so_does_indentation() -> None:
    script = "// What.\n\n/** Does\n * this.\n */\nexport function a() {\n  // Why.\n  return 1; // as told\n}\n"
    assert as_served("js/a.js", script) == "export function a() {\nreturn 1; // as told\n}\n"
    style = "/* What. */\na {\n  /* Why,\n     and how. */\n  color: red;\n}\n"
    assert as_served("css/a.css", style) == "a {\ncolor: red;\n}\n"


@pytest.mark.parametrize(
    "whole",
    [
        'a = "// no comment";\n',
        "a = 'http://host/*';\nb = 2; // */\n",
        "a = `\n  // text\n\n  /* text */\n`;\n",
        "a = `\\``;\n",
        "a = `${b ? `c` : ``}\n    // text`;\n",
        "a = b\n/ c / d;\n",
        "a; /* begins behind code\n  // and */ b();\n",
        "/* a */ b();\n",
        "/*! a licence */\na;\n",
        "/* without an end\n  a;\n",
        "// a\u2028b();\n",
        "// a\rb();\n",
    ],
)
def test_what_is_no_comment_on_a_line_of_its_own_stays(whole: str) -> None:
    assert as_served("js/a.js", whole) == whole


def test_code_around_a_template_of_several_lines_loses_its_indentation() -> None:
    assert as_served("js/a.js", "  a(`\n  b`);\n  // c\n  d;\n") == "a(`\n  b`);\nd;\n"


@pytest.mark.parametrize("name", ["vendor/a.js", "vendor/a.css", "vendor/a.LICENSE", "a.svg"])
def test_files_of_others_and_of_other_kinds_stay_as_they_are(name: str) -> None:
    assert as_served(name, "/* licence */\n\n  a {\n  }\n") == "/* licence */\n\n  a {\n  }\n"


def test_the_server_and_a_single_file_give_what_is_served() -> None:
    page, one = Page("1.0.0"), single_file({})
    for name in OURS:
        file = page.file(name)
        assert file is not None
        assert file.packed is not None
        assert gzip.decompress(file.packed) == file.body == as_served(name, _text(name)).encode()
    for name in (f"{VENDOR}uPlot.iife.min.js", f"{VENDOR}uPlot.LICENSE"):
        file = page.file(name)
        assert file is not None
        assert file.body == (STATIC / name).read_bytes()
    assert as_served("css/page.css", _text("css/page.css")) in one
    assert "%2F%2F%20" not in one
