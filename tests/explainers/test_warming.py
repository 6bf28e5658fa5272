"""Kernels compiled ahead: afterwards nothing that explains has anything left to compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from attributary_explainers import warm_up
from attributary_explainers.compiled import is_compiling

from .test_compiled import run

HEAD = """
import warnings
from river import compose, ensemble, forest, linear_model, naive_bayes, neighbors, preprocessing, tree
import numpy as np
from attributary_explainers import IncrementalPDP, IncrementalPFI, IncrementalSAGE, batch_pfi, batch_sage
from attributary_explainers import compiled, warm_up
from attributary_explainers.batch.contributions import sage_contributions
from attributary_explainers.batch.tables import DataTable
from tests.explainers.fast_paths.streams import blobs, texts
from tests.explainers.fast_paths.tree_cases import drifting, growing_numbers


def explained(model, stream, make=IncrementalPFI, **parameters):
    explainer = make(model, **parameters)
    for x, y in stream:
        explainer.explain_one(x, y)
        model.learn_one(x, y)
    assert explainer._function.n_fast, type(model)


def loaded():
    return {(kernel.__name__, *kernel.signatures) for kernel in compiled._kernels}


"""

WARM = """
calls = []
warm_up(lambda *ready: calls.append(ready))
assert calls[-1] == (len(compiled._kernels),) * 2, calls
inner = {name for kernel in compiled._kernels for name in kernel.py_func.__code__.co_names}
idle = {kernel.__name__ for kernel in compiled._kernels if not kernel.signatures} - inner
assert not idle, idle
before = loaded()
"""

STREAMS = """
quick = dict(grace_period=20, delta=0.05)
encoded = compose.Select("colour", "door") | preprocessing.OneHotEncoder()
scaled = compose.Select("size", "constant") | preprocessing.StandardScaler()
explained((scaled + encoded) | linear_model.LogisticRegression(), texts(30))
explained(preprocessing.MinMaxScaler() | linear_model.SoftmaxRegression(), blobs(30), IncrementalSAGE, loss="brier")
explained(tree.HoeffdingAdaptiveTreeClassifier(**quick, seed=1), drifting(150, categories=4), loss="zero_one")
explained(tree.ExtremelyFastDecisionTreeClassifier(**quick), drifting(150), IncrementalSAGE, sampling="independent")
explained(tree.HoeffdingAdaptiveTreeRegressor(**quick, seed=1), growing_numbers(150), loss="absolute")
explained(tree.HoeffdingTreeRegressor(**quick), growing_numbers(150), IncrementalSAGE, removal="product")
explained(neighbors.KNNRegressor(engine=neighbors.LazySearch(20)), growing_numbers(40))
explained(neighbors.KNNClassifier(engine=neighbors.LazySearch(20)), blobs(40), removal="observational")
explained(forest.ARFRegressor(n_models=3, seed=1, aggregation_method="median"), growing_numbers(60))
explained(forest.ARFClassifier(n_models=3, seed=1), drifting(130), feature_share=0.4)
for make in (IncrementalPFI, IncrementalSAGE):
    explained(forest.ARFClassifier(n_models=2, seed=1), drifting(20, numbers=300), make, n_samples=3)
    explained(linear_model.LinearRegression(), growing_numbers(20, features=300), make, n_samples=3)
explained(linear_model.LinearRegression(), growing_numbers(130), feature_share=0.4, loss="absolute")
explained(ensemble.LeveragingBaggingClassifier(naive_bayes.GaussianNB(), n_models=2, seed=1), blobs(30))
explained(naive_bayes.GaussianNB(), blobs(40), groups={"both": ["x0", "x1"]})
explained(naive_bayes.GaussianNB(), blobs(40), IncrementalSAGE, n_permutations=3, bias_correction=False)
explained(tree.HoeffdingTreeClassifier(**quick), drifting(60), IncrementalPDP)
for model, data in (
    (tree.HoeffdingTreeRegressor(**quick, leaf_prediction="mean"), list(growing_numbers(150))),
    (tree.HoeffdingTreeClassifier(**quick, leaf_prediction="mc"), list(drifting(150))),
):
    for x, y in data:
        model.learn_one(x, y)
    rows = data[-30:]
    assert batch_pfi(model, rows).exact and batch_pfi(model, rows, groups={"all": list(data[0][0])}).exact
    assert batch_sage(model, rows).exact
    assert not batch_pfi(model, rows, exact=False).exact and not batch_sage(model, rows, exact=False).exact
    sage_contributions([DataTable(model, rows, None, None)], 2, np.random.default_rng(1), most_ns=1e12)
"""
"""Explains by every fast path."""

REST = """
others = {name for name, *_ in loaded() - before} - inner  # an inner kernel was compiled as a part of another one
assert not others, others
"""


@pytest.mark.long
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    assert is_compiling()
    warm_up()  # into the cache of this machine, which the process has too
    found = run(HEAD + WARM + STREAMS + REST, tmp_path, NUMBA_CACHE_DIR="")
    assert found.stderr == ""


def test_a_second_time_there_is_nothing_to_do() -> None:
    warm_up()
    calls: list[tuple[int, int]] = []
    assert warm_up(lambda ready, total: calls.append((ready, total))) == (0, 0.0)
    ((ready, total),) = calls
    assert ready == total > 30
