"""Chooses the models and features that have series, without flapping.

A feature that hovers around the limit would make a series that comes and goes with every scrape. So one that has
a series keeps it until it falls clearly behind. A model that has series keeps them while there is room, whichever
other models come and go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..ranking import ranks
from ..validation import check_integer


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many series there are at most.

    Attributes
    ----------
    max_features
        Features per model and explainer; the rest is `__other__`.
    max_models
        Models with series of their own; more are counted as dropped.
    max_series
        Series of features in all; further models are dropped.
    """

    max_features: int = 20
    max_models: int = 200
    max_series: int = 10_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_integer(f"limits.{name}", value, minimum=1)


class ShownFeatures:
    """Remembers which features of an explainer were shown.

    They are `limit` at most. One that is shown stays until its rank is beyond limit * 5 / 4.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stays_until = limit + max(limit // 4, 1)
        self._shown: dict[tuple[str, str], frozenset[Any]] = {}

    def choose(self, model_id: str, explainer: str, importance: Mapping[Any, float]) -> Sequence[Any]:
        """Choose the features to show, the most important first."""
        rank = ranks(importance)
        before = self._shown.get((model_id, explainer), frozenset())
        stay = [name for name in before if rank.get(name, self._stays_until + 1) <= self._stays_until]
        stay.sort(key=rank.__getitem__)
        newcomers = (name for name in sorted(rank, key=rank.__getitem__) if name not in before)
        chosen = stay[: self._limit]
        chosen += [name for name, _ in zip(newcomers, range(self._limit - len(chosen)), strict=False)]
        self._shown[model_id, explainer] = frozenset(chosen)
        return sorted(chosen, key=rank.__getitem__)

    def keep_only(self, model_ids: Collection[str]) -> None:
        """Forget the models that are no longer here."""
        self._shown = {key: names for key, names in self._shown.items() if key[0] in model_ids}


class ShownModels:
    """Models with series, remembered also after they have gone.

    A rebalance takes all models away and brings most of them back: those that had series have them again. Models that
    are configured by their own id come before those of templates. A model that had to go because others have grown
    comes back when it fits into 9 / 10 of `max_series`, the series of features in all.
    """

    def __init__(self, max_models: int, max_series: int) -> None:
        self._max_models = max_models
        self._max_series = max_series
        self._shown: list[str] = []
        self._gone: list[str] = []
        self._pushed_out: set[str] = set()

    def choose(self, n_series: Mapping[str, int], behind: Collection[str] = ()) -> set[str]:
        """Choose the models to show, by the series that each would have.

        `behind` are those of templates.
        """
        known = [*self._shown, *self._gone]
        before = [model_id for model_id in known if model_id in n_series]
        self._gone = [model_id for model_id in known if model_id not in n_series][: self._max_models]
        self._pushed_out &= n_series.keys()
        # By id where nobody was there before: the same models after every restart.
        newcomers = sorted(n_series.keys() - set(before))
        chosen: list[str] = []
        total = 0
        for model_id in sorted((*before, *newcomers), key=lambda model_id: model_id in behind):
            room = self._max_series * (0.9 if model_id in self._pushed_out else 1.0)
            if len(chosen) < self._max_models and total + n_series[model_id] <= room:
                chosen.append(model_id)
                total += n_series[model_id]
        self._pushed_out = (self._pushed_out | set(self._shown) & n_series.keys()) - set(chosen)
        self._shown = chosen
        return set(chosen)

    @property
    def remembered(self) -> frozenset[str]:
        """The models that have series, and the gone models that had them."""
        return frozenset((*self._shown, *self._gone))
