"""Observations a second by one model call for all rows, and by one call per row: in turns, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from attributary_explainers import IncrementalPFI, as_batch, model_function, resolve_loss

from .subjects import quiet, subjects, table

N_SAMPLES = 5
N_WARM, N_BATCHED, N_ROW_BY_ROW = 20, 100, 10


@dataclass(frozen=True)
class Measured:
    """One kind of model: how many times as many observations one call for all rows takes in the same time.

    Attributes
    ----------
    rows
        Of one observation, in one call.
    ratio
        Median of the rounds; `least` and `most` of them.
    """

    name: str
    rows: int
    ratio: float
    least: float
    most: float


def measure(rounds: int = 5) -> list[Measured]:
    """Return what each kind of model takes; of processor time, which other work of the machine hardly changes."""
    found = []
    with quiet():
        for name, make in subjects():
            model = make()
            function = model_function(model, resolve_loss(model, None).output)
            sizes: list[int] = []
            _explain(_explainer(as_batch(partial(_counted, sizes, function))), N_WARM)
            batched, alone = _explainer(model), _explainer(_row_by_row(model))
            _explain(batched, N_WARM)
            _explain(alone, N_ROW_BY_ROW)
            ratios = [
                _per_observation(alone, N_ROW_BY_ROW) / _per_observation(batched, N_BATCHED) for _ in range(rounds)
            ]
            found.append(Measured(name, max(sizes), median(ratios), min(ratios), max(ratios)))
    return found


def show(found: list[Measured], console: Console) -> None:
    """Print the ratios as a table."""
    shown = Table("model", "rows in one call", "observations beside a call per row")
    for one in found:
        shown.add_row(one.name, str(one.rows), f"{one.ratio:.0f} x ({one.least:.0f} to {one.most:.0f})")
    console.print(f"PFI with n_samples={N_SAMPLES}, in turns in one process, processor time")
    console.print(shown)


def _explainer(model: Any) -> IncrementalPFI:
    return IncrementalPFI(model, loss="brier", n_samples=N_SAMPLES, seed=1)


def _row_by_row(model: Any) -> Callable[[Any], Any]:
    function = model_function(model, "probabilities")
    return lambda x: function(x)


def _counted(sizes: list[int], function: Any, rows: Any) -> Any:
    sizes.append(len(rows))
    return function.many(rows)


def _explain(explainer: IncrementalPFI, n: int) -> None:
    x, y = table(n, 2)
    for row, label in zip(x.to_dict("records"), y.tolist(), strict=True):
        explainer.explain_one(row, label)


def _per_observation(explainer: IncrementalPFI, n: int) -> float:
    began = time.process_time()
    _explain(explainer, n)
    return (time.process_time() - began) / n
