"""Private names of Faust and aiokafka appear in one folder, and nothing else of theirs is replaced elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "agents" / "attributary_agents"
UPSTREAM = ROOT / "kafka" / "upstream"
LIBRARIES = ("faust", "aiokafka", "mode")
OF_TUPLES = {"_asdict", "_replace", "_fields", "_make"}
"""Public names of named tuples."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _folder(library: str) -> Path:
    spec = PathFinder.find_spec(library)  # Faust puts another object in the place of its module
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _attributes(tree: ast.AST) -> set[str]:
    """Names of methods and attributes that a module defines."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            names |= {
                statement.target.id
                for statement in node.body
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
            }
            names |= {
                target.id
                for statement in node.body
                if isinstance(statement, ast.Assign)
                for target in statement.targets
                if isinstance(target, ast.Name)
            }
    return names


@pytest.fixture(scope="module")
def theirs() -> set[str]:
    """Private attributes of the libraries."""
    files = [path for library in LIBRARIES for path in _folder(library).rglob("*.py")]
    return {
        name for path in files for name in _attributes(ast.parse(path.read_text())) if _is_private(name)
    } - OF_TUPLES


def _touches(tree: ast.Module, theirs: set[str]) -> Iterator[str]:
    """Yield what a module uses of the libraries' private names, or replaces of them."""
    own = _attributes(tree)
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LIBRARIES:
            modules |= {alias.asname or alias.name for alias in node.names}
            yield from (alias.name for alias in node.names if _is_private(alias.name))
        elif isinstance(node, ast.Import):
            modules |= {
                (alias.asname or alias.name).split(".")[0]
                for alias in node.names
                if alias.name.split(".")[0] in LIBRARIES
            }
    bases = {
        ast.unparse(base).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    }
    ours = set() if bases & modules else {"self", "cls"}  # of a subclass, private names of its own may be theirs
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if _is_private(node.attr) and node.attr in theirs - own and ast.unparse(node.value) not in ours:
            yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node.ctx, ast.Store) and ast.unparse(node).split(".")[0] in modules:
            yield f"line {node.lineno}: {ast.unparse(node)} is replaced"


def test_private_names_of_the_libraries_are_in_one_folder(theirs: set[str]) -> None:
    assert {"_fetcher", "_client", "_message_accumulator", "_schedule_shutdown"} <= theirs
    touched = {
        str(path.relative_to(ROOT)): lines
        for path in sorted(ROOT.rglob("*.py"))
        if UPSTREAM not in path.parents and (lines := list(_touches(ast.parse(path.read_text()), theirs)))
    }
    assert touched == {}, "put what corrects Faust or aiokafka into kafka/upstream, with a test of the defect"


def test_each_correction_says_its_version_and_the_test_that_ends_it() -> None:
    for path in sorted(UPSTREAM.glob("*.py")):
        if path.name == "__init__.py":
            continue
        said = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
        assert "True for " in said, path.name
        (test,) = [word.strip("`") for word in said.split() if word.startswith("`test_")]
        there = ROOT.parents[1] / "tests" / "agents" / "kafka" / "upstream" / test
        assert "upstream" in there.read_text(), f"{path.name}: {test} shows no defect of upstream"


@pytest.mark.parametrize(
    "line",
    [
        "def f(c): return c._client",
        "from aiokafka.record.default_records import _DefaultRecordPy",
        "import aiokafka.client\naiokafka.client.create_conn = None",
        "from aiokafka.consumer import fetcher\nfetcher.MemoryRecords = None",
        "import faust\nclass W(faust.Worker):\n    def f(self): self._schedule_shutdown(2)",
    ],
)
def test_such_lines_are_found(line: str, theirs: set[str]) -> None:
    assert list(_touches(ast.parse(line), theirs))
