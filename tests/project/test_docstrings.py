"""The first lines of docstrings: short, and without words that make riddles."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AGENTS = ROOT / "agents" / "attributary_agents"
LATER = {"cli", "config", "serve", "sources", "rehearsal"}
"""Rooms of agents whose first lines are not plain yet."""
RIDDLES = re.compile(r"\b(what|one|those|which of them)\b", re.IGNORECASE)


def test_a_first_line_is_short_and_no_riddle() -> None:
    wrong = []
    for path in sorted(AGENTS.rglob("*.py")):
        if path.relative_to(AGENTS).parts[0] in LATER:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first, *_ = (ast.get_docstring(node) or "").splitlines() or [""]
                if len(first) > 72 or RIDDLES.search(first):
                    wrong.append(f"{path.relative_to(ROOT)}: {first}")
    assert wrong == []
