"""Kernels: the same numbers as plain Python, and what a user is told while they are compiled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(script: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh process with a cache of kernels of its own, which ends well."""
    variables = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "kernels"),
        "PYTHONPATH": os.pathsep.join((str(ROOT), *filter(None, sys.path))),
        **environment,
    }
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=variables, cwd=tmp_path, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return found


PLAIN = """
from attributary_explainers import compiled
from attributary_explainers.fast_paths.trees.routes import route
assert not compiled.is_compiling()
assert not hasattr(route, "py_func")
from river import linear_model, naive_bayes, neighbors, preprocessing, tree
from tests.explainers.fast_paths.harness import follow
from tests.explainers.fast_paths.streams import blobs
from tests.explainers.fast_paths.tree_cases import drifting, growing_numbers
quick = dict(grace_period=20, delta=0.05)
scaled = lambda last: preprocessing.StandardScaler() | preprocessing.MaxAbsScaler() | last
for model, stream, options in (
    (tree.HoeffdingTreeClassifier(**quick), drifting(120, categories=4), {}),
    (tree.HoeffdingAdaptiveTreeClassifier(**quick), drifting(120, categories=4), {}),
    (tree.HoeffdingTreeRegressor(**quick), growing_numbers(100), {"number": True}),
    (scaled(linear_model.SoftmaxRegression()), blobs(40), {}),
    (scaled(naive_bayes.GaussianNB()), blobs(40), {}),
    (neighbors.KNNClassifier(engine=neighbors.LazySearch(15)), blobs(40), {}),
    (neighbors.KNNRegressor(engine=neighbors.LazySearch(15)), growing_numbers(40), {"number": True}),
):
    report = follow(model, stream, n_rows=4, **options)
    assert report.covered == report.steps, report
from attributary_explainers import GeometricReservoir, IncrementalSAGE, ShiftedImputer
removal = ShiftedImputer(GeometricReservoir(5))
sage = IncrementalSAGE(lambda x: x["a"], loss="squared", removal=removal, seed=1)
for i in range(12):  # no coalition of a single feature is walked through: a kernel would read what is not there
    found = sage.explain_one({"a": float(i % 3)}, 1.0)
assert found.keys() == {"a"}
"""


def test_kernels_are_plain_python_where_numba_is_told_not_to_compile(tmp_path: Path) -> None:
    run(PLAIN, tmp_path, NUMBA_DISABLE_JIT="1")
    assert not (tmp_path / "kernels").exists()


SMALL = """
import sys
from attributary_explainers import IncrementalPFI
from attributary_explainers import compiled
compiled._SLOW_S = compiled._EVERY_S = 0.0
from river import naive_bayes
model = naive_bayes.GaussianNB()
explainer = IncrementalPFI(model, seed=1, n_samples=2)
for i in range(6):
    x, y = {"a": i * 0.5, "b": float(i % 3)}, i % 2 == 0
    explainer.explain_one(x, y)
    model.learn_one(x, y)
assert explainer._function.n_fast > 4
print(compiled.compilations.n)
"""
"""Few kernels; prints how many of them were compiled."""

TINY = """
from attributary_explainers import compiled
compiled._SLOW_S = compiled._EVERY_S = 0.0
from attributary_explainers.losses import kernels
kernels.squared(1.0, 0.5), kernels.absolute(1.0, 0.5), kernels.brier(0.5, 0.25), kernels.cross_entropy(0.5, 1e-15)
print(compiled.compilations.n)
"""
"""The four smallest, for what does not depend on which kernels there are: a fifth of the time of the few."""


@pytest.mark.long
def test_a_process_says_that_it_compiles_and_the_next_one_has_nothing_to_say(tmp_path: Path) -> None:
    first, second = run(SMALL, tmp_path), run(SMALL, tmp_path)
    assert int(first.stdout) > 3
    assert first.stderr.count("attributary compiles its kernels") == 1
    assert re.findall(r"attributary has compiled (\d+) of about \d+ kernels", first.stderr)[-1] == first.stdout.strip()
    assert f"once on this machine, kept in {tmp_path / 'kernels'}. `attributary warm-up`" in first.stderr
    assert second.stdout == "0\n"
    assert second.stderr == ""


@pytest.mark.long
def test_another_processor_compiles_again_and_says_so(tmp_path: Path) -> None:
    generic = {"NUMBA_CPU_NAME": "generic"}
    assert run(TINY, tmp_path, **generic).stdout == "4\n"
    assert run(TINY, tmp_path, **generic).stdout == "0\n", "the cache was warm"
    other = run(TINY, tmp_path, NUMBA_CPU_NAME="x86-64-v2" if os.uname().machine == "x86_64" else "cortex-a72")
    assert other.stdout == "4\n"
    assert other.stderr.count("attributary compiles its kernels") == 1


@pytest.mark.long
def test_where_no_folder_can_be_written_that_is_said_with_what_to_do(tmp_path: Path) -> None:
    # Not by rights, which root has everywhere: numba tries a folder by a temporary file in it.
    blocked = """
import tempfile
def refuse(**_):
    raise OSError("read-only")
tempfile.TemporaryFile = refuse
"""
    found = run(blocked + TINY, tmp_path)
    assert found.stdout == "4\n"
    assert "as no folder can be written. Set NUMBA_CACHE_DIR to one that can" in found.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("level", "expected"), [("INFO", "INFO:attributary_explainers:attributary compiles its"), ("ERROR", "")]
)
def test_the_level_of_the_logger_sends_the_message_to_the_log_or_nowhere(
    level: str, expected: str, tmp_path: Path
) -> None:
    logged = f"""
import logging
logging.basicConfig(format="%(levelname)s:%(name)s:%(message)s")
logging.getLogger("attributary_explainers").setLevel("{level}")
"""
    found = run(logged + TINY, tmp_path)
    assert found.stderr.startswith(expected) if expected else found.stderr == ""
