"""iSAGE and iPFI of a forest that learns elec2 (iSAGE, Fig. 2 left): vicprice is constant, and then it is not."""

from __future__ import annotations

from itertools import islice
from statistics import fmean
from typing import Any

from river import forest

from attributary_explainers import IncrementalPFI
from benchmarks.data import ELEC2_DRIFT, ELEC2_ROWS, elec2
from benchmarks.papers.explainers import our_sage
from benchmarks.papers.rows import Band, Quantity, Row, Run, Settings

ALPHA = 0.001
EVERY = 100


def electricity(
    seed: int, settings: Settings, *, n: int, n_models: int, n_samples: int, change: int = ELEC2_DRIFT
) -> Run:
    """Both explainers follow one model; importances of vicprice before and after the change.

    iPFI of a constant is exactly 0. iSAGE's is only about 0: where the constant comes first in the permutation it is
    credited with the step from the mean prediction, of the last 1 / alpha observations, to that over draws, of the last
    hundred. The stream's labels go together in time, so that the two differ.
    """
    model = forest.ARFClassifier(n_models=n_models, seed=seed)
    explainers: dict[str, Any] = {
        "iPFI": IncrementalPFI(model, loss="cross_entropy", alpha=ALPHA, n_samples=n_samples, seed=seed),
        "iSAGE": our_sage(model, loss="cross_entropy", alpha=ALPHA, n_samples=n_samples, seed=seed),
    }
    largest_before = dict.fromkeys(explainers, 0.0)
    positions: list[float] = []
    lines: dict[str, list[float]] = {name: [] for name in explainers}
    for t, (x, y) in enumerate(islice(elec2(settings.data), n)):
        y_pred = model.predict_proba_one(x) or None
        for name, explainer in explainers.items():
            importance = explainer.explain_one(x, y, y_pred=y_pred)
            if t < change:
                largest_before[name] = max(largest_before[name], abs(importance.get("vicprice", 0.0)))
            if t % EVERY == EVERY - 1:
                lines[name].append(importance["vicprice"])
        if t % EVERY == EVERY - 1:
            positions.append(t + 1)
        model.learn_one(x, y)
    values: dict[str, float] = {}
    for name, explainer in explainers.items():
        after = [value for t, value in zip(positions, lines[name], strict=True) if t > change]
        values[f"{name} vicprice, largest before"] = largest_before[name]
        values[f"{name} vicprice, mean after"] = fmean(after)
        before = [value for t, value in zip(positions, lines[name], strict=True) if t <= change]
        values[f"{name} vicprice, |mean before| / mean after"] = abs(fmean(before)) / fmean(after)
        values[f"{name} vicprice, last"] = explainer.importance["vicprice"]
    return Run(values)


def _run(seed: int, settings: Settings) -> Run:
    if settings.full:
        return electricity(seed, settings, n=ELEC2_ROWS, n_models=10, n_samples=10)
    return electricity(seed, settings, n=26_000, n_models=10, n_samples=2)


ROWS = (
    Row(
        name="isage-elec2",
        title="iSAGE Fig. 2 (left): elec2, ARF(10), vicprice constant before row 17 424",
        quantities=(
            Quantity("iPFI vicprice, largest before", "0", "", Band.limit(0, 0), "every"),
            Quantity("iSAGE vicprice, |mean before| / mean after", "0", "", Band.limit(0, 0.2), "every"),
            Quantity("iSAGE vicprice, largest before"),
            Quantity("iPFI vicprice, mean after", "> 0", "", Band.limit(1e-3), "every"),
            Quantity("iSAGE vicprice, mean after", "> 0", "", Band.limit(1e-3), "every"),
            Quantity("iPFI vicprice, last"),
            Quantity("iSAGE vicprice, last"),
        ),
        run=_run,
        n_short=1,
        n_full=3,
    ),
)
