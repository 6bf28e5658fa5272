"""Chooses which models have series, and which of their features have series of their own, without flapping.

A configuration whose limits let a scrape become larger than a worker can answer is refused before it starts.

A feature that hovers around the limit would make a series that comes and goes with every scrape. So one that has
a series keeps it until it falls clearly behind. A model that has series keeps them while there is room, whichever
other models come and go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attributary_explainers import ranks

from ..config.settings import Config
from ..config.templates import MAX_MODELS, is_template
from ..errors import PreflightError

MOST_SERIES = 100_000
"""Series that one scrape may have: about 3 s and 300 MB while it is made, where Prometheus waits for 10 s."""

_OF_FEATURE, _OF_EXPLAINER, _OF_MODEL = 6, 14, 80


def most_series(config: Config, n_workers: int = 1) -> tuple[int, int]:
    """Return how many series a scrape of workers that have all models can have: of features, and others.

    Both are upper bounds. Of a model that declares no features, any number within its `max_features` can come.

    Parameters
    ----------
    n_workers
        Workers behind the one address: the limits hold for each of them.
    """
    limits, of_features, others = config.metrics, [], []
    most = limits.max_models * n_workers
    for name, model in config.models.items():
        n_explainers = len(model.explainers.of_importance)
        n_features = min(len(model.features or ()) or model.max_features, limits.max_features)
        n_models = min(model.max_models or MAX_MODELS, most) if is_template(name) else 1
        of_features += [n_explainers * (_OF_FEATURE * n_features + 2)] * n_models
        others += [_OF_MODEL + n_explainers * _OF_EXPLAINER] * n_models
    of_features.sort(reverse=True)
    others.sort(reverse=True)
    return min(sum(of_features[:most]), limits.max_series * n_workers), sum(others[:most])


def check_series(config: Config, n_workers: int = 1) -> None:
    """Check that a worker, or several behind one address, can answer a scrape of all series that the limits allow.

    Raises
    ------
    PreflightError
        It can not; the message says which limit to set.
    """
    of_features, others = most_series(config, n_workers)
    if of_features + others <= MOST_SERIES:
        return
    room = MOST_SERIES - others
    if room >= MOST_SERIES // 2:
        advice = f"set metrics.max_series to {room // n_workers} or less"
    else:
        n_models = min(config.n_models_at_most, config.metrics.max_models * n_workers)
        fewer = n_models * MOST_SERIES // (of_features + others) // n_workers
        more = "start more workers" if n_workers == 1 else "run more of them on other machines"
        advice = f"set metrics.max_models to {fewer} or less, which is of one worker, and {more}"
    who = "a worker answers" if n_workers == 1 else f"{n_workers} workers behind one address answer"
    raise PreflightError(
        f"metrics: a scrape could have {of_features + others} series, {of_features} of them of features, and {who} "
        f"{MOST_SERIES} in time: {advice}"
    )


class ShownFeatures:
    """Remembers, per model and explainer, which features were shown.

    Parameters
    ----------
    limit
        Features shown at most. One that is shown stays until its rank is beyond limit * 5 / 4.
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
    """Remembers which models were shown, in the order in which they came; those that have gone for a while, too.

    A rebalance takes all models away and brings most of them back: those that had series have them again.

    Models that are configured by their own id come before those of templates.

    Parameters
    ----------
    max_models, max_series
        Models, and series of their features in all. A model that had to go because others have grown comes back when
        it fits into 9 / 10 of `max_series`.
    """

    def __init__(self, max_models: int, max_series: int) -> None:
        self._max_models = max_models
        self._max_series = max_series
        self._shown: list[str] = []
        self._gone: list[str] = []
        self._pushed_out: set[str] = set()

    def choose(self, n_series: Mapping[str, int], behind: Collection[str] = ()) -> set[str]:
        """Choose the models to show.

        Parameters
        ----------
        n_series
            Model id to how many series its features would have.
        behind
            Those of templates.
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
        """The models that have series, and those that had and have gone."""
        return frozenset((*self._shown, *self._gone))
