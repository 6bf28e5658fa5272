"""iPFI under feature-drift (Table 3, Fig. 7): elec2 with two features swapped, uniform against geometric sampling."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from statistics import fmean, median
from typing import Any

from river import forest

from attributary_explainers import IntervalPFI
from benchmarks.data import elec2
from benchmarks.papers.explainers import average, realisations
from benchmarks.papers.ipfi.approximation import ALPHA, RESERVOIRS, error, normalised
from benchmarks.papers.rows import Band, Quantity, Row, Run, Settings
from benchmarks.papers.streams import swap_features

DRIFT = 20_000
IMPORTANT, OTHER = "nswprice", "nswdemand"
"""The most important feature, and the one that has its values after the drift: `OTHER` is the swapped feature then."""
INTERVAL = 1000


def swapped(seed: int, settings: Settings, *, n: int, n_models: int, n_draws: int, drift: int = DRIFT) -> Run:
    """One model, learnt along the stream; both samplings and interval PFI explain it at the same time.

    Every interval gives an error: that of the smoothed importance, just then, against batch PFI of the interval.
    Summed, it is that of normalised importances, as in the paper. On the swapped feature alone, what is judged is the
    bias, the mean over the intervals after the drift, in the unit of the loss. The errors of single intervals are
    mostly those of the lag and of the interval itself, which both samplings share; and what old rows add to the
    importance of all features drops out of shares.
    """
    model = forest.ARFClassifier(n_models=n_models, seed=seed)
    explainers = {
        name: realisations(model, alpha=ALPHA, n=n_draws, loss="zero_one", seed=seed, reservoir=reservoir)
        for name, reservoir in RESERVOIRS.items()
    }
    interval = IntervalPFI(model, interval=INTERVAL, loss="zero_one", n_permutations=n_draws, seed=seed)
    errors: dict[str, list[float]] = {name: [] for name in explainers}
    swapped_errors: dict[str, list[float]] = {name: [] for name in explainers}
    shares: dict[str, list[float]] = {name: [] for name in explainers}
    stream: Iterator[tuple[Any, Any]] = islice(swap_features(elec2(settings.data), IMPORTANT, OTHER, after=drift), n)
    for t, (x, y) in enumerate(stream, 1):
        y_pred = {model.predict_one(x): 1.0} if t > 1 else None
        for group in explainers.values():
            for explainer in group:
                explainer.explain_one(x, y, y_pred=y_pred)
        reference = interval.update(x, y)
        model.learn_one(x, y)
        if reference is None:
            continue
        for name, group in explainers.items() if t > drift else ():
            importance = average(group, raw=True)
            errors[name].append(error(importance, reference.importance))
            swapped_errors[name].append(importance[OTHER] - reference.importance[OTHER])
            shares[name].append(abs(normalised(importance)[OTHER] - normalised(reference.importance)[OTHER]))
    values = {f"{name}, summed": median(found) for name, found in errors.items()}
    values |= {f"{name}, bias on {OTHER}": abs(fmean(found)) for name, found in swapped_errors.items()}
    values |= {f"{name}, error on {OTHER}": median(map(abs, found)) for name, found in swapped_errors.items()}
    values |= {f"{name}, error of {OTHER}'s share": median(found) for name, found in shares.items()}
    values["bias, geometric / uniform"] = values[f"geometric, bias on {OTHER}"] / values[f"uniform, bias on {OTHER}"]
    return Run(values)


def _run(seed: int, settings: Settings) -> Run:
    if settings.full:
        return swapped(seed, settings, n=45_312, n_models=50, n_draws=10)
    return swapped(seed, settings, n=45_312, n_models=10, n_draws=1)


ROWS = (
    Row(
        name="ipfi-drift",
        title="iPFI Table 3 and Fig. 7: elec2, nswprice swapped with nswdemand after 20 000, ARF, error after drift",
        quantities=(
            Quantity("uniform, summed", ".353", ".340"),
            Quantity("geometric, summed", ".037", ".234"),
            Quantity(f"uniform, bias on {OTHER}", "", ".133"),
            Quantity(f"geometric, bias on {OTHER}", "", ".027"),
            Quantity("bias, geometric / uniform", "", ".20", Band.limit(0, 0.5), "every"),
            *(
                Quantity(f"{name}, {error_of}")
                for error_of in (f"error on {OTHER}", f"error of {OTHER}'s share")
                for name in RESERVOIRS
            ),
        ),
        run=_run,
        n_short=1,
        n_full=3,
    ),
)
