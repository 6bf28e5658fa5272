"""Every warning points to the line of the user's that called the package, however deep in it the reason was found."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from river.base import Regressor

from attributary_explainers import (
    ConstantLossWarning,
    Explainers,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    LossMonitor,
    ModelFailureWarning,
    NaivePathWarning,
    SlowFeatureWarning,
    UnknownLabelWarning,
    batch_pfi,
    batch_sage,
)


def rows(n: int = 300) -> Iterator[tuple[dict[str, float], float]]:
    rng = random.Random(1)
    for i in range(n):
        yield {"row": float(i), "a": rng.random()}, rng.random()


def unknown_model(says: Callable[[dict[str, float]], float] = lambda x: x["a"]) -> Any:
    """Return a model of a class of its own, which has no fast path and of which nothing has been said yet."""

    class Own(Regressor):
        def predict_one(self, x: dict[str, float]) -> float:
            return says(x)

        def learn_one(self, x: dict[str, float], y: float) -> None:
            pass

    Own.__name__ = f"Own{random.random()}"
    return Own()


def fails_later() -> Callable[[dict[str, float]], float]:
    calls = iter(range(10**9))
    return lambda x: 1.0 / (next(calls) < 200)


def together(model: Any) -> Explainers:
    return Explainers(model, {kind.name: kind(model, seed=1) for kind in (IncrementalPFI, IncrementalSAGE)})


def explained(explainer: Any, n: int = 300) -> None:
    for x, y in rows(n):
        explainer.explain_one(x, y)


WAYS: dict[str, tuple[Callable[[], Any], set[type[Warning]]]] = {
    "pfi": (
        lambda: explained(IncrementalPFI(unknown_model(), alpha=0.02, seed=1)),
        {NaivePathWarning, SlowFeatureWarning},
    ),
    "sage": (lambda: explained(IncrementalSAGE(unknown_model(), alpha=0.02, seed=1)), {NaivePathWarning}),
    "many": (lambda: IncrementalPFI(unknown_model(), seed=1).explain_many(rows(), learn=True), {NaivePathWarning}),
    "pdp": (lambda: explained(IncrementalPDP(unknown_model(), seed=1)), {NaivePathWarning}),
    "together": (
        lambda: explained(together(unknown_model())),
        {NaivePathWarning},
    ),
    "constant": (lambda: explained(IncrementalPFI(lambda _x: 1.0, loss=lambda y, p: 0.5), 1100), {ConstantLossWarning}),
    "failing": (lambda: explained(IncrementalPFI(fails_later(), loss="squared")), {ModelFailureWarning}),
    "failing pdp": (lambda: explained(IncrementalPDP(fails_later())), {ModelFailureWarning}),
    "batch pfi": (lambda: batch_pfi(unknown_model(), list(rows(20))), {NaivePathWarning}),
    "batch sage": (lambda: batch_sage(unknown_model(), list(rows(20))), {NaivePathWarning}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_warning_points_to_the_users_line(way: str) -> None:
    called, categories = WAYS[way]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        called()
    ours = [one for one in caught if one.category.__module__.startswith("attributary_")]
    assert categories <= {one.category for one in ours}
    assert {one.filename for one in ours} == {__file__}


def test_a_feature_that_moves_in_one_direction_is_told_in_words() -> None:
    with pytest.warns(SlowFeatureWarning) as caught:
        explained(IncrementalPFI(lambda x: x["a"], loss="squared", alpha=0.02, seed=1))
    (said,) = [str(one.message) for one in caught if one.category is SlowFeatureWarning]
    assert "those of 'row' throughout, moving in one direction" in said
    assert "inf" not in said


def observed(monitor: LossMonitor) -> None:
    for x, _ in rows(5000):
        monitor.update(x, "no", {"True": 0.6, "False": 0.4})


def test_a_monitor_s_warning_points_to_the_users_line() -> None:
    monitor = LossMonitor(learns=False)
    with pytest.warns(UnknownLabelWarning, match="none of the first") as caught:
        observed(monitor)
    assert {one.filename for one in caught} == {__file__}
