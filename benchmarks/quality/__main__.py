"""How near `Quality` is to metrics with the weights written out, and what it costs: `python -m benchmarks.quality`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from river import metrics as river
from river import utils
from sklearn import metrics as sklearn

from attributary_agents.state.codec import pack
from attributary_explainers import Quality

RIVER_AUC: Any = river.ROCAUC
ALPHA = 0.001
N = 6000
WINDOW = round(2 / ALPHA) - 1
POPULATIONS = {
    "balanced": (0.0, 1.0, 1.0),
    "27 % positive, weak": (-1.0, 0.3, 1.0),
    "1 % positive": (-5.0, 1.0, 1.0),
    "0.6 % positive, sure": (-7.0, 2.0, 1.0),
    "logits times thirty": (0.0, 30.0, 0.1),
    "all near 5 %": (-3.0, 0.1, 5.0),
    "all near one half": (0.0, 0.02, 20.0),
}
"""Mean and spread of the logits that are predicted; the true ones have the spread times the last number."""


def rows_of(name: str, seed: int = 0) -> list[tuple[bool, dict[bool, float]]]:
    """Return labels with the probabilities that a model of the population predicts."""
    mean, spread, truth = POPULATIONS[name]
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    y = rng.random(N) < 1.0 / (1.0 + np.exp(-(mean + truth * spread * x)))
    p = 1.0 / (1.0 + np.exp(-(mean + spread * x)))
    return [(label, {False: 1.0 - q, True: q}) for label, q in zip(y.tolist(), p.tolist(), strict=True)]


def nearness() -> Table:
    """Return the error of the area in each population, beside River's ten thresholds on the last 2 / alpha rows."""
    table = Table("scores", "exact", "Quality", "River, ten thresholds", "positives", title="roc_auc: value less exact")
    for name in POPULATIONS:
        rows = rows_of(name)
        y, p = np.array([label for label, _ in rows]), np.array([row[True] for _, row in rows])
        quality, ten = Quality(["roc_auc"], alpha=ALPHA), RIVER_AUC()
        for label, row in rows:
            quality.update(label, row)
        for label, row in rows[-WINDOW:]:
            ten.update(label, row)
        exact = sklearn.roc_auc_score(y, p, sample_weight=(1.0 - ALPHA) ** np.arange(N)[::-1])
        of_window = sklearn.roc_auc_score(y[-WINDOW:], p[-WINDOW:])
        errors = ((quality.value["roc_auc"] or 0.0) - exact, ten.get() - of_window)
        table.add_row(name, f"{exact:.4f}", *(f"{error:+.4f}" for error in errors), str(y.sum()))
    return table


def rounding() -> Table:
    """Return the largest differences of the other metrics from scikit-learn's with the same weights."""
    table = Table("metric", "difference", title="Others: largest difference from scikit-learn's, over the populations")
    oracles: dict[str, Any] = {
        "accuracy": sklearn.accuracy_score,
        "f1": sklearn.f1_score,
        "mcc": sklearn.matthews_corrcoef,
    }
    found = dict.fromkeys(oracles, 0.0)
    for name in POPULATIONS:
        rows, quality = rows_of(name), Quality(list(oracles), alpha=ALPHA)
        for row in rows:
            quality.update(*row)
        y, labels = [label for label, _ in rows], [row[True] > row[False] for _, row in rows]
        for metric, oracle in oracles.items():
            exact = oracle(y, labels, sample_weight=(1.0 - ALPHA) ** np.arange(N)[::-1])
            found[metric] = max(found[metric], abs((quality.value[metric] or 0.0) - exact))
    for metric, difference in found.items():
        table.add_row(metric, f"{difference:.1e}")
    return table


def cost() -> Table:
    """Return what metrics take per observation, to be read, and in a stored state."""
    table = Table("metrics", "µs per observation", "µs to read", "kB stored", title="Cost, without the reference")
    rows: list[Any] = rows_of("balanced")[:1000]
    numbers = [(row[True], row[False]) for _, row in rows]
    for names, given in (
        (["accuracy"], rows),
        (["accuracy", "roc_auc"], rows),
        (["accuracy", "macro_f1", "mcc"], rows),
        (["mae"], numbers),
        (["mae", "r2"], numbers),
    ):
        quality = Quality(names, alpha=ALPHA)
        for row in 3 * given:
            quality.update(*row)
        size = len(pack(b"", quality.snapshot())) / 1000
        update, read = _quickest(_feeding(quality.update, given)), _quickest(partial(getattr, quality, "value"))
        table.add_row(", ".join(names), f"{update / 1000 * 1e6:.2f}", f"{read * 1e6:.0f}", f"{size:.1f}")
    window: Any = utils.Rolling(RIVER_AUC, WINDOW)
    for label, metric in (("River's ROCAUC itself", RIVER_AUC()), (f"utils.Rolling(ROCAUC, {WINDOW})", window)):
        update = _quickest(_feeding(metric.update, rows))
        table.add_row(label, f"{update / 1000 * 1e6:.2f}", f"{_quickest(metric.get) * 1e6:.0f}", "")
    return table


def _feeding(update: Callable[..., None], rows: list[Any]) -> Callable[[], None]:
    def feed() -> None:
        for row in rows:
            update(*row)

    return feed


def _quickest(step: Callable[[], Any]) -> float:
    took = []
    for _ in range(20):
        began = time.perf_counter()
        step()
        took.append(time.perf_counter() - began)
    return min(took)


if __name__ == "__main__":
    console = Console()
    for made in (nearness(), rounding(), cost()):
        console.print(made)
