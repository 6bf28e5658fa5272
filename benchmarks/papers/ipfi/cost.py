"""What iPFI costs (iPFI, section 4.1): run time with explanation over run time without, by number of features."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from river import forest
from river.datasets import synth

from attributary_explainers import IncrementalPFI
from benchmarks.data import Observation, elec2, numbers
from benchmarks.papers.rows import Quantity, Row, Run, Settings
from benchmarks.papers.streams import agrawal


def streams(seed: int, settings: Settings) -> dict[str, Iterable[Observation]]:
    """Streams of 3 to 30 features, all learnt by the same kind of model; adult, ozone and insects are not there."""
    return {
        "stagger": iter(synth.STAGGER(classification_function=0, seed=seed)),
        "elec2": elec2(settings.data),
        "agrawal": agrawal(1, seed),
        "bank": numbers("bank_marketing", settings.data, target="yes"),
        "rbf": iter(synth.RandomRBF(seed_model=seed, seed_sample=seed, n_classes=2, n_features=30, n_centroids=50)),
    }


def processor_s(data: Sequence[tuple[Any, Any]], seed: int, *, n_models: int, n_samples: int) -> float:
    """Processor time of predict, explain (unless n_samples is 0) and learn over the data."""
    model = forest.ARFClassifier(n_models=n_models, seed=seed)
    explainer = IncrementalPFI(model, loss="zero_one", n_samples=n_samples, seed=seed) if n_samples else None
    start = time.process_time()
    for x, y in data:
        y_pred = model.predict_one(x)
        if explainer:
            explainer.explain_one(x, y, y_pred=None if y_pred is None else {y_pred: 1.0})
        model.learn_one(x, y)
    return time.process_time() - start


def cost(seed: int, settings: Settings, *, n: int = 1500, n_models: int = 10) -> Run:
    """The ratio at one draw on every stream, the line through them, and the ratio at ten draws on Agrawal."""
    ratios: dict[int, float] = {}
    values: dict[str, float] = {}
    for name, stream in streams(seed, settings).items():
        data = list(islice(stream, n))
        plain = processor_s(data, seed, n_models=n_models, n_samples=0)
        d = len(data[0][0])
        ratios[d] = processor_s(data, seed, n_models=n_models, n_samples=1) / plain
        values[f"ratio {name}, d {d}"] = ratios[d]
        if name == "agrawal":
            ten = processor_s(data, seed, n_models=n_models, n_samples=10)
            values["ratio agrawal, ten draws"] = ten / plain
    features, found = np.array(list(ratios), dtype=float), np.array(list(ratios.values()))
    slope, intercept = np.polyfit(features, found, 1)
    residual = found - (slope * features + intercept)
    values["slope per feature"] = float(slope)
    values["R^2 of the line"] = 1.0 - float(residual @ residual) / float(((found - found.mean()) ** 2).sum())
    return Run(values)


ROWS = (
    Row(
        name="ipfi-cost",
        title="iPFI, time complexity: ARF(10), processor time explained / unexplained (iXAI 0.1.3 as independent)",
        quantities=(
            Quantity("slope per feature", ".104", "iXAI .17"),
            Quantity("R^2 of the line", ".966"),
            Quantity("ratio stagger, d 3"),
            Quantity("ratio elec2, d 8"),
            Quantity("ratio agrawal, d 9", "", "iXAI 2.5"),
            Quantity("ratio bank, d 16"),
            Quantity("ratio rbf, d 30", "", "iXAI 4.6"),
            Quantity("ratio agrawal, ten draws", "", "iXAI 11.7"),
        ),
        run=lambda seed, settings: cost(seed, settings),
        n_short=1,
        n_full=10,
    ),
)
