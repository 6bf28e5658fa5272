"""Explains the same observations by the same model, given in different ways, and compares what is published."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.models.factory import make_model
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_explainers import Explainers, RemovalExplainer, model_function, resolve_loss
from attributary_explainers.monitor.explainers import new_explainer
from attributary_explainers.predictions import predict_rows

from .given import Model, Way

MODEL_ID = "bank"
EVERY = 25
"""Observations between two events."""

Row = tuple[Mapping[str, float], Any]
Importances = list[dict[str, float]]
"""What each event says: `explainer.feature` and `explainer.feature ±` to the importance and half its interval."""


class Explained(NamedTuple):
    """What came of the rows."""

    events: Importances
    left_out: dict[str, int]
    """How many observations were not explained, by reason: dead letters, and what explainers skipped."""
    seconds: float
    """Time per observation."""

    def differs(self, other: Explained) -> float:
        """Return the largest difference between the numbers; infinity where one has what the other has not."""
        pairs = list(zip(self.events, other.events, strict=False))
        same_names = all(one.keys() == its.keys() for one, its in pairs)
        if len(self.events) != len(other.events) or not same_names or self.left_out != other.left_out:
            return math.inf
        return max(abs(one[name] - its[name]) for one, its in pairs for name in one)


class Cost(NamedTuple):
    """What the model alone takes for a row, in seconds."""

    at_once: float
    one_by_one: float


def configured(model: Model, folder: Path) -> dict[str, Any]:
    """Return what the file of a worker's configuration says, with this model."""
    explainers = {"pfi": {"n_samples": 3}, "sage": {"n_samples": 2}}
    own = {"model": dict(model), "learn": False, "change": None, "alpha": 0.02, "seed": 3, "explainers": explainers}
    return {
        "models": {MODEL_ID: {**own, "publish": {"every": EVERY}}},
        "artefacts": {"directory": str(folder)},
        "control": {"allowed": ["river.", "sklearn"]},  # trees hold types that skops does not trust by itself
    }


@contextmanager
def given(way: Way, estimator: Any) -> Iterator[dict[str, Any]]:
    """Give the estimator in a way, and yield what the configuration says that names it."""
    with tempfile.TemporaryDirectory() as folder, way.give(estimator, Path(folder)) as model:
        yield configured(model, Path(folder))


def in_own_process(estimator: Any, rows: Sequence[Row], model_id: str = MODEL_ID) -> Explained:
    """Explain the object itself, by the library and without a worker: what all ways are compared with.

    The model's id is that of the worker's, since draws begin from it.
    """
    config = parse_config(configured({"factory": "of:none"}, Path.cwd()))
    chosen = config.models[MODEL_ID]
    explainers: dict[str, RemovalExplainer] = {
        name: new_explainer(model_id, chosen.settings, name, estimator) for name in chosen.explainers.by_removal
    }
    both = Explainers(estimator, explainers)
    events: Importances = []
    began = time.perf_counter()
    for n, (x, y) in enumerate(rows, start=1):
        both.explain_one(x, y)
        if n % EVERY == 0:
            events.append(
                {
                    **{f"{name}.{f}": value for name, e in explainers.items() for f, value in e.importance.items()},
                    **{f"{name}.{f} ±": value for name, e in explainers.items() for f, value in e.half_width.items()},
                }
            )
    seconds = (time.perf_counter() - began) / len(rows)
    return Explained(events, dict(sum((e.skipped for e in explainers.values()), Counter())), seconds)


def in_worker(config: Config, rows: Sequence[Row]) -> Explained:
    """Let a worker's partition take the rows as records, and return what it would publish."""
    topics = config.kafka.topics
    partition = Partition(topics.observations, 0, config, load=lambda _key: None)
    sent, began = [], time.perf_counter()
    for n, (x, y) in enumerate(rows):
        value = json.dumps({"x": dict(x), "y": y}).encode()
        sent += partition.handle(Record(topics.observations, 0, n, n, MODEL_ID.encode(), value))
    seconds = (time.perf_counter() - began) / len(rows)
    left_out = Counter(partition.counters.dead_letters)
    for state in partition.models.values():
        left_out = sum((explainer.skipped for explainer in state.explainers.values()), left_out)
    events = published(out.value or b"" for out in sent if out.topic == topics.importances)
    return Explained(events, dict(+left_out), seconds)


def published(values: Iterable[bytes]) -> Importances:
    """Return what the events of a worker say, by their observation."""
    found: dict[int, dict[str, float]] = {}
    for value in values:
        event = json.loads(value)
        if event["observation"] % EVERY == 0:  # others are out of turn: a change was noticed
            found.setdefault(event["observation"], {}).update(_read(event))
    return [found[n] for n in sorted(found)]


def _read(event: dict[str, Any]) -> dict[str, float]:
    found = {}
    for feature, values in event["features"].items():
        found[f"{event['explainer']}.{feature}"] = values["importance"]
        found[f"{event['explainer']}.{feature} ±"] = values["half_width"]
    return found


def tried(config: Config, rows: Sequence[Row], n_rows: int = 64) -> Cost:
    """Ask the model alone, as explainers do, for rows in one call and in one call each; the best of three."""
    own = config.models[MODEL_ID]
    model = make_model(own)
    function = model_function(model, resolve_loss(model, own.loss).output)
    asked = [x for x, _ in rows[:n_rows]]
    found: dict[bool, float] = {}
    for at_once in (True, False):
        batches = [asked] if at_once else [[x] for x in asked]
        for _ in range(3):
            began = time.perf_counter()
            for batch in batches:
                predict_rows(function, batch)
            seconds = (time.perf_counter() - began) / len(asked)
            found[at_once] = min(seconds, found.get(at_once, seconds))
    return Cost(found[True], found[False])
