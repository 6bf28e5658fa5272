"""An accident rather than an attack: a text now and then among the numbers of a feature."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.hostile.lab import Found, attack

from ..lab import LOGISTIC, Lab
from .growth import EXAMPLE, PER_ROUND, Stream, Value, metric

LEAST_RATE = 1 / 1.5
EVERY = 20
"""Of so many observations one has the text."""
N_FIRST = 500

TREE: dict[str, Any] = {**EXAMPLE, "model": {"class": "river.tree.HoeffdingTreeClassifier"}, "change": None}


@attack("mixed-column", '5 % "NA" in a feature of numbers: the rate of two models on the partition')
def mixed_column(lab: Lab) -> Found:
    """Send "NA" in every twentieth observation of a tree; another tree gets the same numbers without a text."""
    models = {"attacked": TREE, "control": TREE, "other": LOGISTIC}
    raw, config = lab.configure(models, checkpoint={"interval_s": 3600})
    with lab.worker(raw) as worker:
        stream = Stream(config, worker)

        def rows(n: int, change: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
            return [{**row, "x": {**row["x"], **change(i)}} for i, row in enumerate(stream.numbers() for _ in range(n))]

        def beside(model_id: str, n: int) -> list[Value]:
            text: dict[str, Any] = {"f7": "NA"} if model_id == "attacked" else {}
            found = rows(n, lambda i: text if i % EVERY == EVERY - 1 else {})
            return [one for row in found for one in ((model_id, row), ("other", stream.numbers()))]

        for model_id in ("control", "attacked"):
            stream.send(beside(model_id, N_FIRST))
        rates = []
        for _ in range(lab.rounds):
            took = {model_id: stream.send(beside(model_id, PER_ROUND)) for model_id in ("control", "attacked")}
            rates.append(took["control"] / took["attacked"])
        n_letters = worker.total("dead_letters_total")
        n_texts = (N_FIRST + lab.rounds * PER_ROUND) // EVERY
        n_others = int(metric(worker, "model_observations_total", model_id="other"))
    n_sent = 2 * (N_FIRST + lab.rounds * PER_ROUND)
    figure = f"{median(rates):.0%} of the rate, {n_letters} dead letters for {n_texts} texts"
    return Found(figure, held=n_others == n_sent and n_letters <= 2 * n_texts, fast=median(rates) >= LEAST_RATE)
