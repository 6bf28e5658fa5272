"""What the loss does to a chart of importances: `python -m benchmarks.calibration.losses`.

Models that learn, on several streams, are explained in one pass under several losses. What is compared between losses
has no unit: losses, importances and their movements are divided by the loss of the baseline, which knows no feature.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from river import forest, linear_model, neighbors, preprocessing, tree
from river.datasets import synth

from attributary_explainers import Explainers, IncrementalPFI, IncrementalSAGE, Loss, as_loss
from benchmarks.data import Observation, elec2, numbers

ALPHA = 0.001
READ_EVERY = 50
NOISE = ("noise 1", "noise 2", "noise 3")


LOSSES: dict[str, Loss] = {
    "cross_entropy": as_loss("cross_entropy"),
    "clipped at 1e-3": as_loss("cross_entropy", epsilon=1e-3),
    "clipped at 1e-2": as_loss("cross_entropy", epsilon=1e-2),
    "brier": as_loss("brier"),
    "linear, 1 - p": Loss("linear", "probabilities", lambda y, p: 1.0 - p.get(y, 0.0), is_linear=True),
}
Explainer = IncrementalPFI | IncrementalSAGE
EXPLAINERS = ("iPFI", "iSAGE")
MODELS: dict[str, Callable[[bool], Any]] = {
    "Hoeffding adaptive tree": lambda _: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "ARF(10)": lambda _: forest.ARFClassifier(n_models=10, seed=1),
    "scaler + logistic": lambda two: (
        preprocessing.StandardScaler()
        | (linear_model.LogisticRegression() if two else linear_model.SoftmaxRegression())
    ),
    "scaler + kNN(5)": lambda _: (
        preprocessing.StandardScaler()
        | neighbors.KNNClassifier(n_neighbors=5, engine=neighbors.LazySearch(window_size=300))
    ),
}


@dataclass(frozen=True)
class Stream:
    """A stream of labels, and which of its features count a little or not at all, where that is known."""

    make: Callable[[int], Iterator[Observation]]
    weak: tuple[str, ...] = ()
    """Features that count, but less than others."""
    noise: tuple[str, ...] = NOISE
    two_classes: bool = field(default=True)


def _with_noise(stream: Iterator[Observation], seed: int) -> Iterator[Observation]:
    rng = np.random.default_rng(1000 + seed)
    for x, y in stream:
        yield {**x, **dict(zip(NOISE, rng.normal(size=3).tolist(), strict=True))}, y


def _agrawal(seed: int) -> Iterator[Observation]:
    yield from synth.Agrawal(classification_function=0, seed=seed)


def _elec2(seed: int) -> Iterator[Observation]:
    rows = ((x, y) for i, (x, y) in enumerate(elec2()) if i >= 17_500 + 4000 * seed)
    return _with_noise(rows, seed)


def _bank(seed: int) -> Iterator[Observation]:
    return _with_noise(iter(numbers("bank_marketing", target="yes")[5000 * seed :]), seed)


def _weak(seed: int) -> Iterator[Observation]:
    rng = np.random.default_rng(seed)
    while True:
        a, b, c, *others = rng.normal(size=6).tolist()
        y = bool(rng.random() < 1.0 / (1.0 + math.exp(-(1.6 * a + 0.8 * b + 0.5 * c))))
        yield {"a": a, "b": b, "c": c, **dict(zip(NOISE, others, strict=True))}, y


def _coin(seed: int) -> Iterator[Observation]:
    rng = np.random.default_rng(seed)
    while True:
        yield dict(zip(("a", "b", *NOISE), rng.normal(size=5).tolist(), strict=True)), bool(rng.random() < 0.3)


def _forty(seed: int) -> Iterator[Observation]:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(77).uniform(-4.0, 4.0, size=(40, 3)) * (1.0, 1.0, 0.4)
    while True:
        k = int(rng.integers(40))
        a, b, c = (centres[k] + 0.6 * rng.normal(size=3)).tolist()
        yield {"a": a, "b": b, "c": c, **dict(zip(NOISE, rng.normal(size=3).tolist(), strict=True))}, f"class {k}"


STREAMS: dict[str, Stream] = {
    "Agrawal 0": Stream(_agrawal, noise=("hvalue", "hyears", "car", "zipcode", "loan", "elevel")),
    "elec2": Stream(_elec2),
    "bank_marketing": Stream(_bank),
    "weak features": Stream(_weak, weak=("b", "c")),
    "labels by a coin": Stream(_coin),
    "forty classes": Stream(_forty, weak=("c",), two_classes=False),
}


@dataclass(frozen=True)
class Figures:
    """What one explainer showed in one run under one loss; NaN where the stream does not say what counts."""

    model: float
    """Loss of the model over that of the baseline."""
    top: float
    """Importance of the first feature over the loss of the baseline, at its highest."""
    jump: float
    """The largest movement of an importance by one observation, in thousandths of the loss of the baseline."""
    swapped: float
    """Percentage of the pairs of a weak feature and one of noise, over readings, in which noise stands above."""
    signal: float
    """Importance of the weakest feature that counts over its standard error, median over readings."""


COLUMNS = ("model / baseline", "top / baseline", "jump / baseline, ‰", "noise above weak, %", "weak / error")


class _Chart:
    """Reads one explainer after each observation, from the first complete window on."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.last: dict[Any, float] = {}
        self.model = self.top = self.jump = 0.0
        self.swaps: list[bool] = []
        self.signals: list[float] = []

    def read(self, n: int, explainer: Explainer, model: float, baseline: float) -> None:
        importance = explainer.importance
        for name, value in importance.items():
            self.jump = max(self.jump, abs(value - self.last.get(name, value)) / baseline)
        self.last = importance
        if n % READ_EVERY:
            return
        self.model, self.top = model / baseline, max(self.top, *(value / baseline for value in importance.values()))
        weak, noise = self.stream.weak, self.stream.noise
        self.swaps += [importance[b] >= importance[a] for a, b in itertools.product(weak, noise)]
        if weak:
            error = explainer.std_error
            self.signals.append(min(importance[name] / error[name] for name in weak))

    def figures(self) -> Figures:
        swapped, signal = math.nan, math.nan
        if self.stream.weak:
            swapped, signal = 100.0 * float(np.mean(self.swaps)), float(np.median(self.signals))
        return Figures(self.model, self.top, 1000.0 * self.jump, swapped, signal)


