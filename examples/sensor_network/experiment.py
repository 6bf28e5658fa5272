"""What is configured for the experiment, and how its outcome is judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .network import Fault, Network

MODEL_ID = "network"

MODEL: dict[str, Any] = {
    "mode": "anomaly",
    "model": {"class": "examples.sensor_network.autoencoder.Autoencoder"},
    "alpha": 0.01,
    "explainers": {"pfi": {"n_samples": 2}, "sage": {"n_samples": 10}},
    "change": None,
    "publish": {"every": 20},
}
"""The model as the worker's configuration has it.

iSAGE is the paper's: interventional, m 10. alpha is ten times the paper's: it averages over 200 observations, so that
faults of 600 are seen one by one. The autoencoder learns at .005 instead of .05, at which it soon takes a lasting fault
for what is normal.
"""


@dataclass(frozen=True)
class Verdict:
    """Says where the faulty sensor stands by its mean importance over the whole fault.

    Attributes
    ----------
    rank
        1: no other sensor has a higher mean.
    importance, next_one
        The mean of the faulty sensor, and the highest one of the others, which is of `next_sensor`.
    """

    explainer: str
    fault: Fault
    rank: int
    importance: float
    next_one: float
    next_sensor: str


def judge(events: Iterable[Mapping[str, Any]], network: Network) -> list[Verdict]:
    """Return the verdicts on all faults, by each explainer, of the importance events of a run.

    What counts is the mean over all events while a fault lasts, its first observations included.
    """
    by_explainer: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        by_explainer.setdefault(event["explainer"], []).append(event)
    return [verdict for name, its in sorted(by_explainer.items()) for verdict in _verdicts(name, its, network)]


def _verdicts(explainer: str, events: list[Mapping[str, Any]], network: Network) -> Iterator[Verdict]:
    for fault in network.faults:
        during = [event["features"] for event in events if fault.begin < event["observation"] <= fault.end]
        if not during:
            raise ValueError(f"{explainer} has no event of the fault {fault.kind}")
        means = {name: sum(features[name]["importance"] for features in during) / len(during) for name in network.names}
        own = means.pop(fault.sensor)
        best = max(means, key=means.__getitem__)
        rank = 1 + sum(mean >= own for mean in means.values())
        yield Verdict(explainer, fault, rank, own, means[best], best)
