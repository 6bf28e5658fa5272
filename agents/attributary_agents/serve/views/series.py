"""View of a model's importances over a window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...config.settings import Config
from ..answers import Axis, FeatureSeries, Figures, Mark, Others, Series
from ..store.rows import DIGITS, StoredExplainer, Window
from ..store.store import Store
from .incidents import Span, incidents_in, marks_of, named_by
from .selection import explainer_of, model_of, nothing_yet
from .words import SHARE_DIGITS, WrongQuestionError, dated, digits_of, loss_of, stored
from .words import points as shown

MOST_VALUES = 20_000
"""Points times features at most."""

MOST_POINTS = 2_000
"""Points at most."""

MOST_FEATURES = 50
"""Features at most."""

ROBUST = 0.01
"""Quantile of the lower bounds, and from above of the upper ones, between which a chart's axis lies."""

_FIGURES = (
    "model_loss",
    "baseline_loss",
    "present_loss",
    "discrepancy",
    "shift",
    "n_waiting",
    "n_expired",
    "label_delay_median_s",
    "fidelity",
)


def series(
    store: Store,
    config: Config,
    model_id: str,
    explainer: str | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    by: Axis = "time",
    points: int = 600,
    top: int = 10,
    features: Collection[str] = (),
) -> Series:
    """Return the importances of an explainer over a window.

    Features that an incident in the window names are shown in any case: one that has lost its importance is not among
    the most important any more. Points are so few that there are at most 20 000 of them, all features together.

    Parameters
    ----------
    explainer
        None: the one that is shown first.
    start, end
        Milliseconds since the epoch, or observations, bounds included; None: from the first, to the last.
    by
        What they count, and along what points are of equal width.
    points
        How many at most.
    top, features
        How many of the most important features, and which others.

    Raises
    ------
    NotFoundError
        There is no such model or explainer, or nothing has been published yet.
    WrongQuestionError
        The window ends before it begins.
    """
    if start is not None and end is not None and end < start:
        raise WrongQuestionError(
            "Wrong window", f"The window ends ({end}) before it begins ({start}): swap `from` and `to`."
        )
    model = model_of(store, config, model_id)
    found = explainer_of(model, config.find(model_id), explainer)
    if found is None:
        raise nothing_yet(model, config.find(model_id))
    span = Span(by, start, end)
    incidents = incidents_in(store, model_id, span)
    wanted = list(dict.fromkeys([*features, *named_by(incidents)]))[:MOST_FEATURES]
    top = min(max(top, 0), MOST_FEATURES - len(wanted))
    n_features = max(min(top + len(wanted), len(found.features)), 1)
    window = store.window(
        model_id,
        found.explainer,
        start=start,
        end=end,
        by=by,
        points=max(1, min(points, MOST_POINTS, MOST_VALUES // n_features)),
        top=top,
        features=wanted,
    )
    marks = marks_of(incidents, store.versions(model_id), span)
    if window is None:
        nearest = _nearest(store, found, span)
        return _without_events(found, by, marks, nearest)
    return _of_window(found, by, window, marks)


def _nearest(store: Store, found: StoredExplainer, span: Span) -> tuple[int | None, int] | None:
    """Return the event nearest to a window without any.

    Nearest to its end, or to its beginning.
    """
    ends = [end for end in (span.start, span.end) if end is not None]
    candidates = [
        (abs(value - end), one)
        for end in ends
        if (one := store.nearest(found.model_id, found.explainer, end, span.by)) is not None
        and (value := one[1] if span.by == "observation" else one[0]) is not None
    ]
    return min(candidates)[1] if candidates else None


def _without_events(
    found: StoredExplainer, by: Axis, marks: list[Mark], nearest: tuple[int | None, int] | None
) -> Series:
    nothing: Figures = Figures(**{name: [] for name in _FIGURES}, quality={}, quality_reference={})
    return Series(
        model_id=found.model_id,
        explainer=found.explainer,
        removal=found.removal,
        loss=loss_of(found.loss, found.loss_unit, found.loss_largest),
        by=by,
        n_events=0,
        time_ms=[],
        observation=[],
        features=[],
        others=Others(n=len(found.features), share=None),
        figures=nothing,
        marks=marks,
        low=None,
        high=None,
        nearest_ms=None if nearest is None else dated(nearest[0]),
        nearest_observation=None if nearest is None else nearest[1],
    )


def _of_window(found: StoredExplainer, by: Axis, window: Window, marks: list[Mark]) -> Series:
    low, high = robust_range(window)
    is_shown = np.zeros(len(window.features), dtype=bool)
    is_shown[window.shown] = True
    is_latest = np.isfinite(window.last_importance)
    rest = ~is_shown & is_latest
    share = float(np.nansum(window.last_share[rest])) if rest.any() else None
    return Series(
        model_id=found.model_id,
        explainer=found.explainer,
        removal=found.removal,
        loss=loss_of(found.loss, found.loss_unit, found.loss_largest),
        by=by,
        n_events=window.n_events,
        time_ms=window.time_ms.tolist(),
        observation=window.observation.tolist(),
        features=[_feature(window, column, at) for column, at in _by_rank(window)],
        others=Others(n=int((~is_shown).sum()), share=None if share is None else round(share, 5)),
        figures=Figures(
            **{name: _figure(window.scalars, name, len(window.observation)) for name in _FIGURES},
            quality=_quality(window.quality),
            quality_reference=_quality(window.quality_reference),
        ),
        marks=marks,
        low=low,
        high=high,
        nearest_ms=None,
        nearest_observation=None,
    )


def robust_range(window: Window) -> tuple[float | None, float | None]:
    """Return the range of a chart's axis: 1 % to 99 % of the bands' edges.

    From the 1 % quantile of the lower edges to the 99 % quantile of the upper edges.

    A single wild value does not make everything else a flat line. Where there is no band, the importance is its edge.
    """
    low = np.where(np.isfinite(window.low), window.low, window.importance)
    high = np.where(np.isfinite(window.high), window.high, window.importance)
    low, high = low[np.isfinite(low)], high[np.isfinite(high)]
    if not low.size or not high.size:
        return None, None
    return stored(float(np.quantile(low, ROBUST))), stored(float(np.quantile(high, 1.0 - ROBUST)))


def _by_rank(window: Window) -> list[tuple[int, int]]:
    """Return a window's columns and their features' positions, by rank.

    The rank is that at the end of the window.
    """
    return sorted(enumerate(window.shown.tolist()), key=lambda pair: pair[1])


def _feature(window: Window, column: int, at: int) -> FeatureSeries:
    importance, low, high = window.importance[:, column], window.low[:, column], window.high[:, column]
    digits = digits_of(importance, low, high)
    latest = stored(window.last_importance[at])
    known = [value for value in shown(importance, DIGITS) if value is not None]
    return FeatureSeries(
        feature=window.features[at],
        importance=shown(importance, digits),
        low=shown(low, digits),
        high=shown(high, digits),
        share=shown(window.share[:, column], SHARE_DIGITS),
        rank=[rank or None for rank in window.rank[:, column].tolist()],
        latest=latest,
        latest_half_width=stored(window.last_half_width[at]),
        latest_share=stored(window.last_share[at]),
        latest_rank=at + 1,
        moved=None if latest is None or not known else shown(np.array([latest - known[0]]))[0],
    )


def _figure(scalars: Mapping[str, NDArray[np.float64]], name: str, n: int) -> Sequence[float | None]:
    return _shown(scalars[name]) if name in scalars else [None] * n


def _quality(figures: Mapping[str, NDArray[np.float64]]) -> dict[str, list[float | None]]:
    return {name: _shown(values) for name, values in figures.items()}


def _shown(values: NDArray[np.float64]) -> list[float | None]:
    return shown(values, digits_of(values))
