"""Models that learn: how soon an abrupt change is told, beside River's detectors on the same errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from river import drift, forest, linear_model, optim, preprocessing, tree
from scipy.special import expit

from attributary_explainers import LossMonitor
from benchmarks.harm.feeding import Map, Row, Shift, summed

N, AT = 12_000, 6000
NAMES = tuple("abcdef")
MODELS: dict[str, Callable[[int], Any]] = {
    "logistic": lambda seed: preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.03)),
    "HAT": lambda seed: tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
    "ARF(3)": lambda seed: forest.ARFClassifier(n_models=3, seed=seed),
}
CHANGES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "another column decides": ((5.0, -3.5, 2.5, 0.0, 0.0, 0.0), (0.0, -3.5, 2.5, 5.0, 0.0, 0.0)),
    "a sign turned": ((4.0, 3.5, -2.0, 1.5, 0.0, 0.0), (4.0, -3.5, -2.0, 1.5, 0.0, 0.0)),
    "none": ((4.5, -3.0, 2.0, 1.0, 0.0, 0.0), (4.5, -3.0, 2.0, 1.0, 0.0, 0.0)),
}
"""Weights of the rule before and after."""


class Learnt(NamedTuple):
    """What was told of one stream of 12 000 rows, which changes at 6000 or not; observations from 1."""

    model: str
    change: str
    monitor: tuple[Shift, ...]
    ddm: tuple[int, ...]
    adwin: tuple[int, ...]


def stream(change: str, seed: int) -> tuple[Any, Any]:
    """Inputs (12 000, 6), uniform and skewed, and labels by a logistic rule that is another one from 6000 on."""
    rng = np.random.default_rng([78, seed, list(CHANGES).index(change)])
    x = rng.uniform(-1, 1, size=(N, len(NAMES)))
    x[:, 2] = rng.gamma(2.0, size=N) / 2.0 - 1.0
    before, after = (x @ np.array(w) for w in CHANGES[change])
    return x, rng.random(N) < expit(2.0 * np.where(np.arange(N) < AT, before, after))


def run_learnt(model_name: str, change: str, seed: int) -> Learnt:
    """Predict, learn, look; the detectors get the errors, and ADWIN counts where they went up."""
    model = MODELS[model_name](seed)
    monitor = LossMonitor(model, seed=seed)
    ddm: Any = drift.binary.DDM()
    adwin: Any = drift.ADWIN()  # type: ignore[no-untyped-call]
    events: list[Any] = []
    by_ddm, by_adwin = [], []
    x, y = stream(change, seed)
    for number, (row, label) in enumerate(zip(x.tolist(), y.tolist(), strict=True), start=1):
        features = dict(zip(NAMES, row, strict=True))
        y_pred = model.predict_proba_one(features)
        model.learn_one(features, label)
        events += monitor.update(features, label, y_pred)
        wrong = int(not y_pred or max(y_pred, key=lambda k: y_pred[k]) != label)
        ddm.update(wrong)
        if ddm.drift_detected:
            by_ddm.append(number)
        usual = adwin.estimation
        adwin.update(wrong)
        if adwin.drift_detected and adwin.estimation > usual:
            by_adwin.append(number)
    return Learnt(model_name, change, tuple(summed(events).shifts), tuple(by_ddm), tuple(by_adwin))


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Delays side by side, and events where nothing happened."""
    for model in MODELS:
        runs = (4 if model == "ARF(3)" else 10) if full else 2
        found: list[Learnt] = of(
            run_learnt, [(model, change, seed) for change in CHANGES for seed in range(1, 1 + runs)]
        )
        changed = [f for f in found if f.change != "none"]
        delays = {
            "monitor": [_first([s.observation for s in f.monitor]) for f in changed],
            "DDM": [_first(f.ddm) for f in changed],
            "ADWIN": [_first(f.adwin) for f in changed],
        }
        text = "; ".join(
            f"{name} {median(d):.0f} (told {sum(map(math.isfinite, d)) / len(d):.2f})" for name, d in delays.items()
        )
        yield Row(f"{model} that learns, abrupt change, {len(changed)} trials: rows, median", text, "no later")
        still = [f for f in found if f.change == "none"]
        before = [s for f in still for s in f.monitor] + [s for f in changed for s in f.monitor if s.observation <= AT]
        split, false = [s for s in before if s.split], [s for s in before if not s.split]
        rows_seen = N * len(still) + AT * len(changed)
        others = ", ".join(
            f"{name} {N / rows_seen * sum(len(_false(f, name)) for f in found):.2f}" for name in ("ddm", "adwin")
        )
        kinds = ", ".join(f"{kind} {count}" for kind, count in Counter(s.final for s in false).most_common())
        yield Row(
            f"… events without change per 12 000 rows, {rows_seen} rows",
            f"{N * len(false) / rows_seen:.2f}, and {N * len(split) / rows_seen:.2f} said to follow a split "
            f"({kinds + '; ' if kinds else ''}{others})",
            "≤ .1",
        )
        lines += [
            f"{f.model:8} {f.change:24} "
            + (
                ", ".join(f"{s.final} by {s.signal} at {s.observation}{' (split)' * s.split}" for s in f.monitor)
                or "nothing"
            )
            + f" | DDM {list(f.ddm)} | ADWIN {list(f.adwin)}"
            for f in found
        ]


def _first(told: Any) -> float:
    return min((n - AT for n in told if n > AT), default=math.inf)


def _false(f: Learnt, name: str) -> list[int]:
    return [n for n in getattr(f, name) if f.change == "none" or n <= AT]
