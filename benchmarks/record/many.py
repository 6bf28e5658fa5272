"""What an observation of one of many models costs, over one of the only model, and how much of that is the model's.

    python -m benchmarks.record.many                              # 10 000 models that only learn
    python -m benchmarks.record.many --models 100 1000 --case pfi10

Models that differ only in their id have observations in runs: so many of one model, then as many of another one, drawn
at random. The longer a run, the fewer of its observations meet a model that was not used just before; the steps are the
same. *Worker* is `Partition.handle`, and *model alone* the same models, of River, which predict and learn without
anything of ours. Every model begins from the same stored state, of 2000 observations: a young one costs more. Blocks
of the only model and of the many take turns in one process. A ratio is the median of the rounds', with the least and
the largest behind it.
"""

from __future__ import annotations

import argparse
import gc
import logging
import random
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count

import orjson
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from attributary_agents.config.reading import parse_config
from attributary_agents.state.codec import encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from benchmarks.record.cases import CASES, Case, values

RUNS = (1, 2, 5, 20)
MATURE = 2000
"""Observations in the state that every model begins from."""

WARM_UP = 3
"""Observations that each model has before anything is measured: the first one restores it."""

TOPIC = "observations"

Handle = Callable[[Sequence[int]], float]
"""Lets the models of these numbers have an observation each; returns the microseconds of the processor for one."""

out = Console(width=120)


class Records:
    """Makes records of the observations topic, each at the next offset."""

    def __init__(self, case: Case) -> None:
        self._values, self._offsets = values(case), count()

    def next(self, key: bytes) -> Record:
        """Return the next record, of a model's key."""
        offset = next(self._offsets)
        return Record(TOPIC, 0, offset, 1_700_000_000_000 + offset, key, next(self._values))


def mature_partition(case: Case, n: int, records: Records) -> Partition:
    """Return a partition whose `n` models begin from the state of one that has handled MATURE records."""
    model_ids = [name_of(number) for number in range(n)]
    config = parse_config({"models": dict.fromkeys(model_ids, case.settings)})
    first = Partition(TOPIC, 0, config, lambda _key: None, time.perf_counter)
    for _ in range(MATURE):
        first.handle(records.next(model_ids[0].encode()))
    (state,) = first.models.values()
    stored = {name.encode(): encode_state(replace(state, model_id=name)) for name in model_ids}
    return Partition(TOPIC, 0, config, stored.get, time.perf_counter)


def name_of(number: int) -> str:
    """Return the id of the model of this number."""
    return f"m{number}"


def worker(case: Case, n: int) -> Handle:
    """Return what handles records of `n` models on one partition."""
    records = Records(case)
    keys, handle_one = [name_of(number).encode() for number in range(n)], mature_partition(case, n, records).handle

    def handle(order: Sequence[int]) -> float:
        chosen = [records.next(keys[number]) for number in order]
        began = time.process_time()
        for record in chosen:
            handle_one(record)
        return (time.process_time() - began) / len(order) * 1e6

    return handle


def alone(case: Case, n: int) -> Handle:
    """Return what lets `n` models of River predict and learn by themselves."""
    records = Records(case)
    made = mature_partition(case, n, records).models
    models = [made.find_or_make(name_of(number)).model for number in range(n)]

    def handle(order: Sequence[int]) -> float:
        chosen = [(models[number], orjson.loads(records.next(b"").value or b"")) for number in order]
        began = time.process_time()
        for model, one in chosen:
            (model.predict_one if case.is_regression else model.predict_proba_one)(one["x"])
            model.learn_one(one["x"], one["y"])
        return (time.process_time() - began) / len(order) * 1e6

    return handle


def in_runs(n: int, run: int, n_records: int, rng: random.Random) -> list[int]:
    """Return the numbers of the models that observations are for, `run` of the same one after another."""
    return [number for number in rng.choices(range(n), k=n_records // run) for _ in range(run)]


def measure(
    make: Callable[[Case, int], Handle], case: Case, n: int, n_records: int, n_rounds: int
) -> Iterator[tuple[int, list[float], list[float]]]:
    """Yield the length of the runs, and µs per record of the only model and of the many, by round."""
    rng, single, many = random.Random(1), make(case, 1), make(case, n)
    for _ in range(WARM_UP):
        single([0] * n)
        many(range(n))
    gc.collect()
    for run in RUNS:
        found = [(single([0] * n_records), many(in_runs(n, run, n_records, rng))) for _ in range(n_rounds)]
        yield run, [one for one, _ in found], [other for _, other in found]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.record.many",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    clean = [name for name, case in CASES.items() if not case.hostile]
    parser.add_argument("--models", type=int, nargs="+", default=[10_000], help="how many; default 10000")
    parser.add_argument("--case", choices=clean, default="learn", help="what they do; default learn")
    parser.add_argument("--records", type=int, default=20_000, help="of a block; default 20000")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.disable()
    case = CASES[args.case]
    table = Table(title=f"{args.case}: microseconds per record, {args.rounds} rounds of {args.records}")
    for name in ("models", "what", "of one model in a row", "only model", "of many", "ratio"):
        table.add_column(name, justify="left" if name == "what" else "right")
    with Progress(console=out, transient=True) as progress:
        task = progress.add_task("", total=len(args.models) * 2 * len(RUNS))
        for n in args.models:
            for what, make in (("worker", worker), ("model alone", alone)):
                progress.update(task, description=f"{n} models, {what}")
                for run, single, many in measure(make, case, n, args.records, args.rounds):
                    table.add_row(str(n), what, str(run), *_cells(single, many))
                    progress.advance(task)
    out.print(table)
    return 0


def _cells(single: Sequence[float], many: Sequence[float]) -> list[str]:
    ratios = [other / one for one, other in zip(single, many, strict=True)]
    ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    return [f"{statistics.median(single):.1f}", f"{statistics.median(many):.1f}", ratio]


if __name__ == "__main__":
    raise SystemExit(main())
