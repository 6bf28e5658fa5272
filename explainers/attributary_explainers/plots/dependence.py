"""The plot `plots.pdp`: partial dependence on a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameterError
from .parts import DIM, TEXT, Dependence, axes, frame, styles, text_of

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
