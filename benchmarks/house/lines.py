"""`lines`: counts the lines of Python of a checkout, by part and by folder."""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .checkout import HERE, PACKAGES

PRODUCT = "product"
_NOT_OURS = {"__pycache__", "build", "dist", "node_modules", "site-packages"}
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Size:
    """Files, lines that hold code (no comment, no docstring, not empty), and all lines."""

    files: int = 0
    code: int = 0
    all: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.code + other.code, self.all + other.all)

    def __sub__(self, other: Size) -> Size:
        return Size(self.files - other.files, self.code - other.code, self.all - other.all)


def size_of(source: str) -> Size:
    """Return the size of one module."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        # A string that stands alone is a docstring, of whatever it stands in or below.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return Size(1, len(code), len(source.splitlines()))


def folder_sizes(checkout: Path) -> dict[str, Size]:
    """Return by folder the size of what stands directly in it."""
    found: defaultdict[str, Size] = defaultdict(Size)
    for path in sorted(checkout.rglob("*.py")):
        inner = path.relative_to(checkout).parts
        if not any(part.startswith(".") or part in _NOT_OURS for part in inner):
            found["/".join(inner[:-1]) or "."] += size_of(path.read_text(encoding="utf-8"))
    return dict(found)


def part_of(folder: str) -> str:
    """Return the part of the project that a folder belongs to: the product, or the folder at the top."""
    top = folder.split("/")[0]
    return PRODUCT if top in PACKAGES.values() else top


def part_sizes(folders: dict[str, Size]) -> dict[str, Size]:
    """Return the size of each part of the project."""
    found: defaultdict[str, Size] = defaultdict(Size)
    for folder, size in folders.items():
        found[part_of(folder)] += size
    return dict(found)


def table(columns: list[dict[str, Size]]) -> list[str]:
    """Return lines with the sizes of one checkout, or of two and their difference."""
    lines = []
    for name in sorted({name for column in columns for name in column}):
        sizes = [column.get(name, Size()) for column in columns]
        shown = [f"{size.files:5d} {size.code:7d} {size.all:7d}" for size in sizes]
        if len(sizes) == 2:
            change = sizes[1] - sizes[0]
            shown.append(f"{change.files:+5d} {change.code:+7d} {change.all:+7d}")
        lines.append(f"{name:54} " + "  | ".join(shown))
    return lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `lines`."""
    parser.add_argument("checkouts", nargs="*", type=Path, help="one or two checkouts (default: this one)")


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    checkouts = args.checkouts or [HERE]
    if len(checkouts) > 2:
        print("lines: expected one or two checkouts")
        return 2
    columns = [folder_sizes(checkout) for checkout in checkouts]
    head = "  | ".join(["files    code     all"] * len(columns) + ["difference"] * (len(columns) - 1))
    print(f"{'Python; code: without comments, docstrings, empty lines':54} {head}")
    print("\n".join(table([part_sizes(column) for column in columns])))
    print()
    print("\n".join(table(columns)))
    return 0
