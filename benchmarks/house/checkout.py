"""Where a checkout keeps the product, and how a process runs that checkout's code."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
PACKAGES = {"attributary_agents": "agents", "attributary_topics": "topics", "attributary_explainers": "explainers"}
"""The product's packages, each with the folder that it lies in."""


def package_folder(checkout: Path, package: str) -> Path:
    """Return the folder of one package of the product.

    Raises
    ------
    SystemExit
        The checkout has no such package.
    """
    folder = checkout / PACKAGES[package] / package
    if not (folder / "__init__.py").is_file():
        raise SystemExit(f"{checkout} is no checkout of the project: it has no {folder.relative_to(checkout)}")
    return folder


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Yield the dotted name and the path of every module below a package's folder, sorted by name."""
    found = []
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    yield from sorted(found)


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment in which Python imports the product from this checkout, and the benchmarks from here."""
    for package in PACKAGES:
        package_folder(checkout, package)
    folders = [str((checkout / folder).resolve()) for folder in PACKAGES.values()]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*folders, str(HERE)])}


def copied_plainly(checkout: Path, to: Path) -> Path:
    """Copy the product of a checkout without what is compiled of it, so that it runs as plain Python; return `to`."""
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    for package in PACKAGES:
        folder = package_folder(checkout, package)
        shutil.copytree(folder, to / folder.relative_to(checkout), ignore=compiled)
    return to


def definer(package: Path, name: str) -> str:
    """Return the dotted name of the one module of a package that defines this function or class at its top level.

    Raises
    ------
    LookupError
        No module defines it, or more than one does.
    """
    found = [
        module
        for module, path in modules(package)
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
    ]
    if len(found) != 1:
        raise LookupError(f"expected one module of {package.name} to define {name}, found {found or 'none'}")
    return found[0]
