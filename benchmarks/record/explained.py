"""What explaining costs a worker: the processor time of a record with explainers, over that of one that is only learnt.

    python -m benchmarks.record.explained                     # a forest of ten, some minutes
    python -m benchmarks.record.explained --records 800 --only iPFI everything

Each row is a partition that handles the same records of Agrawal's credit data, by `Partition.handle`, in a process of
its own, as a worker is: in a shared one Python's collector looks through the objects of all rows in the time of one.
The processes take turns, a block of records each. *Learning only* predicts, scores and learns; the *model alone*
predicts and learns without a worker. A ratio is of a period of 800 records, in which every explainer has come round to
all that it does; its median, and the least and the largest behind it.
"""

from __future__ import annotations

import argparse
import gc
import logging
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import orjson
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from river.datasets import synth

from attributary_agents.config.reading import parse_config
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record

MODEL_ID = "credit"
TOPIC = "observations"
FOREST: dict[str, Any] = {"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}}

PERIOD = 800
"""Records of which one ratio is: partial dependence asks about a block of so many at once."""
WARM_UP = 2000
"""Records that each row has had before: reservoirs are full, references taken."""

OFF: dict[str, Any] = {"explainers": {}, "change": None, "watch_loss": False, "quality": []}
PFI: dict[str, Any] = {"pfi": {"n_samples": 10}}
SAGE: dict[str, Any] = {"sage": {"n_samples": 10}}

LEARNS, ALONE = "learning only", "model alone"
ROWS: dict[str, dict[str, Any]] = {
    LEARNS: OFF,
    "iPFI": {**OFF, "explainers": PFI},
    "iSAGE": {**OFF, "explainers": SAGE},
    "mdi": {**OFF, "explainers": {"mdi": {}}},
    "pdp": {**OFF, "explainers": {"pdp": {}}},
    "change": {key: value for key, value in {**OFF, "explainers": PFI}.items() if key != "change"},
    "watch_loss, quality": {"explainers": {}, "change": None},
    "iPFI, iSAGE, change": {"explainers": {**PFI, **SAGE}, "watch_loss": False, "quality": []},
    "iPFI, iSAGE, change, quality": {"explainers": {**PFI, **SAGE}},
    "everything": {"explainers": {**PFI, **SAGE, "mdi": {}, "pdp": {}}},
}
"""What the configuration says of the model, beside which it is."""

Handle = Callable[[Sequence[bytes]], float]
"""Handles the values of records; returns the seconds of the processor that it took."""

out = Console(width=120)


def observations() -> Iterator[bytes]:
    """Yield values of records, of three functions of Agrawal's in turn."""
    for seed in range(1, 1000):
        for x, y in synth.Agrawal(classification_function=(1, 3, 6)[seed % 3], seed=seed).take(20_000):
            yield orjson.dumps({"x": x, "y": bool(y)})


def worker(settings: dict[str, Any]) -> Handle:
    """Return what handles records by a partition whose model is configured so."""
    config = parse_config({"models": {MODEL_ID: {"model": FOREST, **settings}}})
    partition = Partition(TOPIC, 0, config, lambda _key: None, time.perf_counter)
    key, offset = MODEL_ID.encode(), 0

    def handle(values: Sequence[bytes]) -> float:
        nonlocal offset
        records = [
            Record(TOPIC, 0, n, 1_700_000_000_000 + n, key, value) for n, value in enumerate(values, start=offset)
        ]
        offset += len(records)
        began = time.process_time()
        for record in records:
            partition.handle(record)
        return time.process_time() - began

    return handle


def alone() -> Handle:
    """Return what lets River's model predict and learn by itself."""
    config = parse_config({"models": {MODEL_ID: {"model": FOREST, **OFF}}})
    model = Partition(TOPIC, 0, config, lambda _key: None).models.find_or_make(MODEL_ID).model

    def handle(values: Sequence[bytes]) -> float:
        chosen = [orjson.loads(value) for value in values]
        began = time.process_time()
        for one in chosen:
            model.predict_proba_one(one["x"])
            model.learn_one(one["x"], one["y"])
        return time.process_time() - began

    return handle


class Row:
    """A process that handles the records of one row, as many at a time as it is asked to.

    Parameters
    ----------
    name
        Of `ROWS`, or `ALONE`.
    """

    def __init__(self, name: str) -> None:
        context = get_context("spawn")
        self._name = name
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_handle_in_turn, args=(name, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()
        self._process.join()

    def handle(self, n: int) -> float:
        """Let the next `n` records of the stream be handled; return the seconds of the processor that they took.

        Raises
        ------
        RuntimeError
            The process has ended; what it died of is on the standard error.
        """
        try:
            self._connection.send(n)
            seconds: float = self._connection.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError(f"the process of the row {self._name!r} has ended, see above") from error
        return seconds


def _handle_in_turn(name: str, connection: Connection) -> None:
    """Handle records whenever they are asked for, until nobody is left who asks."""
    warnings.simplefilter("ignore")
    logging.disable()
    gc.freeze()  # as a worker does before its first model: no collection looks through all modules
    handle, stream = alone() if name == ALONE else worker(ROWS[name]), observations()
    while True:
        try:
            n = connection.recv()
        except EOFError:
            return
        connection.send(handle(list(islice(stream, n))))


def measured(
    names: Sequence[str], n: int, block: int, tick: Callable[[], None] = lambda: None
) -> dict[str, list[float]]:
    """Return the seconds of each period of each row; those over which ratios are come first."""
    keys = list(dict.fromkeys((ALONE, LEARNS, *names)))
    of_blocks: dict[str, list[float]] = {name: [] for name in keys}
    with ExitStack() as stack:
        rows = {name: stack.enter_context(Row(name)) for name in keys}
        for row in rows.values():
            row.handle(WARM_UP)
            tick()
        for number in range(n // block):
            turn = number % len(keys)
            for name in keys[turn:] + keys[:turn]:  # whoever is first finds a cold cache
                of_blocks[name].append(rows[name].handle(block))
            tick()
    size = max(PERIOD // block, 1)
    whole = max(n // block // size, 1)
    return {name: [sum(took[i * size : (i + 1) * size]) for i in range(whole)] for name, took in of_blocks.items()}


def ratio(one: Sequence[float], other: Sequence[float]) -> str:
    """Return the median of the periods' ratios, with the least and the largest."""
    found = [a / b for a, b in zip(one, other, strict=True)]
    return f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.record.explained",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rows = [name for name in ROWS if name != LEARNS]
    parser.add_argument("--only", nargs="+", choices=rows, metavar="ROW", default=rows, help=f"of {', '.join(rows)}")
    parser.add_argument("--records", type=int, default=3 * PERIOD, help=f"measured, of each row; default {3 * PERIOD}")
    parser.add_argument("--block", type=int, default=40, help="records of a turn; default 40")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.disable()
    # Drawn when a step is done: a thread that draws would be in the processor time.
    with Progress(console=out, transient=True, auto_refresh=False, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=len(args.only) + 2 + args.records // args.block)
        took = measured(args.only, args.records, args.block, lambda: bar.update(task, advance=1, refresh=True))
    table = Table(title=f"ARF of 10, Agrawal, d 9: processor time of {args.records} records")
    for head in ("with", "µs per record", "over learning only", "over the model alone"):
        table.add_column(head, justify="left" if head == "with" else "right")
    n = len(took[ALONE]) * min(PERIOD // args.block * args.block, args.records)
    for name, of_row in took.items():
        beside = "" if name in (ALONE, LEARNS) else ratio(of_row, took[LEARNS])
        over = "" if name == ALONE else ratio(of_row, took[ALONE])
        table.add_row(name, f"{1e6 * sum(of_row) / n:,.0f}", beside, over)
    out.print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
