"""The plot `plots.bars`: importance now, with 95 % intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..errors import InvalidParameterError
from ..ranking import largest_first
from ..validation import check_integer
from .parts import COLOURS, DIM, LONGEST_UNIT, TEXT, Explained, axes, band_text, frame, text_of

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
