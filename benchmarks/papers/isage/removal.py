"""Interventional and observational iSAGE of a static model (iSAGE, Figs. 5 and 14), and the efficiency identity."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from river import forest

from attributary_explainers import ConditionalSampler, GeometricReservoir
from benchmarks.papers.explainers import as_batch, observational_sage, our_sage, paper_sage
from benchmarks.papers.rows import Band, Quantity, Row, Run, Settings
from benchmarks.papers.streams import AGRAWAL, agrawal

ALPHA = 0.001
COMMISSION_LIMIT = 75_000
"""Who earns this or more has no commission (the Change paper has it the other way round)."""
SHOWN = ("salary", "commission", "age")


class _Probability:
    """P(class 1) by a scikit-learn classifier, of many rows."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def __call__(self, rows: npt.NDArray[np.float64]) -> list[float]:
        found: list[float] = self.classifier.predict_proba(rows)[:, 1].tolist()
        return found


@cache
def _boosting(n_train: int) -> _Probability:
    """The model, the same in all runs. Another sample of training data gives commission .02 to .05 interventionally."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    training = list(islice(agrawal(1, 42), n_train))
    classifier = HistGradientBoostingClassifier(random_state=42)
    classifier.fit(
        np.array([[x[name] for name in AGRAWAL] for x, _ in training], dtype=float), [y for _, y in training]
    )
    return _Probability(classifier)


def removal(seed: int, *, n: int = 20_000, n_train: int = 20_000, n_samples: int = 10) -> Run:
    """Both removals at once, of gradient boosting that has learnt Agrawal 1; importances at the end, squared loss."""
    model = as_batch(_boosting(n_train), features=AGRAWAL)
    parameters = {"loss": "squared", "alpha": ALPHA, "n_samples": n_samples, "seed": seed}
    explainers = {
        "interventional": paper_sage(model, **parameters),
        "observational": observational_sage(model, **parameters),
    }
    for x, y in islice(agrawal(1, seed), n):
        for explainer in explainers.values():
            explainer.explain_one(x, float(y))
    values = {
        f"{feature}, {name}": explainer.importance[feature]
        for feature in SHOWN
        for name, explainer in explainers.items()
    }
    values["commission, difference"] = values["commission, interventional"] - values["commission, observational"]
    return Run(values | agreement(seed, n=min(n, 5000)))


def agreement(seed: int, *, n: int = 5000, n_drawn: int = 1000) -> dict[str, float]:
    """How often a drawn commission fits the salary of the observation: none above 75 000, and only there."""
    rng = np.random.default_rng(seed)
    sampler, reservoir = ConditionalSampler(seed=seed), GeometricReservoir(100)
    stream = agrawal(1, seed + 1)
    for x, _ in islice(stream, n):
        sampler.update(x)
        reservoir.update(x, rng)
    present = set(AGRAWAL) - {"commission"}
    conditional = marginal = 0
    for x, _ in islice(stream, n_drawn):
        has_none = x["salary"] >= COMMISSION_LIMIT
        conditional += (sampler.draw("commission", x, present, float(rng.random())) == 0) == has_none
        marginal += (reservoir.rows[int(rng.integers(len(reservoir)))]["commission"] == 0) == has_none
    return {"agreement, conditional": conditional / n_drawn, "agreement, marginal": marginal / n_drawn}


def _run(seed: int, settings: Settings) -> Run:
    # A mean over 1 / alpha = 2000 observations: 5000 of them leave the start a weight of .007.
    return removal(seed, n=20_000 if settings.full else 5000)


def efficiency(seed: int, *, n: int = 2000) -> Run:
    """The largest difference, over all steps, between the sum of importances and the improvement in loss."""
    model = forest.ARFClassifier(n_models=3, seed=seed)
    explainers = {
        "as in the paper": paper_sage(model, loss="cross_entropy", alpha=ALPHA, n_samples=1, seed=seed),
        "ours": our_sage(model, loss="cross_entropy", alpha=ALPHA, n_samples=4, seed=seed),
        "observational": observational_sage(model, loss="cross_entropy", alpha=ALPHA, n_samples=1, seed=seed),
    }
    largest = dict.fromkeys(explainers, 0.0)
    for x, y in islice(agrawal(1, seed), n):
        y_pred = model.predict_proba_one(x) or None
        for name, explainer in explainers.items():
            importance = explainer.explain_one(x, y, y_pred=y_pred)
            if explainer.marginal_loss is not None and explainer.model_loss is not None:
                improvement = explainer.marginal_loss - explainer.model_loss
                largest[name] = max(largest[name], abs(sum(importance.values()) - improvement))
        model.learn_one(x, y)
    return Run(largest)


ROWS = (
    Row(
        name="isage-removal",
        title="iSAGE Figs. 5 and 14: static gradient boosting on Agrawal 1, squared loss, both removals",
        quantities=(
            Quantity("commission, interventional", "", ".050"),
            Quantity("commission, observational", "about 0", ".023 (exact .0192)"),
            Quantity("commission, difference", "", ".027", Band.limit(0.011)),
            Quantity("agreement, conditional", "", "1.00", Band.limit(0.98), "every"),
            Quantity("agreement, marginal", "", ".51"),
            Quantity("salary, interventional"),
            Quantity("salary, observational"),
            Quantity("age, interventional"),
            Quantity("age, observational"),
        ),
        run=_run,
        n_short=3,
        n_full=10,
    ),
    Row(
        name="isage-efficiency",
        title="iSAGE, efficiency: |sum of importances - improvement in loss|, every step, a learning ARF(3)",
        quantities=tuple(
            Quantity(name, "0", "1e-12", Band.limit(0, 1e-9), "every")
            for name in ("as in the paper", "ours", "observational")
        ),
        run=lambda seed, settings: efficiency(seed),
        n_short=3,
        n_full=10,
    ),
)
