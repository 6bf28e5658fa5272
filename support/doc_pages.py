"""Documentation pages as notebooks: run their code, compare what it prints and draws with what the page shows.

On a page, a block ```python is run; what it prints is in the block ```text that follows it. A picture is an .svg that
the code saves into the current folder and that the page shows from `images/`.
"""

from __future__ import annotations

import contextlib
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib as mpl

SETTINGS: Any = {
    "svg.hashsalt": "attributary",
    "svg.fonttype": "none",  # text stays text: smaller files, and texts can be compared
    "path.simplify": False,  # the points that are left out depend on the last bits of the others
    "font.family": ["DejaVu Sans"],
}
TOLERANCE = 0.5
"""Of coordinates in pictures, in points; a picture is some 500 wide."""

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"#[\w-]+|[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A piece of code on a page, and what the page says that it prints."""

    line: int
    code: str
    output: str | None


class Page:
    """A page, read."""

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, path.read_text(encoding="utf-8")
        self.pictures = re.findall(r"!\[[^\]]+\]\(images/([\w-]+\.svg)\)", self.source)
        self.links = re.findall(r"(?<!!)\[[^\]]+\]\(([^)#:]+)(?:#[\w-]+)?\)", self.source)
        self.data = sorted(set(re.findall(r'"([\w-]+\.csv\.gz)"', self.source)))
        self.blocks: list[Block] = []
        found = list(_BLOCK.finditer(self.source))
        for block, following in zip_longest(found, found[1:]):
            if block[1] == "python":
                beside = following is not None and following[1] == "text" and not _between(block, following).strip()
                line = self.source.count("\n", 0, block.start(2)) + 1
                self.blocks.append(Block(line, block[2], following[2] if beside else None))

    def run(self, folder: Path) -> list[str]:
        """What the blocks print, run in one namespace, in `folder`; pictures are left there."""
        namespace: dict[str, Any] = {"__name__": "__main__"}
        outputs = []
        with contextlib.chdir(folder), mpl.rc_context():
            mpl.rcdefaults()  # whatever was drawn before in this process
            mpl.rcParams.update(SETTINGS)
            for block in self.blocks:
                # Blank lines before the code, so that a traceback has the page's own line numbers.
                code = compile("\n" * (block.line - 1) + block.code, str(self.path), "exec")
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(code, namespace)
                outputs.append(printed.getvalue())
        return outputs

    def updated(self, outputs: list[str]) -> str:
        """The page's source with these outputs."""
        source = self.source
        for block, output in zip(self.blocks, outputs, strict=True):
            shown = f"```python\n{block.code}```\n"
            old = shown if block.output is None else f"{shown}\n```text\n{block.output}```\n"
            source = source.replace(old, f"{shown}\n```text\n{output}```\n" if output else shown, 1)
        return source


def _between(first: re.Match[str], second: re.Match[str]) -> str:
    return first.string[first.end() : second.start()]


def same_text(found: str, expected: str) -> bool:
    """Whether two texts are equal, decimal numbers give or take one in the last digit that is written."""
    if _NUMBER.sub("0", found) != _NUMBER.sub("0", expected):
        return False
    return all(map(_same_number, _NUMBER.findall(found), _NUMBER.findall(expected)))


def _same_number(found: str, expected: str) -> bool:
    if found == expected:
        return True
    mantissa, _, exponent = expected.replace("−", "-").partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not decimals or "#" in found + expected:
        return False
    return abs(float(found.replace("−", "-")) - float(expected.replace("−", "-"))) <= 1.001 * 10.0 ** (
        int(exponent or 0) - decimals
    )


def normalised(svg: str) -> str:
    """A picture of matplotlib's without date and version, with short ids, and with no more digits than can be seen."""
    svg = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    used = dict.fromkeys(re.findall(r"(?:href=\"#|url\(#)([\w-]+)", svg))
    short = {name: f"i{n}" for n, name in enumerate(used)}
    svg = re.sub(r' id="([\w-]+)"', lambda m: f' id="{short[m[1]]}"' if m[1] in short else "", svg)
    svg = re.sub(r"(href=\"#|url\(#)([\w-]+)", lambda m: m[1] + short[m[2]], svg)

    def rounded(tag: re.Match[str]) -> str:
        return re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), tag[0])

    svg = re.sub(r"<[^<>]+>", rounded, svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip() + "\n"


def picture_differences(found: str, expected: str) -> Iterator[str]:
    """What two pictures differ in, in words: texts, colours, or coordinates by more than the tolerance."""
    for n, (one, other) in enumerate(zip_longest(ET.fromstring(found).iter(), ET.fromstring(expected).iter())):
        if one is None or other is None or one.tag != other.tag or one.keys() != other.keys():
            yield f"element {n} is another one: there is more or less in the picture"
            return
        if not same_text((one.text or "").strip(), (other.text or "").strip()):
            yield f"the text {one.text!r} was {other.text!r}"
        for key in one.keys():  # noqa: SIM118 - an element iterates over its children
            if not _same_attribute(one.get(key, ""), other.get(key, "")):
                yield f"{one.tag.partition('}')[2]} {key}={_short(one.get(key, ''))} was {_short(other.get(key, ''))}"


def _same_attribute(found: str, expected: str) -> bool:
    if _NUMBER.sub("0", found) != _NUMBER.sub("0", expected):
        return False
    pairs = zip(_NUMBER.findall(found), _NUMBER.findall(expected), strict=True)
    return all(a == b if "#" in a + b else abs(float(a) - float(b)) <= TOLERANCE for a, b in pairs)


def _short(text: str) -> str:
    return repr(text if len(text) < 80 else f"{text[:77]}...")
