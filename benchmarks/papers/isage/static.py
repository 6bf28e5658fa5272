"""iSAGE and batch SAGE of models that stay as they are (iSAGE, Figs. 5 and 8): bank, california, adult, bike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from river import forest, tree

from attributary_explainers import batch_sage, ndcg, ranks
from attributary_explainers.models.batch import BatchModel
from attributary_explainers.typing import Importance
from benchmarks.data import Observation, numbers
from benchmarks.papers.explainers import as_batch, paper_sage
from benchmarks.papers.rows import Band, Quantity, Row, Run, Settings
from benchmarks.papers.static import Shared, compute_static, explain_static
from benchmarks.papers.streams import shuffled

ALPHAS = (0.001, 0.0005)
N_SAMPLES = 10


class _Probabilities:
    """A scikit-learn classifier's probabilities, of many rows."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def __call__(self, rows: npt.NDArray[np.float64]) -> list[dict[int, float]]:
        return [dict(enumerate(row)) for row in self.classifier.predict_proba(rows).tolist()]


class _RowByRow:
    """A river regressor's predictions; the columns are its features, in order."""

    def __init__(self, model: Any, names: Sequence[str]) -> None:
        self.model, self.names = model, names

    def __call__(self, rows: npt.NDArray[np.float64]) -> list[float]:
        return [self.model.predict_one(dict(zip(self.names, row, strict=True))) for row in rows.tolist()]


@dataclass(frozen=True)
class _Case:
    """A data set with its model: how it is trained, and which answer its loss can read."""

    file: str
    target: str
    title: str
    loss: str
    answer: Any
    train: Callable[[Sequence[Observation], Sequence[str]], Any]


def _boosting(data: Sequence[Observation], names: Sequence[str]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    classifier = HistGradientBoostingClassifier(max_iter=70, learning_rate=0.2, max_depth=15, random_state=0)
    classifier.fit(np.array([[x[name] for name in names] for x, _ in data], dtype=float), [y for _, y in data])
    return _Probabilities(classifier)


def _forest(data: Sequence[Observation], names: Sequence[str]) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    classifier = RandomForestClassifier(n_estimators=15, random_state=0)
    classifier.fit(np.array([[x[name] for name in names] for x, _ in data], dtype=float), [y for _, y in data])
    return _Probabilities(classifier)


def _incremental(
    data: Sequence[Observation], names: Sequence[str], *, make: Callable[[], Any]
) -> Callable[[npt.NDArray[np.float64]], Sequence[Any]]:
    model = make()
    for x, y in data:
        model.learn_one(x, y)
    return _RowByRow(model, names)


CASES = {
    "bank": _Case(
        "bank_marketing", "yes", "gradient boosting (70 rounds, rate .2, depth 15), cross-entropy", "cross_entropy",
        {0: 0.5, 1: 0.5}, _boosting,
    ),
    "california": _Case(
        "california_housing", "", "ARF regressor(3), squared loss", "squared", 0.0,
        partial(_incremental, make=lambda: forest.ARFRegressor(n_models=3, seed=0)),
    ),
    "adult": _Case("adult", ">50K", "random forest(15), cross-entropy", "cross_entropy", {0: 0.5, 1: 0.5}, _forest),
    "bike": _Case(
        "bike_sharing", "", "HAT regressor, squared loss", "squared", 0.0,
        partial(_incremental, make=lambda: tree.HoeffdingAdaptiveTreeRegressor(seed=0)),
    ),
}  # fmt: skip


@cache
def _trained(name: str, data: Path) -> tuple[list[Observation], tuple[str, ...], Any]:
    """Data, features and model of a case: the same in all runs, whose spread is that of orders and draws."""
    case = CASES[name]
    observations = shuffled(numbers(case.file, data, target=case.target), 0)
    names = tuple(observations[0][0])
    return observations, names, case.train(observations, names)


def distance(importance: Importance, reference: Importance) -> float:
    """Sum of the absolute differences, relative to the sum of the reference's absolute values."""
    total = sum(abs(value) for value in reference.values())
    return sum(abs(importance[name] - value) for name, value in reference.items()) / total


def static(name: str, seed: int, settings: Settings, *, n: int, n_batch: int) -> Run:
    """iSAGE over n observations in random order, batch SAGE of other n_batch, of the same static model."""
    case = CASES[name]
    observations, names, predict_many = _trained(name, settings.data)
    options: dict[str, Any] = {"names": names, "answer": case.answer}
    parameters: dict[str, Any] = {"loss": case.loss, "n_samples": N_SAMPLES, "seed": seed}
    sample = shuffled(observations, seed)[:n_batch]
    published = {**parameters, "sampling": "independent"}
    batch = compute_static(lambda model: batch_sage(model, sample, **published), predict_many, **options).importance
    stream = shuffled(observations, seed + 1)[:n]
    values: dict[str, float] = {}
    *_, both = explain_static(
        partial(_Pair, **parameters),
        predict_many, stream, **options,
    )  # fmt: skip
    for alpha, explainer in zip(ALPHAS, both.explainers, strict=True):
        found = explainer.importance
        values[f"distance to batch SAGE, alpha {alpha}"] = distance(found, batch)
        values[f"NDCG, alpha {alpha}"] = ndcg(batch, found)
        values[f"sum / batch sum, alpha {alpha}"] = sum(found.values()) / sum(batch.values())
        values[f"rank of batch SAGE's first, alpha {alpha}"] = float(ranks(found)[max(batch, key=batch.__getitem__)])
    return Run(values)


class _Pair:
    """Two explainers of one model that differ in alpha alone, run over the stream together."""

    def __init__(self, model: BatchModel, **parameters: Any) -> None:
        shared = Shared(model.predict_many)
        models = as_batch(shared.first), as_batch(shared.again)
        self.explainers = [paper_sage(one, alpha=a, **parameters) for one, a in zip(models, ALPHAS, strict=True)]

    def explain_one(self, x: Any, y: Any = None) -> Importance:
        importance: Importance = {}
        for explainer in self.explainers:
            importance = explainer.explain_one(x, y)
        return importance


def _run(seed: int, settings: Settings, *, name: str) -> Run:
    # Means over at most 1 / alpha = 2000 observations, whose weights are made to sum to 1.
    n, n_batch = (20_000, 10_000) if settings.full else (6000, 2500)
    return static(name, seed, settings, n=n, n_batch=n_batch)


def _row(name: str, case: _Case) -> Row:
    quantities = []
    for alpha in ALPHAS:
        quantities += [
            Quantity(f"distance to batch SAGE, alpha {alpha}"),
            Quantity(f"NDCG, alpha {alpha}"),
            Quantity(f"sum / batch sum, alpha {alpha}", "1"),
            Quantity(f"rank of batch SAGE's first, alpha {alpha}", "1", "", Band.limit(1, 1), "every"),
        ]
    return Row(
        name=f"isage-static-{name}",
        title=f"iSAGE Fig. 8: {name}, static {case.title}",
        quantities=tuple(quantities),
        run=partial(_run, name=name),
        n_short=3,
        n_full=10 if name == "adult" else 20,
    )


ROWS = tuple(_row(name, case) for name, case in CASES.items())
