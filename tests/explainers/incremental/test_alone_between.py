"""An explainer that is asked by itself, between observations that it explains together with others."""

from __future__ import annotations

from river import forest

from attributary_explainers.incremental.explainers import Explainers

from ..fast_paths.streams import blobs
from ..fast_paths.twins import bits
from .test_together import two


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
