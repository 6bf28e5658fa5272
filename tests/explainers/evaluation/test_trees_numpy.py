"""Trees without numba: what holds for the compiled kernels holds for numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from river import forest, tree

from attributary_explainers import IncrementalPFI
from attributary_explainers.evaluation import tree_numpy, tree_routes, tree_structure, trees
from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema

from .harness import follow
from .streams import blobs
from .test_trees import (  # noqa: F401 - they are run here, too
    test_a_category_that_a_split_does_not_know_goes_where_most_weight_is,
    test_a_class_without_weight_votes,
    test_a_linear_leaf_in_which_too_much_cancels_is_refused,
    test_a_new_class_late_and_sorted_before_all_others,
    test_a_value_so_far_away_that_river_itself_fails,
    test_alternate_trees_come_and_go,
    test_an_adaptive_regressor_with_alternate_trees,
    test_an_unknown_category_counts_an_alternate_leaf_twice_as_river_does,
    test_before_the_first_observation,
    test_classifiers,
    test_labels,
    test_memory_management_that_puts_leaves_to_sleep_and_wakes_them,
    test_regressors,
    test_thousands_of_nodes_and_thirty_features,
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