Key = tuple[str, str]
Results = list[tuple[tuple[str, str, int, int], dict[Key, Figures]]]


def run(task: tuple[str, str, int, int]) -> dict[Key, Figures]:
    """Explain one model on one stream under all losses; return the figures by explainer and loss."""
    stream_name, model_name, n, seed = task
    stream = STREAMS[stream_name]
    model = MODELS[model_name](stream.two_classes)
    pfis = {loss: IncrementalPFI(model, loss=LOSSES[loss], alpha=ALPHA, seed=seed) for loss in LOSSES}
    sages = {loss: IncrementalSAGE(model, loss=LOSSES[loss], alpha=ALPHA, seed=seed) for loss in LOSSES}
    made: dict[Key, Explainer] = {("iPFI", loss): pfi for loss, pfi in pfis.items()}
    made |= {("iSAGE", loss): sage for loss, sage in sages.items()}
    together = Explainers(model, {" ".join(key): explainer for key, explainer in made.items()})
    charts = {key: _Chart(stream) for key in made}
    for i, (x, y) in enumerate(itertools.islice(stream.make(seed), n), 1):
        together.explain_one(x, y)
        model.learn_one(x, y)
        for (kind, loss), explainer in made.items() if i > 1.0 / ALPHA else ():
            sage = sages[loss]
            charts[kind, loss].read(i, explainer, sage.model_loss or math.nan, sage.marginal_loss or math.nan)
    return {key: chart.figures() for key, chart in charts.items()}


def main() -> int:
    """Run every model on every stream; print the figures by model, over all streams, or with --full of each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration.losses", description=__doc__)
    parser.add_argument("--observations", type=int, default=4000, help="per run (default 4000)")
    parser.add_argument("--runs", type=int, default=2, help="seeded runs of each (default 2)")
    parser.add_argument("--stream", nargs="+", choices=list(STREAMS), default=list(STREAMS))
    parser.add_argument("--model", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--full", action="store_true", help="also a table of every stream")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    tasks = [
        (stream, model, args.observations, seed)
        for stream in args.stream
        for model in args.model
        for seed in range(args.runs)
    ]
    with ProcessPoolExecutor(args.jobs) as pool:
        found = list(track(pool.map(run, tasks), total=len(tasks), console=Console(stderr=True)))
    results = list(zip(tasks, found, strict=True))
    how = f"{args.runs} runs of {args.observations} observations, alpha {ALPHA}"
    for kind in EXPLAINERS:
        for stream in args.stream if args.full else ():
            _print(f"{kind}, {stream}: means of {how}", kind, [r for r in results if r[0][0] == stream], args.model)
    for kind in EXPLAINERS:
        _print(f"{kind}, all streams: largest, largest, largest, mean, mean; {how}", kind, results, args.model, WORST)
    return 0


MEANS: tuple[Any, ...] = (np.mean, np.mean, np.mean, np.nanmean, np.nanmean)
WORST: tuple[Any, ...] = (np.max, np.max, np.max, np.nanmean, np.nanmean)


def _print(title: str, kind: str, results: Results, models: list[str], sums: tuple[Any, ...] = MEANS) -> None:
    table = Table(title=title)
    for column in ("model", "loss", *COLUMNS):
        table.add_column(column, justify="left" if column in ("model", "loss") else "right")
    for model in models:
        for loss in LOSSES:
            found = [figures[kind, loss] for task, figures in results if task[1] == model]
            columns = np.array([(f.model, f.top, f.jump, f.swapped, f.signal) for f in found]).T
            cells = [math.nan if np.isnan(c).all() else float(of(c)) for of, c in zip(sums, columns, strict=True)]
            table.add_row(model, loss, *("" if math.isnan(cell) else f"{cell:.2f}" for cell in cells))
        table.add_section()
    Console(width=140).print(table)


if __name__ == "__main__":
    sys.exit(main())
