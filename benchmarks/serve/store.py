"""What the store of `attributary serve` costs: filling it, its bytes, windows, live events, memory.

    python -m benchmarks.serve store                 # 100 models, 50 features, 10 000 events each: some minutes
    python -m benchmarks.serve store --models 10     # a tenth of it

Events are what workers send: JSON that is decoded, checked and written in transactions of 2000, as when a long past is
read. *Windows* are of the ten most important features, put together into 600 points. *Live* is one event in a
transaction of its own, with what pages are told. Times are of the processor, the least of several; *memory* is the
largest that the process has had, and what it had before. Each figure is printed as soon as it is known.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from attributary_agents.serve.store.store import Store

from .filling import Size, arrivals, events, fill, model_id, unbounded

BEGIN_MS = 1_790_000_000_000
STEP_MS = 20_000
TRIES = 7


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


def measured(size: Size, path: Path) -> Iterator[tuple[str, str]]:
    """Fill a store and ask it; yield what it cost, each figure as soon as it is known."""
    before_mb = memory_mb()
    with unbounded(path) as store:
        filled = fill(store, size)
        by_clock = f"{size.events / filled.wall_s:,.0f} by clock"
        yield "filled, decoding included", f"{size.events / filled.cpu_s:,.0f} events/s CPU, {by_clock}"
        yield "bytes of an event", f"{filled.bytes / size.events:,.0f} ({filled.bytes / 1e6:,.0f} MB in all)"
        model, lately = model_id(size.models // 2), size.last_ms - 999 * size.step_ms
        yield "window over all events", f"{least_ms(lambda: store.window(model, 'pfi')):.1f} ms"
        yield "by observation", f"{least_ms(lambda: store.window(model, 'pfi', by='observation')):.1f} ms"
        yield "over the last 1000", f"{least_ms(lambda: store.window(model, 'pfi', start=lately)):.1f} ms"
        began_cpu = time.process_time()
        store.models()
        yield "all models, the first time", f"{(time.process_time() - began_cpu) * 1000:.1f} ms"
        yield "all models, again", f"{least_ms(store.models):.1f} ms"
        longer = Size(1, size.features, size.points + 300, size.begin_ms, size.step_ms)
        live = list(islice(arrivals(events(size.features, 500), longer), size.points, None))
        began_cpu = time.process_time()
        for one in live:
            store.take([one])
        yield "live event", f"{(time.process_time() - began_cpu) / len(live) * 1000:.2f} ms"
        yield "memory", f"{memory_mb():.0f} MB (before: {before_mb:.0f} MB)"
    with Store(path, max_bytes=filled.bytes // 2, max_age_s=1e9) as store:
        began_cpu = time.process_time()
        store.trim(size.last_ms)
        took, left = time.process_time() - began_cpu, store.size()
        yield "dropping the older half, at once", f"{took:.1f} s; {left / 1e6:,.0f} MB are left"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serve store", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--events", type=int, default=10_000, help="of each model")
    given = parser.parse_args(argv)
    size = Size(given.models, given.features, given.events, BEGIN_MS, STEP_MS)
    print(size, flush=True)
    with tempfile.TemporaryDirectory(prefix="attributary-store-") as folder:
        for what, figure in measured(size, Path(folder) / "store.sqlite"):
            print(f"{what:44} {figure}", flush=True)
    return 0
