"""Size of a checkout, also beside another: lines, files, folders, names."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from rich.console import Console

from benchmarks.tables import Table, as_rich

HERE = Path(__file__).resolve().parents[2]
PARTS = ("explainers", "topics", "agents", "tests", "benchmarks", "support")
ENDINGS = {".py", ".js", ".css"}
_NOT_OURS = {"__pycache__", "vendor", "build", "node_modules"}


def files_of(checkout: Path, part: str) -> list[Path]:
    """Return the files of a part that people write."""
    found = (checkout / part).rglob("*")
    return sorted(
        path
        for path in found
        if path.suffix in ENDINGS and not _NOT_OURS.intersection(path.relative_to(checkout).parts)
    )


def facts_of(checkout: Path) -> dict[str, str]:
    """Return the size of each part, and how wide, deep and repetitive the product is."""
    facts, product = {}, []
    for part in PARTS:
        files = files_of(checkout, part)
        n_lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
        facts[part] = f"{n_lines} lines, {len(files)} files"
        product += files if part in PARTS[:3] else []
    widest, n_widest = Counter(path.parent for path in product).most_common(1)[0]
    deepest = max((path.parent for path in product), key=lambda folder: len(folder.parts))
    names = Counter(path.name for path in product if path.name != "__init__.py").most_common(3)
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in (checkout / "docs").rglob("*.md"))
    return facts | {
        "docs": f"{words} words",
        "widest folder": f"{widest.relative_to(checkout)}, {n_widest} files",
        "deepest folder": f"{deepest.relative_to(checkout)}",
        "most used file names": ", ".join(f"{name} {n}" for name, n in names),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `lines`."""
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HERE], help="checkouts (default: this one)")


def run(args: argparse.Namespace) -> int:
    """Print the facts of each checkout beside each other."""
    columns = [facts_of(checkout.resolve()) for checkout in args.checkouts]
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    header = ("", *(str(checkout) for checkout in args.checkouts))
    Console(width=160).print(as_rich(Table("house", "The size of the code", header, rows)))
    return 0
