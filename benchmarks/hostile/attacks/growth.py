"""Attacks by what one producer can make grow: labels, categories, and the size of a number."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from support.kafka import produce
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import Config
from attributary_agents.kafka.observations import encode_value
from attributary_agents.models.guards.vocabulary import FEW
from benchmarks.hostile.lab import Found, attack
from benchmarks.process import footprint, processor_s

from ..lab import LOGISTIC, Lab

EXAMPLE: dict[str, Any] = {
    "model": {"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}},
    "alpha": 0.002,
    "explainers": {"pfi": {"n_samples": 5}, "sage": {"n_samples": 5}},
    "change": {"importances": ["pfi", "sage"]},
}
"""The model of `attributary config example`."""

LEAST_RATE = 0.9
PER_ROUND = 200
N_GOOD = 1000
"""As many as labels and categories are taken on sight for: the bound is at its strictest after them."""

Value = tuple[str, dict[str, Any]]
"""Model id, and the observation's value."""


class Stream:
    """Sends observations to a worker in order, and waits until they are handled."""

    def __init__(self, config: Config, worker: WorkerProcess, seed: int = 1) -> None:
        self._config, self._worker = config, worker
        self._rng = random.Random(seed)
        self._n_sent = 0

    def good(self) -> dict[str, Any]:
        """Return an observation whose label follows from two of its nine features."""
        x: dict[str, Any] = {f"f{i}": self._rng.gauss(0, 1) for i in range(8)}
        return {"x": {**x, "colour": self._rng.choice("rgb")}, "y": "yes" if x["f0"] + x["f1"] > 0 else "no"}

    def numbers(self) -> dict[str, Any]:
        """Return one without the category, whose label is a truth value, as logistic regression reads it."""
        value = self.good()
        del value["x"]["colour"]
        return {**value, "y": value["y"] == "yes"}

    def send(self, values: Iterable[Value]) -> float:
        """Send the values; return the processor time that the worker needed until they were handled, in seconds."""
        records = [(model_id.encode(), encode_value(value), ()) for model_id, value in values]
        before = processor_s(self._worker.pid)
        topic = self._config.kafka.topics.observations
        produce(self._config.kafka.brokers[0], topic, records, partition=0)
        self._n_sent += len(records)
        self._worker.wait_consumed(self._n_sent, timeout_s=120)
        return processor_s(self._worker.pid) - before


def metric(worker: WorkerProcess, name: str, **labels: str) -> float:
    """Return the sum of `attributary_<name>` over the samples that have the labels."""
    samples = worker.samples(f"attributary_{name}")
    return sum(value for key, value in samples.items() if labels.items() <= dict(key).items())


def rate_of_another(
    lab: Lab, hostile: Sequence[dict[str, Any]], harmless: Sequence[dict[str, Any]], settings: dict[str, Any]
) -> tuple[float, int, int]:
    """Return the rate of a model beside an attacked one, over that beside one like it that nobody attacked.

    The rates are by the processor time that the worker needs, in turns for the one and for the other: the median
    of the rounds.

    Parameters
    ----------
    hostile
        What is sent in place of the columns of as many good observations.
    harmless
        The same for the model that nobody attacks: what trees grow by whatever is distinct in it.

    Returns
    -------
    tuple
        The rate, the dead letters, and the categories for which `__other__` stood.
    """
    models = {"attacked": {**EXAMPLE, **settings}, "control": EXAMPLE, "other": LOGISTIC}
    raw, config = lab.configure(models, checkpoint={"interval_s": 3600})  # its share would be in the one or the other
    with lab.worker(raw) as worker:
        stream = Stream(config, worker)

        def beside(model_id: str, rows: list[dict[str, Any]]) -> list[Value]:
            return [one for row in rows for one in ((model_id, row), ("other", stream.numbers()))]

        goods = [stream.good() for _ in range(N_GOOD)]
        stream.send((model_id, value) for value in goods for model_id in ("attacked", "control"))
        values: list[Value] = []
        goods = [stream.good() for _ in hostile]
        for model_id, changed in (("attacked", hostile), ("control", [] if lab.short else harmless)):
            for one, good in zip(changed, goods, strict=False):
                values += [(model_id, {"x": {**good["x"], **one.get("x", {})}, "y": one.get("y", good["y"])})]
        stream.send(values)
        rates = []
        for _ in range(lab.rounds):
            rows = [stream.good() for _ in range(PER_ROUND)]
            took = {model_id: stream.send(beside(model_id, rows)) for model_id in ("control", "attacked")}
            rates.append(took["control"] / took["attacked"])
        n_letters = worker.total("dead_letters_total")
        n_other = int(metric(worker, "model_other_categories_total", model_id="attacked"))
    return median(rates), n_letters, n_other


