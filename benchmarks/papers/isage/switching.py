"""iSAGE against SW-SAGE where the truth is known (iSAGE, Table 2 and Fig. 9): pre-trained models that are switched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from river import forest

from attributary_explainers import SlidingWindowSAGE, batch_sage
from attributary_explainers.typing import Features
from benchmarks.papers.explainers import as_batch, our_sage, paper_sage
from benchmarks.papers.rows import Band, Quantity, Row, Run, Settings
from benchmarks.papers.static import Shared
from benchmarks.papers.streams import AGRAWAL, agrawal, switching

LOSS = "cross_entropy"
WINDOWS = (500, 1000)
PROBABILITIES = {"high": 0.0005, "middle": 0.0002, "low": 0.0001}
FUNCTIONS = range(6)

PAPER_MSE: Mapping[str, Mapping[int, tuple[str, str]]] = {
    "high": {500: (".034", ".283"), 1000: (".038", ".462")},
    "middle": {500: (".027", ".183"), 1000: (".027", ".399")},
    "low": {500: (".015", ".061"), 1000: (".013", ".080")},
}
"""iSAGE and SW-SAGE with as many evaluations (inc_1 and SW_1)."""
PAPER_RATIO: Mapping[str, Mapping[int, str]] = {
    "high": {500: "8.3 (SW_10 7.4)", 1000: "12.2 (SW_10 11.1)"},
    "middle": {500: "6.8 (SW_10 7.0)", 1000: "14.8 (SW_10 12.0)"},
    "low": {500: "4.1 (SW_10 3.3)", 1000: "6.2 (SW_10 6.2)"},
}
INDEPENDENT: Mapping[str, Mapping[int, str]] = {
    "high": {500: "7.6", 1000: "9.3"},
    "middle": {500: "6.3", 1000: "8.7"},
    "low": {500: "3.1", 1000: "4.0"},
}

VARIANTS = {
    "iSAGE m 1": (paper_sage, 1),
    "iSAGE m 10": (paper_sage, 10),
    "ours m 2": (our_sage, 2),
    "ours m 10": (our_sage, 10),
}


class CurrentModel:
    """The model of the concept that the stream is in."""

    def __init__(self, models: Sequence[Any]) -> None:
        self.models, self.current = models, 0

    def predict(self, x: Features) -> dict[Any, float]:
        """Probabilities of one row."""
        found: dict[Any, float] = self.models[self.current].predict_proba_one(x)
        return found

    def predict_many(self, rows: Sequence[Features]) -> list[dict[Any, float]]:
        """Probabilities of every row."""
        return [self.predict(row) for row in rows]


def train(seed: int, n: int) -> list[Any]:
    """A forest of three trees for each of the first six functions."""
    models = []
    for function in FUNCTIONS:
        model = forest.ARFClassifier(n_models=3, seed=seed + function)
        for x, y in islice(agrawal(function, seed + function), n):
            model.learn_one(x, y)
        models.append(model)
    return models


def truths(models: Sequence[Any], seed: int, n: int) -> npt.NDArray[np.float64]:
    """SAGE values per model by the SAGE estimator with m = 10, on data of its own; shape (models, features)."""
    values = []
    for function, model in enumerate(models):
        data = list(islice(agrawal(function, seed + 100 + function), n))
        importance = batch_sage(model, data, loss=LOSS, n_samples=10, sampling="independent", seed=seed).importance
        values.append([importance[name] for name in AGRAWAL])
    return np.array(values)


def approximation(
    seed: int, probability: float, *, n: int, n_train: int, n_truth: int, windows: Sequence[int] = WINDOWS
) -> Run:
    """One run of Table 2: squared errors, summed over the features, mean over the stream from the largest window on."""
    models = train(seed, n_train)
    truth = truths(models, seed, n_truth)
    model = CurrentModel(models)
    explainers: dict[tuple[str, int], Any] = {}
    for name, (make, n_samples) in VARIANTS.items():
        shared = Shared(model.predict_many)
        for window in windows:
            batch = as_batch(shared.first if window == windows[0] else shared.again)
            parameters = {"loss": LOSS, "alpha": 2 / (window + 1), "n_samples": n_samples, "seed": seed}
            explainers[name, window] = make(batch, **parameters)
    for n_samples in (1, 10):
        for window in windows:
            explainers[f"SW m {n_samples}", window] = SlidingWindowSAGE(
                model.predict, window=window, stride=window, loss=LOSS, n_samples=n_samples, seed=seed
            )
    squares: dict[tuple[str, int], list[float]] = {key: [] for key in explainers}
    streams = [agrawal(function, seed + 200 + function) for function in FUNCTIONS]
    for t, (concept, x, y) in enumerate(switching(streams, probability=probability, n=n, seed=seed), 1):
        model.current = concept
        y_pred = model.predict(x)
        for key, explainer in explainers.items():
            importance = explainer.explain_one(x, y, y_pred=y_pred)
            if t > max(windows):
                error = np.array([importance[name] for name in AGRAWAL]) - truth[concept]
                squares[key].append(float(error @ error))
    mse = {key: float(np.mean(values)) for key, values in squares.items()}
    values = {f"MSE {name}, w {window}": value for (name, window), value in mse.items()}
    for name in VARIANTS:
        batch_m = "SW m 1" if name == "iSAGE m 1" else "SW m 10"
        for window in windows:
            values[f"ratio {batch_m} / {name}, w {window}"] = mse[batch_m, window] / mse[name, window]
    return Run(values)


def _run(seed: int, settings: Settings, *, probability: float) -> Run:
    # Errors are means over time: a shorter stream is noisier and expects the same. The band is for high frequency.
    n, n_truth = 6000, 4000 if probability == PROBABILITIES["high"] else 2500
    if settings.full:
        n, n_truth = 20_000, 10_000
    return approximation(seed, probability, n=n, n_train=20_000, n_truth=n_truth)


def _row(scenario: str, probability: float, n_short: int) -> Row:
    quantities = []
    for window in WINDOWS:
        band = Band.limit(3) if scenario == "high" else None
        ratio = PAPER_RATIO[scenario][window], INDEPENDENT[scenario][window]
        inc, sliding = PAPER_MSE[scenario][window]
        quantities += [
            Quantity(f"ratio SW m 10 / iSAGE m 10, w {window}", *ratio, band),
            Quantity(f"ratio SW m 1 / iSAGE m 1, w {window}", PAPER_RATIO[scenario][window], "0.8 to 1.0"),
            Quantity(f"ratio SW m 10 / ours m 2, w {window}"),
            Quantity(f"ratio SW m 10 / ours m 10, w {window}"),
            Quantity(f"MSE iSAGE m 10, w {window}", inc),
            Quantity(f"MSE iSAGE m 1, w {window}", inc),
            Quantity(f"MSE ours m 2, w {window}"),
            Quantity(f"MSE ours m 10, w {window}"),
            Quantity(f"MSE SW m 10, w {window}", sliding),
        ]
    return Row(
        name=f"isage-2-{scenario}",
        title=f"iSAGE Table 2 and Fig. 9, {scenario} frequency: six ARF(3), cross-entropy, SW-SAGE of equal cost",
        quantities=tuple(quantities),
        run=partial(_run, probability=probability),
        n_short=n_short,
        n_full=20,
    )


ROWS = tuple(_row(name, probability, 2 if name == "high" else 1) for name, probability in PROBABILITIES.items())
