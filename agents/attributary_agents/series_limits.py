"""Which features of a model have series of their own: the most important ones, without flapping.

A feature that hovers around the limit would make a series that comes and goes with every scrape. So one that has
a series keeps it until it falls clearly behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attributary_explainers import ranks


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
        """The features to show, the most important first."""
        rank = ranks(importance)
        before = self._shown.get((model_id, explainer), frozenset())
        stay = [name for name in before if rank.get(name, self._stays_until + 1) <= self._stays_until]
        stay.sort(key=rank.__getitem__)
        newcomers = (name for name in sorted(rank, key=rank.__getitem__) if name not in before)
        chosen = stay[: self._limit]
        chosen += [name for name, _ in zip(newcomers, range(self._limit - len(chosen)), strict=False)]
        self._shown[model_id, explainer] = frozenset(chosen)
        return sorted(chosen, key=rank.__getitem__)

    def keep_only(self, model_ids: set[str]) -> None:
        """Forget the models that are no longer here."""
        self._shown = {key: names for key, names in self._shown.items() if key[0] in model_ids}