@attack("labels", "600 distinct labels to one model: the rate of another on the partition")
def labels(lab: Lab, settings: dict[str, Any] | None = None) -> Found:
    """Send 600 labels that no one else sends."""
    hostile = [{"y": f"label {i}"} for i in range(600)]
    rate, n_letters, _ = rate_of_another(lab, hostile, [], settings or {})
    figure = f"{rate:.0%} of the rate, {n_letters} dead letters of {len(hostile)}"
    return Found(figure, held=n_letters >= len(hostile) - FEW, fast=rate >= LEAST_RATE)


@attack("categories", "300 distinct categories to one model: the rate of another on the partition")
def categories(lab: Lab, settings: dict[str, Any] | None = None) -> Found:
    """Send 300 categories, each twice, with the labels in turns; the other model has one category in their place."""
    hostile = [{"x": {"colour": f"colour {i % 300}"}, "y": ("no", "yes")[i % 2]} for i in range(600)]
    harmless = [{**one, "x": {"colour": "colour"}} for one in hostile]
    rate, n_letters, n_other = rate_of_another(lab, hostile, harmless, settings or {})
    figure = f"{rate:.0%} of the rate, {n_other} times __other__"
    return Found(figure, held=n_other == len(hostile) and not n_letters, fast=rate >= LEAST_RATE)


@attack("many-categories", "10⁶ distinct categories: memory and state")
def many_categories(lab: Lab, settings: dict[str, Any] | None = None) -> Found:
    """Send new categories in ten features of every record to a tree, which keeps a count of each."""
    tree = {"model": {"class": "river.tree.HoeffdingTreeClassifier"}, "explain": {"every": 100}, "change": None}
    raw, config = lab.configure({"m": {**LOGISTIC, **tree, **(settings or {})}})
    with lab.worker(raw) as worker:
        stream = Stream(config, worker)
        stream.send(("m", stream.numbers()) for _ in range(200))
        before = footprint(worker.pid).rss
        for n in range(lab.rounds):
            new = ({f"c{k}": f"category {k} {n} {i}" for k in range(10)} for i in range(7000))
            stream.send(("m", {"x": {"f0": 1.0, **x}, "y": bool(i % 2)}) for i, x in enumerate(new))
        grown = (footprint(worker.pid).rss - before) / 1e6
        stream.send(("m", stream.numbers()) for _ in range(600))
        size = metric(worker, "model_state_bytes") / 1e6
    return Found(f"{grown:+.0f} MB of memory, a state of {size:.2f} MB", held=grown < 100 and 0 < size < 1)


@attack("absurd-number", "a = 1e6 once among normal numbers, to a logistic regression: accuracy after")
def absurd_number(lab: Lab, settings: dict[str, Any] | None = None) -> Found:
    """Send one number of 1e6 with the wrong label."""
    quality = {"alpha": 0.005, "quality": ["accuracy"]}
    raw, config = lab.configure({"m": {**LOGISTIC, **quality, **(settings or {})}})
    with lab.worker(raw) as worker:
        stream = Stream(config, worker)
        stream.send(("m", stream.numbers()) for _ in range(2000))
        good = stream.numbers()
        stream.send([("m", {"x": {**good["x"], "f0": 1e6}, "y": False})])
        stream.send(("m", stream.numbers()) for _ in range(1000))
        accuracy = metric(worker, "model_quality", metric="accuracy")
        n_letters = worker.total("dead_letters_total")
    return Found(f"accuracy {accuracy:.0%}, {n_letters} dead letter", held=accuracy >= 0.95 and n_letters == 1)


@attack("absurd-target", "y = 1e5 once among targets of about ±5, to a linear regression: loss after")
def absurd_target(lab: Lab, settings: dict[str, Any] | None = None) -> Found:
    """Send one absurd target to the one of two models that learn the same; the other shows what the loss should be."""
    linear = {
        "model": [
            {"class": "river.preprocessing.StandardScaler"},
            {"class": "river.linear_model.LinearRegression"},
        ],
        "alpha": 0.005,
    }
    models = {"attacked": {**LOGISTIC, **linear, **(settings or {})}, "control": {**LOGISTIC, **linear}}
    raw, config = lab.configure(models)
    rng = random.Random(1)

    def rows(n: int) -> Iterable[Value]:
        for _ in range(n):
            x = {name: rng.gauss(0, 1) for name in "abc"}
            for model_id in models:
                yield model_id, {"x": x, "y": 2 * x["a"] - x["b"] + rng.gauss(0, 0.1)}

    with lab.worker(raw) as worker:
        stream = Stream(config, worker)
        stream.send(rows(2500))
        stream.send([("attacked", {"x": {"a": 1.0, "b": 1.0, "c": 1.0}, "y": 1e5})])
        stream.send(rows(1000))
        loss, control = (metric(worker, "model_loss", model_id=model_id) for model_id in models)
        n_letters = worker.total("dead_letters_total")
    return Found(f"loss {loss:.2g}, {n_letters} dead letter", held=0 < loss <= 1.5 * control and n_letters == 1)
