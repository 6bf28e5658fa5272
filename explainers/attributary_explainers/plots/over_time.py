"""Plots of importance, and of shares of importance, over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidParameterError
from ..ranking import largest_first
from ..validation import check_integer, check_number
from .parts import DIM, LONGEST_UNIT, History, axes, band_text, change_marks, end_labels, frame, styles, text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importance(
    history: History,
    features: Iterable[Any] | None = None,
    top: int = 8,
    band: float = 1.0,
    changes: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw importance over time: lines with bands, and model changes.

    Parameters
    ----------
    history
        With at least one record.
    features
        Features to draw; None takes the `top` with the largest sum of absolute values over the whole history, so that a
        feature that the model has stopped using is still there.
    top
        Valid range >= 1. More lines tell more and are harder to tell apart.
    band
        Valid range >= 0, in half widths of the 95 % interval to either side; 0 draws none.
    changes
        Whether to draw the change marks: a line where a change was explained, and a shade back to its alarm.

    Raises
    ------
    InvalidParameterError
        A parameter is out of its range, a feature was never recorded, or nothing was.
    ImportError
        matplotlib is not installed.

    Examples
    --------
    >>> from attributary_explainers import BatchImportance, ImportanceHistory, plots
    >>> history = ImportanceHistory(unit="squared loss")
    >>> history.record(BatchImportance({"age": 0.2}, {"age": 0.01}, 100), position=100)
    >>> history.record(BatchImportance({"age": 0.4}, {"age": 0.01}, 100), position=200)
    >>> ax = plots.importance(history)
    >>> ax.get_ylabel()
    'importance\\n(squared loss)'
    """
    check_number("band", band, minimum=0.0)
    shown = _shown(history, features, top)
    ax = axes(ax, (8.0, 4.0))
    zero = ax.axhline(0.0, color=DIM, linewidth=0.8)
    zero.set_gid("zero")
    style, values_of = styles(history.names, shown), {name: history.series(name) for name in shown}
    for name, (positions, values, half_widths) in values_of.items():
        colour, dash = style[name]
        low, high = values - band * half_widths, values + band * half_widths
        if band > 0.0 and np.isfinite(half_widths).any():
            ax.fill_between(positions, low, high, color=colour, alpha=0.15, linewidth=0)
        marker = "o" if len(positions) == 1 else ""
        ax.plot(positions, values, color=colour, linestyle=dash, marker=marker, linewidth=1.6, label=str(name))
    _set_y(ax, [(values, band * half_widths) for _, values, half_widths in values_of.values()])
    rows = _set_x(ax, history, changes)
    hidden = len(history.names) - len(shown)
    title = f"Importance by {history.explainer.upper()}" if history.explainer else "Importance"
    title += f", {len(shown)} of {len(history.names)} features" if hidden else ""
    unit = f"importance\n({text_of(history.unit, LONGEST_UNIT)})" if history.unit else "importance"
    has_band = any(np.isfinite(half_widths).any() for _, _, half_widths in values_of.values())
    said = band_text(band) if has_band else ""
    frame(ax, title, f"observations ({said})" if said else "observations", unit, rows)
    ends = [(_last(values), str(name), style[name][0]) for name, (_, values, _) in values_of.items()]
    end_labels(ax, [end for end in ends if math.isfinite(end[0])])
    return ax


def shares(history: History, features: Iterable[Any] | None = None, top: int = 8, ax: Axes | None = None) -> Axes:
    """Draw stacked shares of importance over time; negatives count as 0.

    A record in which nothing is positive is empty. Parameters and errors are those of `importance`; the features
    that are not drawn by themselves are together `others`.
    """
    shown = _shown(history, features, top)
    ax = axes(ax, (8.0, 4.0))
    columns = {name: np.nan_to_num(np.clip(history.series(name)[1], 0.0, None)) for name in history.names}
    total = np.sum(list(columns.values()), axis=0)
    part = {name: np.divide(c, total, out=np.zeros(len(total)), where=total > 0.0) for name, c in columns.items()}
    # The order of first appearance, which does not change, from bottom to top.
    stack = [name for name in history.names if name in shown]
    style = styles(history.names, shown)
    areas, colours, labels = [part[name] for name in stack], [style[n][0] for n in stack], list(map(text_of, stack))
    if rest := [part[name] for name in part if name not in shown]:
        areas, colours, labels = [*areas, np.sum(rest, axis=0)], [*colours, "#d5d9de"], [*labels, "others"]
    handles = ax.stackplot(
        history.positions, areas, colors=colours, labels=labels, alpha=0.85, edgecolor="white", linewidth=0.5
    )
    ax.set_ylim(0.0, 1.0)
    rows = _set_x(ax, history, changes=True)
    title = f"Shares of importance by {history.explainer.upper()}" if history.explainer else "Shares of importance"
    frame(ax, title, "observations", "share of importance", rows)
    ax.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    return ax


def _shown(history: History, features: Iterable[Any] | None, top: int) -> list[Any]:
    check_integer("top", top, minimum=1)
    if not hasattr(history, "series"):
        raise InvalidParameterError(
            "history",
            "an ImportanceHistory: make one, call history.record(explainer) as the stream goes on, and draw that "
            "(plots.bars draws the importance that an explainer has now)",
            history,
        )
    if not len(history):
        raise InvalidParameterError("history", "one with a record: the explainer had nothing to say so far", history)
    if isinstance(features, str):
        raise InvalidParameterError("features", "a list of features", features)
    if features is not None:
        chosen = list(dict.fromkeys(features))
        for name in chosen:
            history.series(name)  # refuses what was never recorded
        return chosen
    size = {name: float(np.nansum(np.abs(history.series(name)[1]))) for name in history.names}
    largest = set(largest_first(size, [*size])[:top])
    return [name for name in history.features if name in largest]


def _last(values: Any) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else math.nan


def _set_x(ax: Axes, history: History, changes: bool) -> int:
    """Fit the x axis to the records and later changes; leave out earlier ones.

    Return the number of rows that the labels of the changes take.
    """
    first, last = history.positions[[0, -1]]
    marks = [mark for mark in history.changes if mark.position >= first] if changes else []
    last = max([last, *(mark.position for mark in marks)])
    if last > first:
        ax.set_xlim(first, last)
    return change_marks(ax, marks)


def _set_y(ax: Axes, lines: list[tuple[Any, Any]]) -> None:
    """Fit the y axis to all lines, and to bands that do not dwarf them."""
    low = high = 0.0
    for values, errors in lines:
        known = np.isfinite(values)
        reach = np.nan_to_num(errors[known])
        reach = np.minimum(reach, np.quantile(reach, 0.95)) if len(reach) else reach
        low = min([low, *(values[known] - reach).tolist()])
        high = max([high, *(values[known] + reach).tolist()])
    margin = 0.03 * (high - low) or 1.0
    ax.set_ylim(low - margin, high + margin)
