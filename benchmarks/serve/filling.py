"""Fills the store of the page with what workers send, as when a long past is read; it says how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from attributary_agents.serve.store.rows import Arrived
from attributary_agents.serve.store.store import Store
from attributary_explainers.ranking import ranks, shares
from attributary_topics import FeatureImportance, ImportanceEvent, QualityFigure, Source, decode_json, encode_json

AT_ONCE = 2000
"""Records of one transaction, as the server takes them."""


_LINES = 10
"""Lines that say how far it is, where there is no terminal for a bar."""


@dataclass(frozen=True)
class Size:
    """How much a store has: of each model so many events, of so many features, so far apart, from a time on."""

    models: int
    features: int
    points: int
    begin_ms: int
    step_ms: int

    @property
    def events(self) -> int:
        """All events."""
        return self.models * self.points

    @property
    def last_ms(self) -> int:
        """Time of the last event of each model."""
        return self.begin_ms + (self.points - 1) * self.step_ms

    def __str__(self) -> str:
        return f"{self.models} models x {self.features} features x {self.points:,} events"


@dataclass(frozen=True)
class Filled:
    """What filling took: seconds of the processor and by the clock, and the bytes of the file after it."""

    cpu_s: float
    wall_s: float
    bytes: int


def model_id(at: int) -> str:
    """Return the id of a model by its place."""
    return f"model-{at:03}"


def fill(store: Store, size: Size) -> Filled:
    """Fill a store with the events of all models; show on stderr how far it is."""
    coming = arrivals(events(size.features, min(500, size.points)), size)
    columns = TextColumn("filling"), BarColumn(), MofNCompleteColumn(), TextColumn("events,")
    times = TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("to go")
    began, began_cpu = time.perf_counter(), time.process_time()
    console, done, said = Console(stderr=True), 0, 0
    with Progress(*columns, *times, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=size.events)
        while batch := list(islice(coming, AT_ONCE)):
            store.take(batch, live=False)
            done += len(batch)
            bar.update(task, completed=done)
            if not console.is_terminal and done * _LINES // size.events > said:
                said = done * _LINES // size.events
                console.print(f"filled {done:,} of {size.events:,} events in {time.perf_counter() - began:.0f} s")
    return Filled(time.process_time() - began_cpu, time.perf_counter() - began, store.size())


def unbounded(path: Path) -> Store:
    """Open a store that drops nothing."""
    return Store(path, max_bytes=10**11, max_age_s=1e9)


def events(n_features: int, n: int) -> list[bytes]:
    """Return some values of importance events, as they are on the wire; importances wander."""
    draw = np.random.default_rng(1)
    walk = draw.normal(size=(n, n_features)).cumsum(axis=0) / 50.0
    made = []
    for row in walk.tolist():
        importance = {f"feature_{at:02}": value for at, value in enumerate(row)}
        share, rank = shares(importance), ranks(importance)
        features = {
            name: FeatureImportance(importance[name], 0.01, 0.02, share[name], rank[name])
            for name in sorted(importance, key=lambda name: rank[name])
        }
        made.append(
            encode_json(
                ImportanceEvent(
                    model_id="model",
                    model_version="1",
                    explainer="pfi",
                    removal="interventional",
                    loss="cross-entropy",
                    loss_unit="nats",
                    loss_largest=None,
                    alpha=0.002,
                    observation=1,
                    n_observations=1000,
                    model_loss=0.31,
                    baseline_loss=0.68,
                    quality={"accuracy": QualityFigure(0.9, 0.88)},
                    discrepancy=0.1,
                    shift=0.04,
                    ndcg=0.99,
                    reference_id="2000",
                    trigger="interval",
                    stale=False,
                    features=features,
                    source=Source("observations", 0, 1),
                )
            )
        )
    return made


def arrivals(values: list[bytes], size: Size) -> Iterator[Arrived]:
    """Yield events as a long past has them: of all models in turn, decoded one by one."""
    for point in range(size.points):
        for model in range(size.models):
            event = decode_json(values[(point + 7 * model) % len(values)])
            event["model_id"], event["observation"] = model_id(model), (point + 1) * 500
            at = size.begin_ms + point * size.step_ms
            yield Arrived("importance", 0, point, f"{model}:o:0:{point}", model_id(model), at, event)
