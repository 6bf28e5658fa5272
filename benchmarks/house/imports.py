"""Reads which module of a package imports which other, from the source and without importing anything."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from .checkout import modules

MODULE, TYPING, FUNCTION = "module", "typing", "function"
KINDS = (MODULE, TYPING, FUNCTION)
"""When an import runs: with its module, never (under TYPE_CHECKING), or when a function is called."""

Graph = dict[str, set[str]]
"""Every node with those that it needs."""


def import_graph(package: Path) -> dict[str, Graph]:
    """Return by kind the graph of the modules of a package; imports of other packages are left out.

    A name that is imported from a package leads to its `__init__`, unless it is itself a module. That Python runs the
    `__init__` of every package above an imported module is not counted as an import of it.
    """
    paths = dict(modules(package))
    graphs: dict[str, Graph] = {kind: {name: set() for name in paths} for kind in KINDS}
    for name, path in paths.items():
        home = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for kind, target in _imports(ast.parse(path.read_bytes()), home):
            if (found := _nearest(target, paths)) and found != name:
                graphs[kind][name].add(found)
    return graphs


def together(graphs: dict[str, Graph], *kinds: str) -> Graph:
    """Return one graph with the imports of all these kinds."""
    union: defaultdict[str, set[str]] = defaultdict(set)
    for kind in kinds:
        for name, needed in graphs[kind].items():
            union[name] |= needed
    return dict(union)


def _imports(tree: ast.AST, home: str, kind: str = MODULE) -> Iterator[tuple[str, str]]:
    """Yield each imported dotted name with the kind of its import; `home` is the package that dots start from."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((kind, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = home.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            yield from ((kind, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _imports(node, home, FUNCTION if kind == MODULE else kind)
        elif isinstance(node, ast.If) and _name_of(node.test) == "TYPE_CHECKING":
            yield from _imports(ast.Module(node.body, []), home, TYPING)
            yield from _imports(ast.Module(node.orelse, []), home, kind)
        else:
            if isinstance(node, ast.Call) and _name_of(node.func) in ("import_module", "__import__"):
                yield from ((kind, name) for name in _named_module(node, home))
            yield from _imports(node, home, kind)


def _named_module(call: ast.Call, home: str) -> Iterator[str]:
    """Yield the module that `import_module("name")` names where it is written out, relative to `home` if dotted."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        name = first.value.lstrip(".")
        level = len(first.value) - len(name)
        yield f"{home.rsplit('.', level - 1)[0]}.{name}" if level else name


def _name_of(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _nearest(target: str, known: dict[str, Path]) -> str | None:
    """Return the module that defines a dotted name: itself, or what stands before its last dot."""
    return next((name for name in (target, target.rpartition(".")[0]) if name in known), None)
