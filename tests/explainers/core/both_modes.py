"""The native core as C and as plain Python: one script, run in both modes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import attributary_explainers

ROOT = Path(__file__).parents[3]
PACKAGE = Path(attributary_explainers.__file__).parent

_SAYS_MODE = "\nfrom attributary_explainers.core import is_compiled\nprint(is_compiled())\n"


def printed_plainly(script: str, tmp_path: Path) -> str:
    """What a script prints that imports a copy of the package without compiled modules."""
    copy = tmp_path / "plain" / PACKAGE.name
    if not copy.exists():
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__"))
    return _printed(script, copy.parent, compiled=False)


def printed_compiled(script: str) -> str:
    """What a script prints that imports the package with its compiled modules."""
    return _printed(script, PACKAGE.parent, compiled=True)


def _printed(script: str, where: Path, *, compiled: bool) -> str:
    path = os.pathsep.join((str(where), str(ROOT), *filter(None, sys.path)))
    # River breaks ties in the order of a set of texts, which is another one in each process.
    variables = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script + _SAYS_MODE],
        env=variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    said, _, mode = found.stdout.rstrip("\n").rpartition("\n")
    assert mode == str(compiled), f"the script has run in the other mode, and printed {found.stdout!r}"
    assert said, "a script that prints nothing shows nothing"
    return said
