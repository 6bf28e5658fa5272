"""Attacks by a few records among many: labels of another kind, and names of features that nobody else sends."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from statistics import median
from typing import Any

from support.kafka import read_all

from benchmarks.hostile.lab import Found, attack

from ..lab import LOGISTIC, Lab
from .growth import Stream, Value

TREE: dict[str, Any] = {
    "model": {"class": "river.tree.HoeffdingTreeClassifier"},
    "explainers": {"pfi": {"n_samples": 2}},
}
N_GOOD = 1000
LEAST_RATE = 0.8


def _pair(rng: random.Random, **changed: Any) -> dict[str, Any]:
    a = rng.gauss(0, 1)
    return {"x": {"a": a, "b": rng.gauss(0, 1)}, "y": a > 0, **changed}


def _junk(name: str, n: int) -> dict[str, Any]:
    return {"x": {"a": 0.1, "b": 0.1, **{f"{name}{i}": 1.0 + i % 3 for i in range(n)}}, "y": True}


@attack(
    "labels-of-a-minority",
    'two labels "true" first and then 1 in 20; or 25 of a test, before 1000 booleans each: good ones lost',
)
def labels_of_a_minority(lab: Lab) -> Found:
    """Send labels of another kind first, and later as a minority."""
    rng = random.Random(1)
    first = [_pair(rng, y="true") if i < 2 or i % 20 == 0 else _pair(rng) for i in range(N_GOOD)]
    test = [_pair(rng, y="true") for _ in range(25)] + [_pair(rng) for _ in range(N_GOOD)]
    lost, n_good = _lost(lab, {"first": first, "test": test}, lambda value: value["y"] != "true")
    figure = f"{lost['first']} of {n_good['first']} lost; {lost['test']} of {n_good['test']} lost"
    return Found(figure, held=lost["first"] <= 13 and lost["test"] <= 35)


@attack(
    "junk-names",
    "6 records of 100 names each at a model's start; or one of 500: good ones of 1000 lost",
)
def junk_names(lab: Lab) -> Found:
    """Fill the bound on features before the first good observation."""
    rng = random.Random(2)
    goods = [_pair(rng) for _ in range(N_GOOD)]
    six = [{**(one := _junk(f"junk{i}_", 100)), "x": dict(list(one["x"].items())[2:])} for i in range(6)]
    full = {**(one := _junk("junk", 500)), "x": dict(list(one["x"].items())[2:])}
    lost, n_good = _lost(lab, {"six": six + goods, "one": [full, *goods]}, lambda value: "a" in value["x"])
    figure = f"{lost['six']} of {n_good['six']} lost; {lost['one']} of {n_good['one']} lost"
    return Found(figure, held=lost["six"] <= 2 and lost["one"] <= 100)


@attack("wide-record", "one record of 490 names to an established model: its rate afterwards")
def wide_record(lab: Lab) -> Found:
    """Compare the processor time of the model with that of one like it, in turns."""
    models = {name: {**TREE, "change": None} for name in ("attacked", "control")}
    raw, config = lab.configure(models, checkpoint={"interval_s": 3600})
    rng, rates = random.Random(3), []
    with lab.worker(raw) as worker:
        stream = Stream(config, worker)
        goods = [_pair(rng) for _ in range(N_GOOD + 1)]
        stream.send((name, one) for one in goods for name in models)
        stream.send([("attacked", _junk("junk", 490))])
        for _ in range(lab.rounds):
            goods = [_pair(rng) for _ in range(300)]
            took = {name: stream.send((name, one) for one in goods) for name in ("control", "attacked")}
            rates.append(took["control"] / max(took["attacked"], 0.01))
        n_letters = worker.total("dead_letters_total")
    rate = median(rates)
    return Found(f"{rate:.0%} of the rate, {n_letters} dead letter", held=n_letters == 1, fast=rate >= LEAST_RATE)


def _lost(
    lab: Lab, sent: dict[str, list[dict[str, Any]]], is_good: Callable[[Any], bool]
) -> tuple[dict[str, int], dict[str, int]]:
    """Send the values of each model; return how many good ones became dead letters, and how many there were."""
    raw, config = lab.configure({name: TREE | {"change": None} for name in sent} | {"other": LOGISTIC})
    with lab.worker(raw) as worker:
        stream = Stream(config, worker)
        values: list[Value] = [(name, value) for name, of_model in sent.items() for value in of_model]
        stream.send(values)
        worker.stop()
    lost = dict.fromkeys(sent, 0)
    for letter in read_all(lab.broker.bootstrap, config.kafka.topics.dead_letters):
        lost[letter.key.decode()] += is_good(json.loads(letter.value))
    return lost, {name: sum(map(is_good, of_model)) for name, of_model in sent.items()}
