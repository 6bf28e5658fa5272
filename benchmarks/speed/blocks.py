"""Loops that take turns, block by block: what the noise of the machine does to one, it does to all."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from benchmarks.speed.subjects import Observation

Key = TypeVar("Key")


class Loop:
    """A model with something beside it.

    Parameters
    ----------
    step
        Called before the model learns; what it returns is kept as the prediction, None where it has none.
    """

    def __init__(self, model: Any, step: Callable[[dict[str, Any], Any], Any]) -> None:
        self.model, self.step = model, step
        self.predictions: list[Any] = []

    def run(self, block: Sequence[Observation]) -> float:
        """Processor seconds for a block."""
        step, learn, keep = self.step, self.model.learn_one, self.predictions.append
        began = time.process_time()
        for x, y in block:
            keep(step(x, y))
            learn(x, y)
        return time.process_time() - began


def take_turns(
    loops: Mapping[Key, Loop], data: Sequence[Observation], block: int, tick: Callable[[], None]
) -> dict[Key, list[float]]:
    """By loop, processor seconds of each block."""
    times: dict[Key, list[float]] = {key: [] for key in loops}
    keys = list(loops)
    with _collector_apart():
        for number, start in enumerate(range(0, len(data), block)):
            turn = number % len(keys)
            for key in keys[turn:] + keys[:turn]:  # whoever is first finds a cold cache
                times[key].append(loops[key].run(data[start : start + block]))
            tick()
    return times


@contextmanager
def _collector_apart() -> Iterator[None]:
    # Else each loop would pay for walking the models of all others.
    is_set_aside = gc.get_freeze_count() > 0  # what a test has set aside stays so
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not is_set_aside:
            gc.unfreeze()


@dataclass(frozen=True)
class Spread:
    """A median over blocks, with the quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value or more."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


def ratio(times: Sequence[float], base: Sequence[float]) -> Spread:
    """How many times as long as `base`, which had the same blocks."""
    return Spread.of([one / other for one, other in zip(times, base, strict=True)])
