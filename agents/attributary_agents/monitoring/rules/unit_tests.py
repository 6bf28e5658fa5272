"""The test files of the rules, and running them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ...errors import AttributaryError
from .cases import Case, cases_text
from .cases_change import CHANGE_CASES, QUALITY_CASES
from .cases_importance import IMPORTANCE_CASES
from .cases_operations import OPERATIONS_CASES
from .cases_rebalance import REBALANCE_CASES
from .files import RULES_FILE, prometheus_text
from .options import RuleOptions

CASES: dict[str, list[Case]] = {
    "importance": IMPORTANCE_CASES,
    "change": CHANGE_CASES,
    "quality": QUALITY_CASES,
    "operations": OPERATIONS_CASES,
    "rebalance": REBALANCE_CASES,
}
"""Area to its cases, and the cases of a rebalance."""


def unit_tests(options: RuleOptions) -> dict[str, str]:
    """Name below the folder of the rules to text. What they expect is of the thresholds' defaults."""
    return {_name(area): cases_text(cases, options) for area, cases in CASES.items()}


def run_promtool(options: RuleOptions, areas: Iterable[str] = (), promtool: str = "promtool") -> tuple[bool, str]:
    """Check the rules and run their tests; whether all is well, and what promtool printed.

    Parameters
    ----------
    areas
        Of `CASES`; all where none is named.

    Raises
    ------
    AttributaryError
        There is no promtool.
    """
    found = shutil.which(promtool)
    if found is None:
        raise AttributaryError(
            f"{promtool} is not installed: it comes with Prometheus (https://prometheus.io/download, or the Debian "
            "package prometheus)"
        )
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, RULES_FILE)
        rules.write_text(prometheus_text(options), encoding="utf-8")
        chosen = {_name(area) for area in areas}
        tests = {name: text for name, text in unit_tests(options).items() if not chosen or name in chosen}
        for name, text in tests.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        good, said = True, ""
        for command in (["check", "rules", RULES_FILE], ["test", "rules", *tests]):
            done = subprocess.run(
                [found, *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True
            )
            good, said = good and done.returncode == 0, said + done.stdout
    return good, said


def _name(area: str) -> str:
    return f"tests/{area}.test.yml"
