"""Plots of importances and of partial dependence as they are now."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameterError
from ..ranking import largest_first
from ..validation import check_integer
from .parts import COLOURS, DIM, LONGEST_UNIT, TEXT, Dependence, Explained, axes, band_text, frame, styles, text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bars(explained: Explained, top: int = 20, ax: Axes | None = None) -> Axes:
    """Draw importances as bars with 95 % whiskers, the largest on top.

    Parameters
    ----------
    explained
        With at least one importance: `IncrementalPFI`, `IncrementalSAGE`, `IncrementalMDI`, `BatchImportance`. Whiskers
        are where it has a finite `half_width`.
    top
        Valid range >= 1; features drawn at most, those of the largest absolute values.

    Raises
    ------
    InvalidParameterError
        `top` is out of its range, or there is no importance yet.
    ImportError
        matplotlib is not installed.

    Examples
    --------
    >>> from attributary_explainers import BatchImportance, plots
    >>> ax = plots.bars(BatchImportance({"age": 0.2, "rate": 0.4}, {"age": 0.01, "rate": 0.02}, 100))
    >>> [text.get_text() for text in ax.get_yticklabels()], ax.get_xlabel()
    (['rate', 'age'], 'importance (whiskers: 95 % interval)')
    """
    check_integer("top", top, minimum=1)
    importance = {name: value for name, value in explained.importance.items() if math.isfinite(value)}
    if not importance:
        raise InvalidParameterError(
            "explained", "one that has an importance (explain two observations or more first)", explained
        )
    largest = largest_first(importance, [*importance])[:top]
    names = sorted(largest, key=lambda name: (-importance[name], str(name)))
    half_width = getattr(explained, "half_width", {})
    widths = [half_width.get(name, math.nan) for name in names]
    ax = axes(ax, (6.0, 1.2 + 0.3 * len(names)))
    places = range(len(names))
    ax.barh(places, [importance[name] for name in names], height=0.7, color=COLOURS[0], alpha=0.75)
    for place, name, width in zip(places, names, widths, strict=True):
        if math.isfinite(width):
            ax.errorbar(importance[name], place, xerr=width, color=TEXT, elinewidth=1.2, capsize=2.5, gid="whisker")
    ax.axvline(0.0, color=DIM, linewidth=0.8, gid="zero")
    ax.set_yticks(list(places), list(map(text_of, names)))
    ax.invert_yaxis()
    hidden = len(importance) - len(names)
    title = f"Importance by {explainer.upper()}" if (explainer := getattr(explained, "name", None)) else "Importance"
    title += f", {len(names)} of {len(importance)} features" if hidden else ""
    unit = getattr(getattr(explained, "loss", None), "statement", None)
    said = [text_of(unit, LONGEST_UNIT)] if unit else []
    said += [band_text(1.0, "whiskers")] if any(map(math.isfinite, widths)) else []
    frame(ax, title, "importance" + (f" ({'; '.join(said)})" if said else ""), "")
    return ax


if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pdp(pdp: Dependence, feature: Any, ice: bool = True, ax: Axes | None = None) -> Axes:
    """Draw partial dependence: a line over numbers, bars over categories.

    Ticks at the bottom are the feature's recent values (the rug): where there are none, the line is a guess. Thin grey
    lines (dots for categories) are the predictions for single recent observations (ICE).

    Parameters
    ----------
    pdp
        That follows the feature and has a curve of it.
    ice
        Whether to draw the observations that `pdp` keeps (its `n_ice`).

    Raises
    ------
    InvalidParameterError
        There is no curve of the feature.
    ImportError
        matplotlib is not installed.
    """
    curves = pdp.pdp
    if feature not in curves:
        known = f"one of {list(curves)}" if curves else "one that has a curve (there is none yet: explain more first)"
        raise InvalidParameterError("feature", known, feature)
    ax = axes(ax, (6.0, 4.0))
    (grid, means), recent = curves[feature], pdp.recent_numbers.get(feature)
    colour = styles(list(curves), [feature])[feature][0]
    lines = pdp.ice.get(feature, []) if ice else []
    if recent is not None:
        for points, predictions in lines:
            ax.plot(points, predictions, color=DIM, alpha=0.35, linewidth=0.8, gid="ice")
        marker = "o" if len(grid) < 20 else ""
        ax.plot(grid, means, color=colour, linewidth=2.2, marker=marker, markersize=4, gid="pdp")
        transform = ax.get_xaxis_transform()
        rug = [0.01] * len(recent)
        ax.plot(recent, rug, "|", color=TEXT, alpha=0.5, markersize=8, transform=transform, gid="rug")
    else:
        order = sorted(range(len(grid)), key=lambda i: _category_key(grid[i]))
        place = {grid[i]: k for k, i in enumerate(order)}
        ax.bar(list(place.values()), [means[i] for i in order], color=colour, alpha=0.7, width=0.6)
        for points, predictions in lines:
            kept = [(place[g], p) for g, p in zip(points, predictions, strict=True) if g in place]
            ax.plot(*zip(*kept, strict=True), ".", color=TEXT, alpha=0.4, markersize=5, gid="ice")
        ax.set_xticks(list(place.values()), list(map(text_of, place)))
    predicted = "mean prediction" if pdp.chosen_label is None else f"mean probability of {text_of(pdp.chosen_label)}"
    frame(ax, f"Partial dependence on {text_of(feature)}", text_of(feature), predicted)
    return ax


def _category_key(category: Any) -> tuple[bool, float, str]:
    is_number = isinstance(category, (int, float))
    return not is_number, float(category) if is_number else 0.0, str(category)
