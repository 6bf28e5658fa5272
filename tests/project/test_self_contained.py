"""The repository is read as it stands: none of its files reads a folder outside it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("agents", "topics", "explainers", "deploy", "tests", "docs", "benchmarks", "support", ".ci")
ENDINGS = {".py", ".md", ".yml", ".yaml", ".toml"}

_UP = re.compile(r"(?<![\w./])(?:\.\./)+[\w./-]*\w")
_PARENTS = re.compile(r"__file__\)(?:\.resolve\(\))?\.parents\[(\d+)\]")
_PARENT = re.compile(r"__file__\)(?:\.resolve\(\))?((?:\.parent\b)+)")
_BESIDE = re.compile(r"\b(?:ROOT|REPOSITORY|checkout|cwd\(\))\.parent\b|\bpardir\b")
REFUSED = {"../x", "../two.pkl"}
"""What tests ask for in vain: no product code opens it."""


def outside(place: Path, text: str) -> list[str]:
    """What leads out of the repository, in the text of a file at this place in it."""
    depth = len(place.parts) - 1
    found = [match[0] for match in _BESIDE.finditer(text)]
    found += [match[0] for match in _PARENTS.finditer(text) if int(match[1]) > depth]
    found += [match[0] for match in _PARENT.finditer(text) if match[1].count(".parent") > depth + 1]
    for path in _UP.findall(text):
        # Links and rule files count from their own folder, and are there; code counts from where commands are run.
        if place.suffix in (".md", ".yml", ".yaml") and len(place.parts) > 1:
            # A path may come back by the name of the checkout's folder, which another checkout does not have.
            if path.count("../") > depth or not (ROOT / place.parent / path).exists():
                found.append(path)
        elif path not in REFUSED:
            found.append(path)
    return found


def files() -> Iterator[Path]:
    for path in [*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]:
        if (path.suffix in ENDINGS or path.name == "Makefile") and path != Path(__file__).resolve():
            yield path


def test_no_file_leads_out_of_the_repository() -> None:
    found = {path.relative_to(ROOT): outside(path.relative_to(ROOT), path.read_text("utf-8")) for path in files()}
    assert len(found) > 300
    assert {path: leads for path, leads in found.items() if leads} == {}


@pytest.mark.parametrize(
    ("place", "text", "leads_out"),
    [
        ("benchmarks/a.py", "Path(__file__).resolve().parents[1]", False),
        ("benchmarks/a.py", 'Path(__file__).resolve().parents[2] / "data"', True),
        ("tests/agents/a.py", "Path(__file__).parent.parent.parent", False),
        ("tests/agents/a.py", "Path(__file__).parent.parent.parent.parent", True),
        ("tests/a.py", 'ROOT.parent / "data"', True),
        ("tests/agents/a.py", 'help="default: ../data"', True),
        ("pyproject.toml", "reads ../data", True),
        ("Makefile", "\tcat ../data/a.csv", True),
        ("CONTRIBUTING.md", "they are in `../data`", True),
        ("docs/a.md", "[b](../benchmarks/data/README.md#elec2)", False),
        ("docs/a.md", "they are in `../nowhere`", True),
        ("docs/a.md", "they are in ../../data", True),
        ("docs/a.md", "three dots... and 1/../2", False),
    ],
)
def test_what_leads_out_is_noticed(place: str, text: str, leads_out: bool) -> None:
    assert bool(outside(Path(place), text)) == leads_out
