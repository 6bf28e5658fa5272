"""The first lines of docstrings: short, and without words that make riddles."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "agents/attributary_agents": 1000,
    "explainers/attributary_explainers": 1000,
    "topics/attributary_topics": 100,
}
"""Packages, and how many docstrings each has at least."""
SHOWN = (
    "agents/attributary_agents/cli/",
    "agents/attributary_agents/config/",
    "agents/attributary_agents/serve/answers.py",
)
SHOWN += ("agents/attributary_agents/serve/http/routes.py", "agents/attributary_agents/serve/http/stream.py")
"""Docstrings here are texts of their own: the help of commands, and descriptions in JSON Schema and OpenAPI."""
RIDDLES = re.compile(r"\b(what|one|those|which of them)\b", re.IGNORECASE)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_first_line_is_short_and_no_riddle(package: str) -> None:
    wrong, n = [], 0
    for path in sorted((ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(SHOWN):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first, *_ = (ast.get_docstring(node) or "").splitlines() or [""]
                n += bool(first)
                if len(first) > 72 or RIDDLES.search(first):
                    wrong.append(f"{name}: {first}")
    assert n > PACKAGES[package]
    assert wrong == []
