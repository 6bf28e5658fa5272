"""Kernels that come from disk without numba's tables: every one that is kept, with the same numbers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from .test_compiled import ROOT, run

EXPLAIN = """
import random, sys
from attributary_explainers import Explainers, IncrementalPFI, IncrementalSAGE
from attributary_explainers import compiled
from river import forest, linear_model, naive_bayes, preprocessing
{loader}
for make in (
    lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    lambda: forest.ARFClassifier(n_models=2, seed=1),
    naive_bayes.GaussianNB,
):
    model, rng = make(), random.Random(1)
    both = Explainers(model, {{
        "pfi": IncrementalPFI(model, n_samples=3, seed=1),
        "sage": IncrementalSAGE(model, n_samples=3, seed=1, removal="observational"),
    }})
    for _ in range(300):
        x = {{name: rng.random() for name in "abc"}}
        y = x["a"] > x["b"]
        both.explain_one(x, y)
        model.learn_one(x, y)
    for name in ("pfi", "sage"):
        one = both.explainers[name]
        print(name, one.importance, one.std_error)
print(compiled.compilations.n, file=sys.stderr)
"""

AS_NUMBA_DOES = """
from numba.core.caching import FunctionCache
assert compiled.count_kept()[0] > 30
for kernel in compiled._kernels:
    assert isinstance(kernel._cache, FunctionCache) and type(kernel._cache) is not FunctionCache
    kernel._cache.__class__ = FunctionCache
"""


@pytest.mark.long
def test_kernels_compute_what_they_do_when_numba_loads_them(tmp_path: Path) -> None:
    run(EXPLAIN.format(loader=""), tmp_path, **_HERE)
    ours = run(EXPLAIN.format(loader=""), tmp_path, **_HERE)
    theirs = run(EXPLAIN.format(loader=AS_NUMBA_DOES), tmp_path, **_HERE)
    assert ours.stderr == theirs.stderr == "0\n", "all came from disk"
    assert ours.stdout == theirs.stdout
    assert ours.stdout.count("sage {") == 3


CALLED = """
from attributary_explainers.compiled import compiled

@compiled
def called(x):
    return x + {}
"""

CALLER = """
from attributary_explainers.compiled import compiled
from called import called
import named

@compiled
def caller(x):
    return between(x) * named.FACTOR

@compiled
def between(x):
    return called(x)
"""

CALL = """
from caller import caller
from attributary_explainers.compiled import _kernels
print(caller(1))
print(sum(kernel.stats.cache_hits[one] for kernel in _kernels for one in kernel.stats.cache_hits))
"""


@pytest.mark.long
def test_a_kernel_is_compiled_anew_where_one_that_it_calls_or_a_number_has_changed(
    tmp_path: Path,
) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    for added, factor, expected in ((1, 2, "4\n0\n"), (1, 2, "4\n1\n"), (20, 2, "42\n0\n"), (20, 3, "63\n1\n")):
        (tmp_path / "named.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / "called.py").write_text(CALLED.format(added))
        path = os.pathsep.join((str(tmp_path), str(ROOT), *filter(None, sys.path)))
        assert run(CALL, tmp_path, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1").stdout == expected


def test_a_release_of_numba_that_was_not_tried_loads_kernels_itself(tmp_path: Path) -> None:
    found = run(
        """
import numba
numba.__version__ = "0.999.0"
from attributary_explainers import compiled
from numba.core.caching import FunctionCache
assert {type(kernel._cache) for kernel in compiled._kernels} == {FunctionCache}
""",
        tmp_path,
    )
    assert found.stderr == ""


_HERE = {"NUMBA_CACHE_DIR": ""}
"""Kernels are kept where `make kernels` has put them: compiling takes half a minute."""
