"""What one scrape of such a worker takes: time, the time that observations wait, series, bytes, memory."""

from __future__ import annotations

import cProfile
import pstats
import statistics
import threading
import time
import tracemalloc
import urllib.request
from collections import Counter
from dataclasses import dataclass
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.config.settings import Config
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.monitoring.web import WebServer
from attributary_agents.worker.view import WorkerView

FEATURES = ("feature_importance", "feature_importance_share_ratio", "feature_importance_half_width")


@dataclass(frozen=True)
class Scrape:
    """One worker's exposition, and what it takes to make it.

    Attributes
    ----------
    series, of_features
        Series in all; those that have the label `feature`.
    models, dropped
        Models that have series, and those that have none.
    bytes
        Size of the exposition.
    seconds
        From request to last byte over HTTP: median and longest.
    waited
        How long an observation that comes meanwhile waits for its turn, at the most: median of the scrapes and longest.
    memory
        Bytes allocated at the most while it was made.
    """

    series: int
    of_features: int
    models: int
    dropped: int
    bytes: int
    seconds: tuple[float, float]
    waited: tuple[float, float]
    memory: int


def scrape(config: Config, view: WorkerView, times: int) -> Scrape:
    """Scrape a worker with this view over HTTP, so many times."""
    server = WebServer(config, view)
    server.start()
    try:
        url = f"http://127.0.0.1:{server.port}/metrics"
        text, took, waited = "", [], []
        for _ in range(times):
            with _Observations(view) as observations:
                began = time.perf_counter()
                with urllib.request.urlopen(url, timeout=300) as answer:
                    text = answer.read().decode()
                took.append(time.perf_counter() - began)
            waited.append(observations.longest)
        tracemalloc.start()
        urllib.request.urlopen(url, timeout=300).read()
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        server.stop()
    ours = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("attributary_")
    ]
    counts = Counter(sample.name.removeprefix("attributary_") for sample in ours)
    (dropped,) = (sample.value for sample in ours if sample.name == "attributary_series_dropped_models")
    return Scrape(
        series=len(ours),
        of_features=sum(counts[name] for name in FEATURES),
        models=counts["model_info"],
        dropped=int(dropped),
        bytes=len(text.encode()),
        seconds=(statistics.median(took), max(took)),
        waited=(statistics.median(waited), max(waited)),
        memory=memory,
    )


def profile(config: Config, view: WorkerView, lines: int) -> list[str]:
    """Where the time under the lock goes: own seconds, calls, function; the dearest first."""
    collector = AttributaryCollector(config, view)
    list(collector.collect())
    recorded = cProfile.Profile()
    recorded.runcall(lambda: list(collector.collect()))
    entries = pstats.Stats(recorded).stats.items()  # type: ignore[attr-defined]
    dearest = sorted(entries, key=lambda entry: -entry[1][2])[:lines]
    return [
        f"{own:7.3f} s {calls:9,d} calls  {file.rsplit('/', 1)[-1]}:{line} {function}"
        for (file, line, function), (_, calls, own, _, _) in dearest
    ]


class _Observations:
    """A thread that takes the lock a thousand times a second at most, as the worker does for each observation."""

    def __init__(self, view: WorkerView) -> None:
        self.longest = 0.0
        self._lock = view.lock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(0.001):
            began = time.perf_counter()
            with self._lock:
                self.longest = max(self.longest, time.perf_counter() - began)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
