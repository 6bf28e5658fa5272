"""One compiled call for an observation: what trees have learnt is taken in, and rows are sent down them."""

from __future__ import annotations

from typing import Any

from river.metrics import Accuracy, ConfusionMatrix

from ...compiled import compiled
from ...objects import addresses_of, attribute, has_failed, is_a, item, list_size, number_at, release
from .changed_rows import vote_grid
from .learning import take_in_all
from .votes import classify

NAMES = addresses_of("cm", "total_weight", "_total_true_positives", Accuracy, ConfusionMatrix)
_MATRIX, _WEIGHT, _RIGHT, _ACCURACY, _CONFUSION = range(5)


@compiled(reads_objects=True)
def classify_at_once(
    trees: int,
    metrics: int,
    normalises: bool,
    names: Any,
    X: Any,
    order: Any,
    P: Any,
    known: Any,
    news: Any,
    F: int,
    table: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    leaves: Any,
    marks: Any,
    tables: Any,
    extras: Any,
) -> int:
    """Take in what trees have learnt and predict; return 1 and what `classify` returns, 0 where Python has to look.

    Parameters
    ----------
    trees, known, news, F, table, leaves, marks, tables
        See `take_in_all`.
    metrics, names
        The addresses of the list of metrics by which votes are weighed, 0 where all weigh the same, and `NAMES`.
    normalises
        Whether votes are made to sum to 1.
    X, order, P, nodes, thresholds, targets, listed, extras
        See `classify`.
    """
    if not _take_in(trees, metrics, normalises, names, known, news, F, table, leaves, marks, tables):
        return 0
    front = news[: 6 + len(table)]
    return 1 + classify(X, order, front, table, nodes, thresholds, targets, listed, leaves, marks, tables, extras, P)


@compiled(reads_objects=True)
def vote_grid_at_once(
    trees: int,
    metrics: int,
    normalises: bool,
    names: Any,
    X: Any,
    column: int,
    n_points: int,
    P: Any,
    known: Any,
    news: Any,
    F: int,
    table: Any,
    nodes: Any,
    thresholds: Any,
    targets: Any,
    listed: Any,
    leaves: Any,
    marks: Any,
    tables: Any,
) -> int:
    """Do what `classify_at_once` does by `vote_grid`, which has `column` and `n_points`."""
    if not _take_in(trees, metrics, normalises, names, known, news, F, table, leaves, marks, tables):
        return 0
    front = news[: 6 + len(table)]
    given = (front, table, nodes, thresholds, targets, listed, leaves, marks, tables)
    return 1 + vote_grid(X, column, n_points, *given, P)


@compiled(reads_objects=True)
def _take_in(
    trees: int,
    metrics: int,
    normalises: bool,
    names: Any,
    known: Any,
    news: Any,
    F: int,
    table: Any,
    leaves: Any,
    marks: Any,
    tables: Any,
) -> bool:
    """Take in what trees have learnt, and begin the news of `classify`; return False where Python has to look."""
    if take_in_all(trees, known, table, news, F, leaves, marks, tables) != 1:
        return False
    front = news[: 6 + len(table)]
    if metrics == 0:
        front[6:] = 1.0
    elif not read_accuracies(metrics, names, front[6:]):
        return False
    front[0], front[1], front[5] = 1.0, 1.0 if normalises else 0.0, F
    front[2:5] = 0.0
    return True


@compiled(reads_objects=True)
def read_accuracies(metrics: int, names: Any, weights: Any) -> bool:
    """Write the weights that a forest gives its trees by their accuracy; return whether they have this metric."""
    is_known = list_size(metrics) == len(weights)
    for i in range(len(weights)):
        metric = item(metrics, i)
        matrix = attribute(metric, names[_MATRIX])
        is_known &= is_a(metric, names[_ACCURACY]) and is_a(matrix, names[_CONFUSION])
        total, right = number_at(matrix, names[_WEIGHT]), number_at(matrix, names[_RIGHT])
        release(matrix)
        score = right / total if total != 0.0 else 0.0
        weights[i] = score if score > 0.0 else 1.0
    return not has_failed() and is_known  # what has failed is to be forgotten in any case
