"""What a `Monitor` costs a service, beside its model alone.

    python -m benchmarks.monitor                     # a minute
    python -m benchmarks.monitor --observations 500  # some seconds

Agrawal's credit data, nine features of which three are texts. *Alone* is what the service does without a monitor: it
asks its model and, where that learns, teaches it. *Answer* is `predict` with an id and `label`, as whoever brings a
request waits for them; *all* is that with everything behind it: scored, explained by iPFI and learnt, changes looked
for. Both are side by side, observation by observation, so that a busy machine bends both alike; times are of the
processor, and the ratio is to the model alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from river import forest, linear_model, preprocessing, tree
from river.datasets import synth

from attributary_explainers import Monitor

out = Console(width=110)

MODELS: dict[str, tuple[Callable[[], Any], bool]] = {
    "Hoeffding tree, learns": (lambda: tree.HoeffdingTreeClassifier(grace_period=50), True),
    "forest of 10 trees, learns": (lambda: forest.ARFClassifier(n_models=10, seed=1), True),
    "forest of 10 trees, as it is": (lambda: forest.ARFClassifier(n_models=10, seed=1), False),
    "logistic regression, learns": (lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(), True),
}


@dataclass(frozen=True)
class Cost:
    """Microseconds of an observation: the model alone, what a request waits for, and all."""

    alone_us: float
    answer_us: float
    all_us: float


def cost(make: Callable[[], Any], learns: bool, n: int, every: int) -> Cost:
    """Measure a model, by itself and watched by a monitor, on the same observations in turns."""
    alone, model = make(), make()
    data = list(synth.Agrawal(seed=5).take(n + n // 2))
    for x, y in data[: n // 2]:
        alone.learn_one(x, y)
        model.learn_one(x, y)
    monitor = Monitor(max_waiting=10 * n).add("m", model, learn=learns, explain_every=every)
    background = monitor._intake.background
    assert background is not None
    background.close()  # so that what is behind an answer is measured by itself
    spent = [0.0, 0.0, 0.0]
    for number, (x, y) in enumerate(data[n // 2 :]):
        began = time.process_time()
        alone.predict_proba_one(x)
        if learns:
            alone.learn_one(x, y)
        asked = time.process_time()
        monitor.predict("m", x, id=number)
        monitor.label("m", number, y)
        answered = time.process_time()
        monitor.flush()
        done = time.process_time()
        for place, took in enumerate((asked - began, answered - asked, done - asked)):
            spent[place] += took
    return Cost(*(1e6 * seconds / n for seconds in spent))


def main() -> None:
    """Print what each model costs, alone and watched."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", type=int, default=3000)
    given = parser.parse_args()
    table = Table(
        "model", "explained", "alone", "answer", "ratio", "all", "ratio", title="microseconds of an observation"
    )
    for name, (make, learns) in MODELS.items():
        for every in (1, 10):
            found = cost(make, learns, given.observations, every)
            explained = "each" if every == 1 else f"one in {every}"
            answer, whole = found.answer_us / found.alone_us, found.all_us / found.alone_us
            figures = found.alone_us, found.answer_us, answer, found.all_us, whole
            table.add_row(name, explained, *(f"{one:.3g}" for one in figures))
    out.print(table)


if __name__ == "__main__":
    main()
