"""What a partition publishes of models of many kinds, in a store and as it was published."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.kafka.observations import encode_value
from attributary_agents.serve.reading import arrived, kinds_of
from attributary_agents.serve.store.store import Store
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_topics import RECORD_HEADER
from tests.agents.stand_ins import EAGER, FACTORY, TOPIC, observations

BEGIN = 1_790_000_000_000
SECOND = 1_000

Row = tuple[str, dict[str, Any]]
"""Kind of a record, and what is in it."""


@dataclass
class Published:
    """Holds events as JSON has them, in the order in which they were published."""

    config: Config
    store: Store
    end_ms: int
    importances: list[dict[str, Any]] = field(default_factory=list)
    incidents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Id to the newest revision, in the order in which they began."""
    n_dead_letters: int = 0


def published(config: Config, rows: list[Row], model_id: str = "m") -> Published:
    """Run rows, one per second, through a partition; put what it publishes into a store, as the server reads it."""
    partition = Partition(TOPIC, 0, config, load=lambda _key: None)
    found = Published(config, Store(), BEGIN + SECOND * (len(rows) - 1))
    kinds = kinds_of(config.kafka.topics)
    taken = []
    for n, (kind, value) in enumerate(rows):
        time_ms, header = BEGIN + SECOND * n, [(RECORD_HEADER, kind.encode())]
        record = Record(TOPIC, 0, n, time_ms, model_id.encode(), encode_value(value), header)
        for sent in partition.handle(record):
            told = kinds.get(sent.topic)
            if told is None:
                continue
            read = SimpleNamespace(
                topic=sent.topic,
                partition=0,
                offset=len(taken),
                timestamp=time_ms,
                key=sent.key,
                value=sent.value,
                headers=sent.headers,
            )
            taken.append(arrived(read, told))
            if told == "importance":
                found.importances.append(json.loads(sent.value or b""))
            elif told == "incident":
                event = json.loads(sent.value or b"")
                found.incidents[event["id"]] = event
            else:
                found.n_dead_letters += 1
    found.store.take(taken)
    return found


def counting() -> Published:
    """A classifier of two features, of which one flips, which is an incident; and two bad records."""
    model = {
        "factory": FACTORY,
        "alpha": 0.05,
        "explainers": {"pfi": {"n_samples": 1}, "sage": {"n_samples": 1}},
        "change": {"window": 20, **EAGER},
        "publish": {"every": 10, "min_observations": 5, "reference_after": 10},
    }
    rows: list[Row] = [("observation", {"x": one.x, "y": one.y}) for one in observations(160, flip_at=60)]
    rows[100:100] = [("observation", {"x": {"a": "one"}, "y": True})] * 2
    return published(parse_config({"models": {"m": model}}), rows)


def _config(**model: Any) -> Config:
    publish = {"every": 10, "min_observations": 5, "reference_after": 20}
    given = {"alpha": 0.05, "change": None, "explainers": {"pfi": {"n_samples": 1}}, "publish": publish, **model}
    return parse_config({"models": {"m": given}})


def _rows(n: int, label: Callable[[dict[str, float], random.Random], Any], names: list[str]) -> Iterator[Row]:
    rng = random.Random(7)
    for _ in range(n):
        x = {name: rng.gauss(0.0, 1.0) for name in names}
        yield "observation", {"x": x, "y": label(x, rng)}


def regression() -> Published:
    """Targets of a million."""
    model = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LinearRegression"}]
    rows = _rows(60, lambda x, _: 1e6 + 2e5 * x["a"], ["a", "b", "c"])
    return published(_config(model=model, max_jump=None), list(rows))


def many_classes() -> Published:
    """Twenty-six letters."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = _rows(120, lambda x, rng: letters[min(max(int(13 + 6 * x["a"]), 0), 25)], ["a", "b"])
    return published(_config(model={"class": "river.naive_bayes.GaussianNB"}), list(rows))


HOSTILE = ["<script>alert(1)</script>", "quote\"'", "a\nb\x1b[31m\u202e", "x" * 200, "größe 🚀", "__proto__"]


def many_features() -> Published:
    """Two hundred features, some with names that somebody chose to do harm."""
    names = [*HOSTILE, *(f"feature {i}" for i in range(200 - len(HOSTILE)))]
    rows = _rows(30, lambda x, _: x["__proto__"] > 0, names)
    return published(_config(model={"class": "river.naive_bayes.GaussianNB"}), list(rows))


def unlabelled() -> Published:
    """A model without labels."""
    rows = [("observation", {"x": one.x}) for one in observations(50)]
    return published(_config(factory=FACTORY, mode="unlabelled"), rows)


def mirror() -> Published:
    """A mirror that learns what another model predicts."""
    rows = [("observation", {"x": one.x, "y_pred": one.y}) for one in observations(50)]
    return published(_config(factory=FACTORY, mode="mirror"), rows)


def late_labels() -> Published:
    """A model whose labels come five seconds after their observations, the last ten never."""
    sources = {"s": {"topic": "s", "id": "id"}}
    labels = {"l": {"topic": "l", "id": "id", "y": "y", "ttl": "1h", "max_waiting": 500}}
    config = parse_config({"sources": sources, "labels": labels, "models": _config(factory=FACTORY).models})
    rows: list[Row] = []
    told = observations(80)
    for n, one in enumerate(told):
        rows.append(("observation", {"x": one.x, "id": n, "time": BEGIN + 1000 * n}))
        if 0 <= n - 5 < 70:
            rows.append(("label", {"id": n - 5, "y": told[n - 5].y, "time": BEGIN + 1000 * n}))
    return published(config, rows)
