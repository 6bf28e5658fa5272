"""Exact importances of a data set, read from the leaves of a forest."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from ..errors import FastPathFaultWarning, InvalidParameterError, LabelError, warn_caller
from ..evaluation.function import TOLERANCE
from ..leaves.exact import ByRow, LeafTable, coalitions_of, exact_growth, exact_walks, pfi_cost
from ..leaves.forest import NotExactError
from ..predictions import GivenPredictions
from ..typing import Array, Prediction
from .tables import DataTable

Exact: TypeAlias = bool | Literal["auto"]
"""True: exact, or an error that says why not; False: by sampling; "auto": exact where that takes little time."""

CHEAP_NS = 3e9
"""What "auto" takes as cheap: about three seconds of one core."""


def check_exact(exact: Exact) -> Exact:
    """Return `exact`, or raise InvalidParameterError."""
    if exact is True or exact is False or exact == "auto":
        return exact
    raise InvalidParameterError("exact", 'True, False or "auto"', exact)


def leaf_table(table: DataTable) -> LeafTable:
    """Return a forest's leaves on a table, without asking the model.

    Raises
    ------
    NotExactError
        The model is no forest that can be read.
    """
    try:
        return LeafTable(table.model, table.xs, table.ys, table.loss)
    except NotExactError:
        raise
    except LabelError:
        raise NotExactError("a target is no number") from None  # of which the model's own loss tells
    except Exception as error:  # noqa: BLE001 - parts of scikit-learn that are not public: the model itself is asked
        raise NotExactError(f"its leaves could not be read: {type(error).__name__}: {error}") from None


def check_alike(table: DataTable, leaves: LeafTable) -> None:
    """Check that the leaves predict as the model does; warn if not.

    Raises
    ------
    NotExactError
        They differ.
    """
    _ = table.own_losses  # a target without a finite loss is told of as it is without leaves
    if _are_alike(leaves, leaves.predictions(), table.own_predictions):
        return
    warn_caller(
        FastPathFaultWarning(
            f"the leaves of {table.model_name} give other predictions than the model: the model itself is asked. "
            "Please report this with the versions of attributary and of the model's library"
        )
    )
    raise NotExactError("its leaves give other predictions than the model")


def _are_alike(found: LeafTable, ours: Array, predictions: list[Prediction]) -> bool:
    given = GivenPredictions(predictions, start=0)
    if (given.labels is None) != (found.forest.labels is None):
        return False
    theirs = given.array
    if given.labels is not None:
        theirs = np.zeros_like(ours)
        for column, label in enumerate(found.forest.labels or ()):
            at = given.column(label)
            if at >= 0:
                theirs[:, column] = given.array[:, at]
    apart = np.abs(ours - theirs) > TOLERANCE * np.maximum(1.0, np.abs(theirs))
    # Of labels: two classes may be equally probable but for rounding, and which is named then is an accident.
    return bool(apart.any(axis=1).mean() <= (0.02 if found.as_label else 0.0))


def growth_of(table: DataTable, most_ns: float | None = None) -> ByRow:
    """Return the growth of the losses over all pairs of rows.

    Raises
    ------
    NotExactError
        There is no exact value, or it takes longer than `most_ns`, in nanoseconds; None is however long.
    """
    leaves = leaf_table(table)
    _check_cost(pfi_cost(leaves, table.players), most_ns)
    check_alike(table, leaves)
    return exact_growth(leaves, table.players)


def walks_of(table: DataTable, most_ns: float | None = None, *, of_drawn: bool = False) -> ByRow:
    """Return the Shapley values of each observation over all coalitions.

    Raises
    ------
    NotExactError
        As for `growth_of`.
    """
    coalitions = coalitions_of(leaf_table(table), table.players)
    _check_cost(coalitions.cost(of_drawn=of_drawn), most_ns)
    check_alike(table, coalitions.table)
    return exact_walks(coalitions, table.players, of_drawn=of_drawn)


def _check_cost(cost: float, most_ns: float | None) -> None:
    if most_ns is not None and cost > most_ns:
        raise NotExactError(f"it would take about {cost / 1e9:.0f} s")
