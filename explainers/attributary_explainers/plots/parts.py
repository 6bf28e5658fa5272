"""Parts of plots: figures, colours, labels, and the protocols of objects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..wording import printable

Floats: TypeAlias = npt.NDArray[np.float64]
Line: TypeAlias = tuple[list[Any], list[float]]
"""Grid values and, for each, a prediction or mean prediction."""


class Mark(Protocol):
    """A mark of a model change in a history, as `ChangeMark` is."""

    @property
    def position(self) -> float:
        """Where the change was explained."""

    @property
    def since(self) -> float:
        """Where its alarm was raised."""

    @property
    def label(self) -> str:
        """Short text, perhaps empty."""


class Explained(Protocol):
    """Anything with an importance now, and perhaps a `half_width`."""

    @property
    def importance(self) -> Mapping[Any, float]:
        """Importance of each feature."""


class History(Protocol):
    """Importance over time, as `ImportanceHistory` has it."""

    def __len__(self) -> int: ...

    @property
    def explainer(self) -> str | None:
        """Name of the explainer."""

    @property
    def unit(self) -> str | None:
        """Unit of the importances."""

    @property
    def positions(self) -> Floats:
        """Positions of the records, ascending."""

    @property
    def features(self) -> list[Any]:
        """Every feature recorded, the largest share of the newest record first."""

    @property
    def names(self) -> list[Any]:
        """Every feature recorded, in an order that does not change."""

    @property
    def changes(self) -> Sequence[Mark]:
        """Marks of model changes, ascending."""

    def series(self, feature: Any) -> tuple[Floats, Floats, Floats]:
        """Positions, importances and standard errors of a feature."""


class Dependence(Protocol):
    """Curves of partial dependence, as `IncrementalPDP` has them."""

    @property
    def pdp(self) -> dict[Any, Line]:
        """Feature to its grid values and the mean predictions there."""

    @property
    def ice(self) -> dict[Any, list[Line]]:
        """Feature to the lines of single observations."""

    @property
    def recent_numbers(self) -> dict[Any, list[float]]:
        """Feature to its recent values, for features that are numbers."""

    @property
    def chosen_label(self) -> Any:
        """Class whose probability is the prediction; None for a number."""


class MethodChange(Protocol):
    """A change in importance by a method, as `ImportanceChange` is."""

    @property
    def method(self) -> str:
        """`pfi` or `sage`."""

    @property
    def unit(self) -> str:
        """Name, unit and largest value of the importances' loss, in words."""

    @property
    def features(self) -> list[Any]:
        """Every feature that either side knows."""

    @property
    def before(self) -> dict[Any, float]:
        """Importance of the old model."""

    @property
    def before_std_error(self) -> dict[Any, float]:
        """Standard error of `before`."""

    @property
    def after(self) -> dict[Any, float]:
        """Importance of the new model."""

    @property
    def after_std_error(self) -> dict[Any, float]:
        """Standard error of `after`."""

    @property
    def delta(self) -> dict[Any, float]:
        """Change in importance per feature."""

    def significant(self) -> list[Any]:
        """Features whose change is beyond noise, the largest first."""


class Explanation(Protocol):
    """An explanation of a model change, as `ChangeExplanation` is."""

    @property
    def verdict(self) -> str | None:
        """Verdict on the change; None if unknown."""

    @property
    def n_observations(self) -> int:
        """Observation at which the change was explained."""

    @property
    def discrepancy(self) -> float:
        """Discrepancy between old and new model."""

    @property
    def first(self) -> MethodChange:
        """The change in importance by the first method."""

    @property
    def importances(self) -> Mapping[str, MethodChange]:
        """Method to the change in importance."""


if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, darkened to stand out from white but each by as much as keeps it apart from the others for
# colour-blind readers too; their yellow is grey here.
COLOURS = ("#0068a8", "#c04000", "#00936c", "#a03878", "#d09000", "#4a9fda", "#262626", "#8c8c8c")
DIM, TEXT = "#5c6570", "#1d2126"
_DASHES = ("-", "--", ":", "-.")
_FONT = 9.0
_MARK_FONT = 8.0
_MARK_ROW = 1.3 * _MARK_FONT
_LONGEST_NAME = 32
LONGEST_UNIT = 60
"""Characters of a loss in words: name, unit and largest value."""
_MARK_ROWS = 3
"""Rows above the plot for labels of change marks; a label that fits in none is left out, its line stays."""


def axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or the axes of a new figure.

    A new figure is not registered with pyplot: it needs no screen, is never shown by itself, and is gone with the
    last reference to it. `ax.figure` is the figure.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'attributary[plot]'") from None
    return Figure(figsize=size, layout="constrained").subplots() if ax is None else ax


def text_of(name: Any, longest: int = _LONGEST_NAME) -> str:
    """Return a name as a short line that is never read as a formula."""
    text = printable(" ".join(str(name).split())) or "(no name)"
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return text.replace("$", r"\$")


