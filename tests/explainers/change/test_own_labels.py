"""Without labels, two versions are each measured against their own output: closed forms, and what labels would say."""

from __future__ import annotations

import random
import statistics

import pytest

from attributary_explainers import ChangeExplainer, ChangeExplanation

N = 400


class Sum:
    """A weighted sum of features; it ignores all others."""

    def __init__(self, **weights: float) -> None:
        self.weights = weights

    def __call__(self, x: dict[str, float]) -> float:
        return sum(weight * x[name] for name, weight in self.weights.items())


def rows() -> list[dict[str, float]]:
    rng = random.Random(4)
    return [{name: rng.gauss(0, 1) for name in "abc"} for _ in range(N)]


def compared(*, own_labels: bool) -> ChangeExplanation:
    old, new = Sum(a=2.0, b=3.0), Sum(a=1.0, c=3.0)
    change = ChangeExplainer(
        old, window=N, detector=None, loss="squared", n_permutations=10, own_labels=own_labels, version="1", seed=1
    )
    change.new_version(new, "2")
    assert [event for x in rows() for event in change.update(x, old(x), new(x))] == []
    (event,) = change.finish()
    assert isinstance(event, ChangeExplanation)
    return event


def exact(weight: float, name: str) -> float:
    """Mean of (w (x - x'))^2 over all other rows x': 2 w^2 times the variance."""
    return 2 * weight**2 * statistics.variance(x[name] for x in rows())


def test_each_of_two_versions_is_measured_against_its_own_output() -> None:
    found = compared(own_labels=True).importances["pfi"]
    assert (found.before_loss, found.after_loss) == (0.0, 0.0)
    for importance, weights in ((found.before, {"a": 2.0, "b": 3.0}), (found.after, {"a": 1.0, "c": 3.0})):
        for name in "abc":
            # 10 permutations of 400 rows leave some percent of doubt; of a feature that is ignored, none.
            expected = exact(weights.get(name, 0.0), name)
            assert importance[name] == pytest.approx(expected, rel=0.1)
            assert importance[name] != 0 or name not in weights
    assert found.before["c"] == found.after["b"] == 0.0


def test_against_labels_of_the_first_the_second_relies_on_nothing_of_its_own() -> None:
    found = compared(own_labels=False).importances["pfi"]
    assert found.before["b"] == pytest.approx(exact(3.0, "b"), rel=0.1)
    assert abs(found.after["c"]) < exact(3.0, "c") / 5, "it has nothing to do with what the first one says"
    assert (found.after_loss or 0) > 10
