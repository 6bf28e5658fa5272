"""Importance as it is now, drawn as a newcomer asks for it; and what is said where something else is needed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from attributary_explainers import (
    BatchImportance,
    ExplainerError,
    ImportanceHistory,
    IncrementalMDI,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    batch_pfi,
    plots,
)


def model(x: dict[str, Any]) -> float:
    return 2.0 * x["a"] + x["b"]


def explained(explainer: Any, n: int = 200) -> Any:
    rng = random.Random(1)
    for _ in range(n):
        x = {name: rng.gauss(0, 1) for name in ("a", "b", "c")}
        explainer.explain_one(x, model(x))
    return explainer


def bars_of(ax: Axes) -> dict[str, float]:
    names = [text.get_text() for text in ax.get_yticklabels()]
    return dict(zip(names, (bar.get_width() for bar in ax.patches), strict=True))


def whiskers_of(ax: Axes) -> list[float]:
    """Return half the length of each whisker, from top to bottom."""
    segments = [one.get_segments()[0] for one in ax.collections]
    return [(segment[1][0] - segment[0][0]) / 2 for segment in segments]


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
def test_an_explainer_draws_its_importance_now_with_95_intervals(kind: Any) -> None:
    explainer = explained(kind(model, loss="squared", alpha=0.05, seed=1))
    ax = explainer.plot()
    assert bars_of(ax) == explainer.importance
    assert list(bars_of(ax)) == sorted(explainer.importance, key=lambda name: -explainer.importance[name])
    assert whiskers_of(ax) == pytest.approx([explainer.half_width[name] for name in bars_of(ax)])
    assert ax.get_xlabel() == "importance (squared loss: unit of the target, squared; whiskers: 95 % interval)"
    assert ax.get_title(loc="left") == f"Importance by {explainer.name.upper()}"


def test_a_tree_s_decrease_in_impurity_has_no_intervals() -> None:
    from river.datasets import synth
    from river.tree import HoeffdingTreeClassifier

    tree = HoeffdingTreeClassifier(grace_period=50)
    mdi = IncrementalMDI(tree, features=["size", "color", "shape"])
    mdi.explain_many(synth.STAGGER(classification_function=2, seed=7).take(500), learn=True)
    ax = mdi.plot()
    assert bars_of(ax) == mdi.importance
    assert (whiskers_of(ax), ax.get_xlabel()) == ([], "importance")


def test_a_batch_importance_and_the_largest_of_many_features() -> None:
    values = {f"f{i}": (-1.0) ** i * i for i in range(30)}
    ax = BatchImportance(values, dict.fromkeys(values, 0.5), 10).plot(top=3)
    assert bars_of(ax) == {"f28": 28.0, "f27": -27.0, "f29": -29.0}
    assert list(bars_of(ax)) == ["f28", "f27", "f29"]
    assert whiskers_of(ax) == pytest.approx([0.98] * 3, abs=0.001)
    assert ax.get_title(loc="left") == "Importance, 3 of 30 features"


def test_what_cannot_be_drawn_says_what_to_do() -> None:
    pfi = explained(IncrementalPFI(model, loss="squared", seed=1))
    with pytest.raises(ExplainerError, match=r"an ImportanceHistory: make one, call history\.record\(explainer\)"):
        plots.importance(pfi)
    with pytest.raises(ExplainerError, match=r"plots\.bars draws the importance that an explainer has now"):
        plots.shares(pfi)
    with pytest.raises(ExplainerError, match="explain two observations or more first"):
        IncrementalPFI(model, loss="squared").plot()
    assert repr(ImportanceHistory()) == "ImportanceHistory()"


def test_partial_dependence_without_a_feature_names_those_there_are() -> None:
    with pytest.raises(ExplainerError, match=r"feature must be one of \['a', 'b', 'c'\], got None"):
        explained(IncrementalPDP(model, seed=1)).plot()
    with pytest.raises(ExplainerError, match="there is none yet: explain more first"):
        IncrementalPDP(model, seed=1).plot()
    assert explained(IncrementalPDP(model, features=["b"], seed=1)).plot().get_xlabel() == "b"


def test_the_bars_of_a_batch_are_those_of_a_frame_and_its_labels() -> None:
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 2)), columns=["a", "b"])
    assert set(bars_of(batch_pfi(model, X, 2 * X.a, loss="squared", seed=1).plot())) == {"a", "b"}
