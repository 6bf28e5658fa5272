"""Makes a mistake on purpose in one function after the other, and tells which of them no test sees."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .mutations import MUTATIONS, Mutation
from .walk import HERE, PACKAGES

_COPIED = (*PACKAGES.values(), "tests", "support", "benchmarks", "examples", "pyproject.toml", "hatch_build.py")
_SECONDS = 600
"""Longer than the tests of a mistake take: it has made something endless."""
_PASSED, _FAILED = 0, 1
"""How pytest ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `mutate`."""
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="mistakes whose file or name has one (default: all)"
    )


def run(args: argparse.Namespace) -> int:
    """Test each mistake in a copy of this checkout, as plain Python; return 1 where one is not seen."""
    chosen = [one for one in MUTATIONS if any(text in one.file or text in one.what for text in args.only)]
    with tempfile.TemporaryDirectory(prefix="attributary-house-") as name:
        copy = _copied(Path(name))
        tests = sorted({test for one in chosen for test in one.tests})
        imported = copy / "imported.txt"
        ended, said = _test(copy, ["--collect-only", *tests], _SECONDS, imported)
        if ended != _PASSED:
            raise SystemExit(f"these tests cannot be read:\n{said}")
        _import_all(imported.read_text(encoding="utf-8").split())
        unseen = [one for one in chosen if not _is_seen(copy, one)]
    print(f"{len(chosen)} mistakes, {len(unseen)} that no test sees")
    return 1 if unseen else 0


def _copied(folder: Path) -> Path:
    """Copy what tests need, without what is compiled."""
    left_out = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", ".*_cache", ".hypothesis")
    for name in _COPIED:
        if (HERE / name).is_dir():
            shutil.copytree(HERE / name, folder / name, ignore=left_out)
        else:
            shutil.copy(HERE / name, folder)
    return folder


def _import_all(names: Sequence[str]) -> None:
    """Import what the tests of all mistakes need of others, which takes longer than most tests."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def mutated(source: str, mutation: Mutation) -> str:
    """Return a source with a mistake in it.

    Raises
    ------
    SystemExit
        What is to be replaced is not there once.
    """
    if (n := source.count(mutation.old)) != 1:
        raise SystemExit(f"{mutation.file}: expected {mutation.old!r} once for {mutation.what!r}, found it {n} times")
    return source.replace(mutation.old, mutation.new)


def _is_seen(copy: Path, mutation: Mutation) -> bool:
    """Make a mistake, print whether a test fails, and take it back."""
    path, before = copy / mutation.file, time.perf_counter()
    source = path.read_text(encoding="utf-8")
    path.write_text(mutated(source, mutation), encoding="utf-8")
    try:
        ended, said = _test(copy, mutation.tests, _SECONDS)
    finally:
        path.write_text(source, encoding="utf-8")
    if ended not in (_PASSED, _FAILED, None):
        raise SystemExit(f"the tests of {mutation.what!r} did not run ({ended}):\n{said}")
    failed = [line.removeprefix("FAILED ") for line in said.splitlines() if line.startswith("FAILED ")]
    by = failed[0].partition(" - ")[0] if failed else ""
    if by and _test(copy, [by], _SECONDS)[0] != _PASSED:
        raise SystemExit(f"{by} fails without a mistake, too")
    by = "NO TEST" if ended == _PASSED else by.removeprefix("tests/explainers/") or "it does not end"
    took = time.perf_counter() - before
    name = Path(mutation.file).relative_to(f"{PACKAGES['attributary_explainers']}/attributary_explainers")
    print(f"{name!s:27} {mutation.what:34} {took:5.1f} s  {by}", flush=True)
    return ended != _PASSED


def _test(copy: Path, tests: Sequence[str], seconds: float, imported: Path | None = None) -> tuple[int | None, str]:
    """Run tests in a fork until one fails; return how pytest ended, None where it did not, and what it said.

    With `imported`, what they have imported of others is written there.
    """
    out = copy / "said.txt"
    child = os.fork()
    if not child:
        _run_tests(copy, tests, out, imported)
    end = time.monotonic() + seconds
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None, ""
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(done[1]), out.read_text(encoding="utf-8")[-3000:]


def _run_tests(copy: Path, tests: Sequence[str], out: Path, imported: Path | None) -> NoReturn:
    """Be the process of the tests: what it imports of the project is that of the copy."""
    code = 70
    try:
        with out.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(copy)
        for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
            del sys.modules[name]
        sys.path[:0] = [*(str(copy / folder) for folder in PACKAGES.values()), str(copy)]
        # Sources change within a second, which bytecode does not show: only that of the copy as it was is kept.
        sys.dont_write_bytecode = imported is None
        import pytest

        code = pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", "-m", "not long", *tests])
        if imported is not None:
            files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
            others = [name for name, file in files.items() if file and not file.startswith(str(copy))]
            imported.write_text("\n".join(others), encoding="utf-8")
    finally:
        sys.stdout.flush()
        os._exit(int(code))
