"""An explainer that is asked by itself, between observations that it explains together with others."""

from __future__ import annotations

from typing import Any

import pytest
from river import forest, linear_model, preprocessing

from attributary_explainers.incremental.together import Explainers

from ..fast_paths.streams import blobs
from ..fast_paths.twins import bits, published
from .test_together import two


@pytest.mark.parametrize("explainer", ["pfi", "sage"])
def test_an_explainer_may_be_asked_by_itself_between_its_observations_in_company(
    explainer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way has its own last observation, which has other features than that of the other way."""

    def explained() -> list[Any]:
        model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        together, found = Explainers(model, two(model)), []
        by_itself = together.explainers[explainer]
        for i, (x, label) in enumerate(blobs(200, 5)):
            y = label == "a"
            names = list(x) if i % 8 < 4 else list(x)[:2]
            row = {name: x[name] for name in names}
            found.append(bits(together.explain_one(row, y) if i % 8 < 4 or i < 8 else by_itself.explain_one(row, y)))
            model.learn_one(row, y)
        return [*found, bits(published(by_itself))]

    as_ever = explained()
    monkeypatch.setattr("attributary_explainers.incremental.steady.Steady.after", classmethod(lambda *_: None))
    assert explained() == as_ever
    assert len(as_ever) == 201


def test_what_was_predicted_is_evaluated_again_where_the_fast_path_has_been_asked_since() -> None:
    """Its predictions were in the memory of those that followed."""
    found = []
    for again in (False, True):
        model = forest.ARFClassifier(n_models=3, seed=1)
        together = Explainers(model, two(model))
        stream = list(blobs(120, 4))
        for i, (x, y) in enumerate(stream):
            y_pred = together.predict(x)
            if i % 5 == 4:
                other, label = stream[i - 1]
                together.explainers["sage"].explain_one(other, label)
                if again:
                    assert together.predict(x) == y_pred
            found.append(bits(together.explain(y)))
            model.learn_one(x, y)
        assert together.n_predicted == 120 + 24 * again
    assert found[:120] == found[120:]
