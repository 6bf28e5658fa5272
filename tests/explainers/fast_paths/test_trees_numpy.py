"""Trees without numba: what holds for the compiled kernels holds for numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from river import forest, tree

from attributary_explainers import IncrementalPFI
from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.fast_paths.trees import (
    evaluators as trees,
)
from attributary_explainers.fast_paths.trees import (
    numpy_kernels as tree_numpy,
)
from attributary_explainers.fast_paths.trees import (
    routes as tree_routes,
)
from attributary_explainers.fast_paths.trees import (
    structure as tree_structure,
)

from .harness import follow
from .streams import blobs
from .test_trees import (
    test_a_category_that_a_split_does_not_know_goes_where_most_weight_is,
    test_alternate_trees_come_and_go,
)
from .twins import follow_twins, naive_twin


@pytest.fixture(autouse=True)
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_structure, "route", tree_numpy.route)
    monkeypatch.setattr(trees, "vote", tree_numpy.vote)
    monkeypatch.setattr(trees, "estimate", tree_numpy.estimate)


def test_forests() -> None:
    for make, labels in ((forest.ARFClassifier, ("a", "b", "c")), (forest.ARFClassifier, (0, 1))):
        report = follow(make(n_models=4, seed=1, grace_period=20, delta=0.1), blobs(300, labels=labels))
        assert report.covered == 300, report


def test_ways_are_those_of_the_compiled_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number that both write, after each observation, multiway splits and alternates among them."""
    compared = []

    def both(*args: Any) -> Any:
        twins = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        found, expected = tree_numpy.route(*args), tree_routes.route(*twins)
        compared.append(found)
        assert tuple(map(int, found)) == tuple(map(int, expected))
        names = ["X", "roots", "epochs", "nodes", "thresholds", "keys", "targets", "detours"]
        written = dict(
            zip([*names, "branches", "leaves", "lost", "path", "ends", "extras", "extra_at"], args, strict=True)
        )
        others = dict(zip(written, twins, strict=True))
        n_branches, n_leaves, n_lost, n_extras, _ = expected
        for name, n in (("branches", n_branches), ("leaves", n_leaves), ("lost", n_lost)):
            assert sorted(written[name][:n]) == sorted(others[name][:n]), name
        fit = min(n_extras, len(written["extras"]))
        assert written["extras"][:fit].tolist() == others["extras"][:fit].tolist()
        for name in ("nodes", "ends", "extra_at", "detours"):
            assert np.array_equal(written[name], others[name]), name
        return found

    monkeypatch.setattr(tree_structure, "route", both)
    test_alternate_trees_come_and_go()
    test_a_category_that_a_split_does_not_know_goes_where_most_weight_is()
    assert len(compared) > 100
    assert max(n_extras for _, _, _, n_extras, _ in compared) > 0
    assert max(n_lost for _, _, n_lost, _, _ in compared) > 0


def test_few_rows_are_the_model_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_fewest_rows", tree_numpy.FEWEST_ROWS)
    schema = Schema(("a",))
    for model in (tree.HoeffdingTreeClassifier(), tree.HoeffdingTreeRegressor()):
        evaluator = make_evaluator(model, schema)
        assert len(evaluator.predict(np.zeros((tree_numpy.FEWEST_ROWS, 1)))) == tree_numpy.FEWEST_ROWS
        with pytest.raises(NotCoveredError, match="pip install"):
            evaluator.predict(np.zeros((tree_numpy.FEWEST_ROWS - 1, 1)))


@pytest.mark.parametrize(("n_samples", "share"), [(10, 0.9), (2, 0.0)])
def test_an_explainer_takes_it_where_there_are_many_rows(
    n_samples: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "_fewest_rows", tree_numpy.FEWEST_ROWS)
    model = tree.HoeffdingTreeClassifier(grace_period=20)
    fast, naive = (IncrementalPFI(model, seed=1, n_samples=n_samples) for _ in range(2))
    taken = follow_twins(model, fast, naive_twin(naive), blobs(80))
    assert taken > share if share else taken == 0.0
