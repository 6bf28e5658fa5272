"""What the store of `attributary serve` costs: filling it, its bytes, windows, live events, memory.

    python -m benchmarks.serve store                 # 100 models, 50 features, 10 000 events each: some minutes
    python -m benchmarks.serve store --models 10     # a tenth of it

Events are what workers send: JSON that is decoded, parsed and packed in transactions of 2000, as when a long past is
read. *Windows* are of the ten most important features, put together into 600 points. *Live* is one event in a
transaction of its own, with what pages are told. Times are of the processor, the least of several; *memory* is the
largest that the process has had, and what it had before.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from attributary_agents.serve.store.rows import Arrived
from attributary_agents.serve.store.store import Store
from attributary_explainers.ranking import ranks, shares
from attributary_topics import FeatureImportance, ImportanceEvent, QualityFigure, Source, decode_json, encode_json

AT_ONCE = 2000
BEGIN_MS = 1_790_000_000_000
STEP_MS = 20_000
TRIES = 7

out = Console(width=110)


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


def arrivals(values: list[bytes], n_models: int, n_points: int) -> Iterator[Arrived]:
    """Yield events as a long past has them: of all models in turn, decoded one by one."""
    for point in range(n_points):
        for model in range(n_models):
            event = decode_json(values[(point + 7 * model) % len(values)])
            event["observation"] = (point + 1) * 500
            at = BEGIN_MS + point * STEP_MS
            yield Arrived("importance", 0, point, f"{model}:o:0:{point}", f"model-{model:03}", at, event)


def least_ms(measured: Callable[[], object]) -> float:
    """Return the least processor time of several tries."""
    found = []
    for _ in range(TRIES):
        began = time.process_time()
        measured()
        found.append(time.process_time() - began)
    return min(found) * 1000.0


def memory_mb() -> float:
    """Return the largest memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(n_models: int, n_features: int, n_points: int, path: Path) -> Table:
    """Fill a store and ask it; return what it cost."""
    values = events(n_features, 500)
    before_mb = memory_mb()
    n_events = n_models * n_points
    table = Table(title=f"{n_models} models x {n_features} features x {n_points:,} events", title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    with Store(path, max_bytes=10**11, max_age_s=1e9) as store:
        coming = arrivals(values, n_models, n_points)
        began, began_cpu = time.perf_counter(), time.process_time()
        while batch := list(islice(coming, AT_ONCE)):
            store.take(batch, live=False)
        cpu, wall = time.process_time() - began_cpu, time.perf_counter() - began
        table.add_row(
            "filled, decoding included", f"{n_events / cpu:,.0f} events/s CPU, {n_events / wall:,.0f} by clock"
        )
        size = store.size()
        table.add_row("bytes of an event", f"{size / n_events:,.0f} ({size / 1e6:,.0f} MB in all)")
        model, last_ms = f"model-{n_models // 2:03}", BEGIN_MS + (n_points - 1) * STEP_MS
        lately = last_ms - 999 * STEP_MS
        table.add_row("window over all events", f"{least_ms(lambda: store.window(model, 'pfi')):.1f} ms")
        table.add_row("by observation", f"{least_ms(lambda: store.window(model, 'pfi', by='observation')):.1f} ms")
        table.add_row("over the last 1000", f"{least_ms(lambda: store.window(model, 'pfi', start=lately)):.1f} ms")
        began_cpu = time.process_time()
        store.models()
        table.add_row("all models, the first time", f"{(time.process_time() - began_cpu) * 1000:.1f} ms")
        table.add_row("all models, again", f"{least_ms(store.models):.1f} ms")
        live = list(islice(arrivals(values, 1, n_points + 300), n_points, None))
        began_cpu = time.process_time()
        for one in live:
            store.take([one])
        table.add_row("live event", f"{(time.process_time() - began_cpu) / len(live) * 1000:.2f} ms")
        table.add_row("memory", f"{memory_mb():.0f} MB (before: {before_mb:.0f} MB)")
        began_cpu = time.process_time()
        store.trim(last_ms)
        table.add_row(
            "thinning what is older than a day, at once",
            f"{time.process_time() - began_cpu:.1f} s; {store.size() / 1e6:,.0f} MB are left",
        )
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serve store", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--events", type=int, default=10_000, help="of each model")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="attributary-store-") as folder:
        out.print(measure(given.models, given.features, given.events, Path(folder) / "store.sqlite"))
    return 0
