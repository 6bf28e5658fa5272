"""The plots `plots.change` and `plots.changes` of model changes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InvalidParameterError
from ..ranking import BAND, largest_first
from ..validation import check_choice, check_integer, check_number
from .parts import (
    COLOURS,
    DIM,
    LONGEST_UNIT,
    TEXT,
    Explanation,
    MethodChange,
    axes,
    band_text,
    frame,
    legend_below,
    signed,
    text_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Places: TypeAlias = npt.NDArray[np.int64]

_MOST_CHANGES = 60


def change(
    explanation: Explanation,
    top: int = 10,
    band: float = 1.0,
    method: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw importances before and after a change, the largest change on top.

    Both are of the same observations, which neither model has learnt. A star marks a change that is significant at 5 %
    over all features together (`ChangeExplanation.significant`); the number beside the bars is the change. A feature
    that one side does not know has no bar there.

    Parameters
    ----------
    top
        Valid range >= 1; features to draw.
    band
        Valid range >= 0; half-length of the whiskers, in half widths of the 95 % interval; 0 draws none.
    method
        `pfi` or `sage`; None is the explanation's first.

    Raises
    ------
    InvalidParameterError, ImportError
        As for `importance`; and the explanation has no importances, or none by that method.
    """
    check_integer("top", top, minimum=1)
    check_number("band", band, minimum=0.0)
    found = _by(explanation, method)
    ax = axes(ax, (8.0, 1.6 + 0.45 * min(top, max(len(found.features), 1))))
    delta, significant = found.delta, set(found.significant())
    shown = largest_first(delta, found.features)[:top]
    places = np.arange(len(shown))[::-1]
    _bars(ax, found, shown, places, band)
    ax.axvline(0.0, color=DIM, linewidth=0.8)
    ax.set_yticks(places, list(map(text_of, shown)))
    ax.set_ylim(-0.6, len(shown) - 0.4)
    texts = signed(delta[name] for name in shown)
    for name, place, text in zip(shown, places, texts, strict=True):
        ax.annotate(
            text + (" ★" if name in significant else ""),
            xy=(1.02, place),
            xycoords=("axes fraction", "data"),
            verticalalignment="center",
            color=TEXT if name in significant else DIM,
            annotation_clip=False,
        )
    hidden = len(delta) - len(shown)
    what = (explanation.verdict or "change").capitalize()
    frame(
        ax,
        f"{what} at {explanation.n_observations:,}: discrepancy {explanation.discrepancy:.2f}".replace(",", " "),
        f"{found.method.upper()} importance ({text_of(found.unit, LONGEST_UNIT)})",
        "",
    )
    handles, labels = ax.get_legend_handles_labels()
    whiskers = [text] if (text := band_text(band, "whiskers")) else []
    key = ["★ beyond noise", *whiskers, *([f"{hidden} smaller changes not shown"] if hidden else [])]
    blank = [ax.plot([], [], linestyle="none")[0] for _ in key]
    legend_below(ax, [*handles, *blank], [*labels, *key])
    return ax


def _bars(
    ax: Axes,
    found: MethodChange,
    shown: list[object],
    places: Places,
    band: float,
) -> None:
    sides = (
        ("before", found.before, found.before_std_error, 0.2, {"facecolor": "white", "edgecolor": DIM}),
        ("after", found.after, found.after_std_error, -0.2, {"facecolor": COLOURS[0]}),
    )
    for label, values, std_errors, offset, look in sides:
        there = [name in values for name in shown]
        heights = [values.get(name, math.nan) for name in shown]
        ax.barh(places + offset, heights, height=0.36, label=label, **look)  # type: ignore[arg-type]
        errors = [band * BAND * std_errors.get(name, math.nan) for name in shown]
        whiskers = [(h, p, e) for h, p, e, is_there in zip(heights, places, errors, there, strict=True) if is_there]
        if band > 0.0 and whiskers:
            h, p, e = (np.array(column) for column in zip(*whiskers, strict=True))
            ax.errorbar(h, p + offset, xerr=e, fmt="none", ecolor=TEXT, elinewidth=1.0, capsize=2.5)


def changes(
    explanations: Iterable[Explanation], top: int = 12, method: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw changes as columns: which features gained and lost importance.

    Violet has gained importance, orange has lost it. A number stands where the change of the feature is significant at
    5 % over all features of that change; cells without one are within noise, whatever their colour. Under each column:
    the observation at which it was explained, and the discrepancy.

    Parameters
    ----------
    explanations
        In their order; the last 60 are drawn.
    top
        Valid range >= 1; features to draw, those with the largest changes.
    method
        `pfi` or `sage`; None is each explanation's first.

    Raises
    ------
    InvalidParameterError
        There is no explanation, or one has no importances by that method.
    ImportError
        As for `importance`.
    """
    check_integer("top", top, minimum=1)
    found = [(e, _by(e, method)) for e in explanations][-_MOST_CHANGES:]
    if not found:
        raise InvalidParameterError("explanations", "at least one", found)
    deltas = [change.delta for _, change in found]
    features = list(dict.fromkeys(name for delta in deltas for name in delta))
    shown = largest_first({f: max(abs(delta.get(f, 0.0)) for delta in deltas) for f in features}, features)[:top]
    ax = axes(ax, (1.8 + 0.62 * len(found), 1.4 + 0.36 * len(shown)))
    table = np.array([[delta.get(f, math.nan) for delta in deltas] for f in shown]).reshape(len(shown), len(found))
    largest = float(np.nanmax(np.abs(table), initial=0.0)) or 1.0
    ax.pcolormesh(
        np.arange(len(found) + 1), np.arange(len(shown) + 1), table, cmap="PuOr", vmin=-largest, vmax=largest,
        edgecolors="white", linewidth=1.0,
    )  # fmt: skip
    texts = iter(signed(table.ravel()))
    significant = [set(change.significant()) for _, change in found]
    for row, name in enumerate(shown):
        for column, named in enumerate(significant):
            text = next(texts)
            if name in named:
                dark = abs(table[row, column]) > 0.6 * largest
                ax.text(
                    column + 0.5,
                    row + 0.5,
                    text,
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="white" if dark else TEXT,
                )
    ax.set_yticks(np.arange(len(shown)) + 0.5, list(map(text_of, shown)))
    ax.set_ylim(len(shown), 0)
    labels = [f"{e.n_observations:,}\n{e.discrepancy:.2f}".replace(",", " ") for e, _ in found]
    ax.set_xticks(np.arange(len(found)) + 0.5, labels, fontsize=7.5)
    ax.tick_params(length=0)
    hidden = f"; {len(features) - len(shown)} features not shown" if len(features) > len(shown) else ""
    unit = text_of(found[0][1].unit, LONGEST_UNIT)
    frame(ax, f"Changes of {found[0][1].method.upper()} importance ({unit}){hidden}", "", "")
    ax.set_xlabel("explained at observation, and discrepancy", color=DIM)
    ax.spines[["left", "bottom"]].set_visible(False)
    return ax


def _by(explanation: Explanation, method: str | None) -> MethodChange:
    if method is None:
        return explanation.first
    return explanation.importances[check_choice("method", method, explanation.importances)]
