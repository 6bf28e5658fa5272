"""What is told of streams with a known truth: false words, drifts found and named, and versions, as a table.

    python -m benchmarks.change.told                    # a few runs of each row
    python -m benchmarks.change.told --full             # as many as the goals ask for: some hours of processor time
    python -m benchmarks.change.told --rows scales agrawal

Defaults of `ChangeExplainer` throughout. None of the populations is one that a threshold was chosen on. Results depend
on the seeds, not on `--processes`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
from river import forest, linear_model, neighbors, optim, preprocessing, tree
from river.datasets import synth

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation
from benchmarks.change.routes import routes
from benchmarks.data import Observation

SCALES = (0.01, 1.0, 1e3, 1e6)

WITHOUT_CHANGE: dict[str, Callable[[int], Any]] = {
    "sine": lambda seed: synth.Sine(0, seed=seed),
    "sine with noise": lambda seed: synth.Sine(2, seed=seed, has_noise=True),
    "mixed": lambda seed: synth.Mixed(0, seed=seed),
    "waveform": lambda seed: synth.Waveform(seed=seed),
    "led": lambda seed: synth.LED(seed=seed, noise_percentage=0.1, irrelevant_features=True),
    "random tree": lambda seed: synth.RandomTree(seed_tree=seed, seed_sample=seed),
    "hyperplane": lambda seed: synth.Hyperplane(seed=seed, n_features=8, noise_percentage=0.05),
    "agrawal 4": lambda seed: synth.Agrawal(4, seed=seed, perturbation=0.1),
    "agrawal 7": lambda seed: synth.Agrawal(7, seed=seed),
    "agrawal 9": lambda seed: synth.Agrawal(9, seed=seed),
}
"""Populations that do not change, by name."""

MODELS: dict[str, Callable[[int], Any]] = {
    "HAT": lambda seed: tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
    "ARF(3)": lambda seed: forest.ARFClassifier(n_models=3, seed=seed),
}


@dataclass
class Told:
    """What was told of one stream."""

    n: int
    alarms: list[int] = field(default_factory=list)
    drifts: list[tuple[int, int | None, tuple[str, ...]]] = field(default_factory=list)
    """Observation, onset and features of each."""
    matured: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    degraded: list[int] = field(default_factory=list)


def tell(model: Any, stream: Iterable[Observation], seed: int, importances: Sequence[str] = ()) -> Told:
    """Predict, learn, look for changes."""
    change = ChangeExplainer(model, importances=importances, seed=seed)
    predict = getattr(model, "predict_proba_one", None) or model.predict_one
    told = Told(0)
    for told.n, (x, y) in enumerate(stream, start=1):
        y_pred = predict(x)
        model.learn_one(x, y)
        for event in (*change.update(x, y, y_pred), *change.finish()):
            if isinstance(event, Alarm):
                told.alarms.append(event.n_observations)
            elif isinstance(event, ChangeExplanation):
                _add(told, event)
    return told


def _add(told: Told, event: ChangeExplanation) -> None:
    named = tuple(map(str, event.significant()))
    if event.is_drift:
        told.drifts.append((event.n_observations, event.onset.observation if event.onset else None, named))
    elif event.verdict == "matured":
        told.matured.append((event.n_observations, named))
    else:
        told.degraded.append(event.n_observations)


def linear() -> Any:
    """A linear regression that learns at any scale of the targets."""
    regressor = linear_model.LinearRegression(optimizer=optim.SGD(0.01), intercept_lr=0.01)
    model: Any = preprocessing.StandardScaler() | regressor
    return preprocessing.TargetStandardScaler(model)


def skewed(n: int, seed: int, scale: float, change_at: int | None = None) -> Iterator[Observation]:
    """Five inputs, two of them skewed, Laplace noise; the first coefficient is reversed from an observation on."""
    rng = np.random.default_rng(seed)
    xs = np.column_stack((rng.normal(size=(n, 3)), rng.gamma(2.0, size=(n, 2))))
    coefficients = np.array([2.0, -1.0, 0.5, 0.7, 0.0])
    noise = rng.laplace(scale=0.85, size=n)
    for t in range(n):
        sign = -1.0 if change_at is not None and t >= change_at else 1.0
        y = float(xs[t] @ (coefficients * [sign, 1, 1, 1, 1]) + noise[t])
        yield {f"x{i}": float(v) for i, v in enumerate(xs[t])}, scale * y


# ---------------------------------------------------------------- runs, each in a process


def run_stationary(seed: int, *, scale: float, n: int) -> Told:
    """A regression that has settled."""
    return tell(linear(), skewed(n, seed, scale), seed)


def run_reversed(seed: int, *, scale: float) -> Told:
    """A regression whose first coefficient is reversed at 5000."""
    return tell(linear(), skewed(8000, seed, scale, 5000), seed, ("pfi",))


def run_without(seed: int, *, model: str, stream: str, n: int) -> Told:
    """A classifier that still learns, on a population that does not change."""
    return tell(MODELS[model](seed), WITHOUT_CHANGE[stream](seed).take(n), seed)


def run_agrawal(seed: int, *, model: str) -> Told:
    """Agrawal, function 1 (age, salary) to function 2 (age, elevel) at 5000."""
    stream = chain(synth.Agrawal(1, seed=seed).take(5000), synth.Agrawal(2, seed=seed + 1000).take(15_000))
    return tell(MODELS[model](seed), stream, seed, ("pfi",))


VERSIONS: dict[str, Callable[[int], Any]] = {
    "forest 3": lambda seed: forest.ARFClassifier(n_models=3, seed=seed),
    "forest 10": lambda seed: forest.ARFClassifier(n_models=10, seed=seed),
    "kNN": lambda seed: neighbors.KNNClassifier(3, engine=neighbors.LazySearch(window_size=500)),
}


def halves(n: int, seed: int, lost: bool = False) -> Iterator[Observation]:
    """a - b > 0.2 c, uniform inputs, 12 % of the labels flipped; where `lost`, b is noise."""
    rng = np.random.default_rng(seed)
    xs, flips, other = rng.uniform(-1, 1, size=(n, 5)), rng.random(n) < 0.12, rng.uniform(-1, 1, size=n)
    for row, flip, noise in zip(xs, flips, other, strict=True):
        y = bool(row[0] - row[1] > 0.2 * row[2]) ^ bool(flip)
        yield {**dict(zip("abcde", row.tolist(), strict=True)), **({"b": float(noise)} if lost else {})}, y


def run_versions(seed: int, *, model: str, lost: bool) -> list[str]:
    """The features in which a new version is called different, after 1000 rows taught to each of the two."""
    old, new = VERSIONS[model](seed), VERSIONS[model](seed + 500)
    for x, y in halves(1000, 2 * seed + 1):
        old.learn_one(x, y)
    for x, y in halves(1000, 2 * seed + 2, lost):
        new.learn_one(x, y)
    change = ChangeExplainer(old, seed=seed)
    change.new_version(new, "2")
    for x, y in halves(1100, seed + 10_000):
        y_pred = new.predict_proba_one(x)
        new.learn_one(x, y)
        for event in (*change.update(x, y, y_pred), *change.finish()):
            if isinstance(event, ChangeExplanation) and event.route == "version":
                return list(map(str, event.significant()))
    raise RuntimeError("the versions have not been compared")


# ---------------------------------------------------------------- rows of the table

Row = tuple[str, str, str]
Map = Callable[[Callable[[int], Any], Iterable[int]], list[Any]]


def scales(of: Map, full: bool) -> Iterator[Row]:
    """Stationary regressions, and reversed coefficients."""
    runs, n = (5, 100_000) if full else (1, 50_000)
    told = [t for scale in SCALES for t in of(partial(run_stationary, scale=scale, n=n), range(runs))]
    total = sum(t.n for t in told)
    rate = 1e5 / total
    yield (
        "stationary regression, scales .01 to 10⁶: events of drift per 100 000 observations",
        f"{rate * sum(len(t.drifts) for t in told):.2f} ({rate * sum(len(t.alarms) for t in told):.1f} alarms)",
        "≤ 1 (≤ 30)",
    )
    runs = 20 if full else 5
    for scale in SCALES:
        told = of(partial(run_reversed, scale=scale), range(100, 100 + runs))
        found = [t for t in told if len(t.drifts) == 1 and t.drifts[0][0] > 5000]
        errors = [abs((t.drifts[0][1] or 0) - 5001) for t in found]
        off = f"onset off by {median(errors):.0f} (median)" if errors else ""
        yield f"a reversed coefficient at scale {scale:g}, found once", f"{len(found)} of {runs}; {off}", f"{runs}"


def without_change(of: Map, full: bool) -> Iterator[Row]:
    """Models that learn, on streams without change."""
    runs, n = (3, 20_000) if full else (1, 10_000)
    for model in MODELS:
        told = [
            t
            for stream in WITHOUT_CHANGE
            for t in of(partial(run_without, model=model, stream=stream, n=n), range(1, 1 + runs))
        ]
        false = sum(bool(t.drifts) for t in told)
        alarms = 1e5 * sum(len(t.alarms) for t in told) / sum(t.n for t in told)
        more = f"matured {sum(len(t.matured) for t in told)}, degraded {sum(len(t.degraded) for t in told)}"
        yield (
            f"{model} that still learns, {len(told)} streams of {n} without change: streams with a drift",
            f"{false} ({alarms:.0f} alarms per 100 000; {more})",
            "≤ 1 in 20 (≤ 30)",
        )


def agrawal(of: Map, full: bool) -> Iterator[Row]:
    """One drift, and what is told of it."""
    runs = 20 if full else 4
    for model in MODELS:
        told = of(partial(run_agrawal, model=model), range(1, 1 + runs))
        right = [t for t in told if _is_right(t)]
        delays = [min((a for a in t.alarms if a > 5000), default=20_000) - 5000 for t in told]
        errors = [abs((t.drifts[0][1] or 0) - 5001) for t in told if t.drifts]
        yield (
            f"Agrawal 1 → 2 at 5000, {model}: one drift, at most one matured after it, elevel named",
            f"{len(right)} of {runs}",
            "19 of 20",
        )
        yield (
            "… alarm after so many observations, median; the onset is off by",
            f"{median(delays):.0f}; {median(errors):.0f}" if errors else f"{median(delays):.0f}",
            "≤ 200; ≤ 50",
        )


def _is_right(told: Told) -> bool:
    after = [n for n, _ in told.matured if told.drifts and n > told.drifts[0][0]]
    named = {name for _, _, names in told.drifts for name in names} | {f for _, names in told.matured for f in names}
    return len(told.drifts) == 1 and told.drifts[0][0] > 5000 and len(after) <= 1 and "elevel" in named


def versions(of: Map, full: bool) -> Iterator[Row]:
    """Two versions, equally good, or one that has lost a feature."""
    runs = 200 if full else 10
    for model in VERSIONS:
        named = of(partial(run_versions, model=model, lost=False), range(1, 1 + runs))
        yield f"equal versions, {model}: runs that name a feature", f"{sum(map(bool, named))} of {runs}", "≤ 5 %"
        lost = of(partial(run_versions, model=model, lost=True), range(1, 1 + runs))
        yield "… feature b is lost: runs that name it", f"{sum('b' in of for of in lost)} of {runs}", "≥ 90 %"


ROWS = {"scales": scales, "without": without_change, "agrawal": agrawal, "versions": versions, "routes": routes}


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print the table row by row."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.change.told",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help="default: all")
    parser.add_argument("--full", action="store_true", help="as many runs as the goals ask for")
    parser.add_argument("--processes", type=int, default=2, help="default 2")
    args = parser.parse_args(argv)
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        print("| what | found | goal |\n| --- | --- | --- |", flush=True)
        for name in args.rows:
            for what, found, goal in ROWS[name](lambda run, seeds: list(pool.map(run, seeds)), args.full):
                print(f"| {what} | {found} | {goal} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