def frame(ax: Axes, title: str, x_label: str, y_label: str, rows: int = 0) -> None:
    """Set the title and the axes' names; remove the top and right lines."""
    ax.set_title(title, loc="left", fontsize=11, color=TEXT, pad=6.0 + _MARK_ROW * rows)
    ax.set_xlabel(x_label, color=DIM)
    ax.set_ylabel(y_label, color=DIM)
    ax.spines[["top", "right"]].set_visible(False)


def band_text(band: float, what: str = "band") -> str:
    """Return the meaning of a band or whiskers; empty where none is drawn."""
    if band == 0.0:
        return ""
    return f"{what}: 95 % interval" if band == 1.0 else f"{what}: {band:g} × the 95 % interval"


def styles(names: Sequence[Any], shown: Iterable[Any]) -> dict[Any, tuple[str, str]]:
    """Return colour and line style per shown feature.

    A feature has the colour of its place in `names`, so that it keeps it from picture to picture. Where two of one
    picture would share it, the one shown later takes the next free colour; past eight, lines are dashed.
    """
    chosen: dict[Any, tuple[str, str]] = {}
    free = [(colour, dash) for dash in _DASHES for colour in COLOURS]
    for name in shown:
        if not free:
            free = [(colour, dash) for dash in _DASHES for colour in COLOURS]
        place = names.index(name) % len(COLOURS)
        wanted = (COLOURS[place], _DASHES[0])
        chosen[name] = wanted if wanted in free else free[0]
        free.remove(chosen[name])
    return chosen


def legend_below(ax: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Draw a legend in a single row at a fixed distance below the x axis."""
    from matplotlib.transforms import ScaledTranslation

    scale = ax.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]
    below = ax.transAxes + ScaledTranslation(0.0, -36.0 / 72.0, scale)
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": below}
    ax.legend(handles, labels, ncols=len(labels), frameon=False, fontsize=_FONT, borderaxespad=0.0, **place)


def signed(values: Iterable[float]) -> list[str]:
    """Return signed numbers with equal decimals, set by the largest.

    The largest has three significant digits.

    Examples
    --------
    >>> signed([0.1284, -0.014, 0.00004])
    ['+0.128', '−0.014', '0.000']
    """
    values = list(values)
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    decimals = min(max(2 - math.floor(math.log10(largest)), 0), 12) if largest > 0.0 else 0
    texts = [f"{value:+.{decimals}f}" for value in values]
    return [(text if text.strip("+-0.na") else text[1:]).replace("-", "−") for text in texts]


def end_labels(ax: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write (y, text, colour) right of the plot, so that none overlap."""
    low, high = ax.get_ylim()
    height = ax.get_position().height * ax.get_figure(root=True).get_figheight() * 72.0  # type: ignore[union-attr]
    wanted = [(y - low) / (high - low) for y, _, _ in ends]
    places = spread(wanted, gap=1.25 * _FONT / height)
    for (_, text, colour), y, place in zip(ends, wanted, places, strict=True):
        ax.annotate(
            text_of(text),
            xy=(1.0, y),
            xytext=(1.03, place),
            xycoords="axes fraction",
            color=colour,
            fontsize=_FONT,
            verticalalignment="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places at least `gap` apart, as near to `wanted` as can be.

    Examples
    --------
    >>> spread([0.5, 0.5, 0.0], gap=0.25)
    [0.375, 0.625, 0.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups: list[tuple[float, int]] = []  # mean of the lowest member's wish, and number of members
    for i in order:
        start, n = wanted[i], 1
        while groups and groups[-1][0] + gap * groups[-1][1] > start:
            before, m = groups.pop()
            start, n = (before * m + (start - gap * m) * n) / (m + n), m + n
        groups.append((start, n))
    found = [start + gap * k for start, n in groups for k in range(n)]
    places = dict(zip(order, found, strict=True))
    return [places[i] for i in range(len(wanted))]


def change_marks(ax: Axes, marks: Sequence[Mark]) -> int:
    """Draw each change: a line, a shade back to its alarm, and a label.

    Return the number of rows that the labels take.
    """
    low, high = ax.get_xlim()
    width = ax.get_position().width * ax.get_figure(root=True).get_figwidth() * 72.0  # type: ignore[union-attr]
    ends = [float("-inf")] * _MARK_ROWS
    for mark in marks:
        line = ax.axvline(mark.position, color=TEXT, linewidth=1.0)
        line.set_gid("change")
        if mark.since < mark.position:
            ax.axvspan(mark.since, mark.position, color=TEXT, alpha=0.08, linewidth=0)
        at = (mark.position - low) / (high - low) * width
        long = 0.6 * _MARK_FONT * min(len(mark.label), _LONGEST_NAME)
        start = at if at < width / 2 else at - long
        row = next((row for row, end in enumerate(ends) if start > end), None)
        if not mark.label or row is None:
            continue
        ends[row] = start + long + _MARK_FONT
        ax.annotate(
            text_of(mark.label),
            xy=(mark.position, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0.0, 3.0 + _MARK_ROW * row),
            textcoords="offset points",
            fontsize=_MARK_FONT,
            color=TEXT,
            horizontalalignment="left" if at < width / 2 else "right",
            annotation_clip=False,
        )
    return sum(end > float("-inf") for end in ends)
