"""Partial dependence of a model: which features to publish, and when."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attributary_explainers import (
    ExplainerError,
    IncrementalPDP,
    InvalidParameterError,
    ModelFunction,
    SmoothedPrediction,
    is_classifier,
    model_function,
    model_kind,
    ranks,
)

from ..config.explainers import PDP
from ..config.models import ModelConfig
from ..errors import told

logger = logging.getLogger(__name__)


PUBLICATIONS = 10
"""A curve is published with one in so many importance events, where `every` is not given."""


Importance = Callable[[], Mapping[str, float]]
"""Returns what the features are worth; nothing where no explainer says so yet."""


@dataclass(frozen=True)
class FoundCurve:
    """Curve to publish: a feature, its values, and the mean predictions there."""

    feature: str
    is_numeric: bool
    values: list[Any]
    means: list[float]


class Dependence:
    """Partial dependence of a model on its most important or named features.

    It begins at observation `publish.min_observations`: which features are important and which classes there are is
    known by then. The features that it chooses itself are chosen anew with each publication; one that is followed stays
    until its rank is clearly behind, as one with series of its own does.

    Parameters
    ----------
    model
        The model that is followed, which goes on learning.
    seed
        Of the draws of rows.

    Raises
    ------
    ExplainerError
        The model has no prediction of which there is a mean, or no class of the name `label`.
    """

    name = PDP

    def __init__(self, model_id: str, config: ModelConfig, model: Any, seed: int) -> None:
        chosen = config.explainers.pdp
        assert chosen is not None
        self._model_id, self._model, self._seed, self._config = model_id, model, seed, chosen
        self._begins_at = config.publish.min_observations
        self._first_every = config.publish.every
        self._every = chosen.every or PUBLICATIONS * config.publish.every
        self._groups = config.groups
        self.alpha = config.alpha if chosen.alpha is None else chosen.alpha
        self._new(None, chosen.label)  # what cannot be followed is refused here
        numeric = model_kind(model) in ("regressor", "anomaly_detector")
        self._function = model_function(
            model, "number" if numeric else "probabilities" if is_classifier(model) else "any"
        )
        self.explainer: IncrementalPDP | None = None
        """The curves; None before there are any."""
        self.published: int | None = None
        """Observations that the curves were made of when they were published last; None before that."""
        self._mean = SmoothedPrediction(self.alpha)
        self._has_warned = False

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings of the explainer, as plain data."""
        return {
            **self._config.model_dump(exclude={"every", "publish_values"}),
            "alpha": self.alpha,
            "groups": {group: list(members) for group, members in self._groups.items()},
        }

    def update(
        self, x: dict[str, Any], y_pred: Any, observation: int, importance: Importance, asked: ModelFunction | None
    ) -> None:
        """Take in an observation that is explained.

        Parameters
        ----------
        x, y_pred
            What the model was given, and its prediction.
        observation
            Number of the model's observation.
        asked
            The function that has just been asked for `y_pred`, where that is the prediction of which the mean is
            followed: probabilities, or a number. None where it is not.
        """
        try:
            if asked is None:
                y_pred = self._function(x)
            if self.explainer is None and y_pred is not None:
                self._begin(x, y_pred, observation, importance)
            if self.explainer is not None:
                self.explainer.take(x, y_pred)
        except Exception as error:  # noqa: BLE001 - the model is the user's code; importances are told all the same
            self._warn(str(error) if isinstance(error, ExplainerError) else told(error))

    def _begin(self, x: dict[str, Any], y_pred: Any, observation: int, importance: Importance) -> None:
        mean = self._mean.update(y_pred)
        if observation < self._begins_at or (isinstance(mean, dict) and len(mean) < 2):
            return
        label = self._config.label
        if isinstance(mean, dict) and label is None:
            label = _larger(mean) if len(mean) == 2 else max(mean, key=mean.__getitem__)
        if features := self._chosen(x, importance(), ()):
            self.explainer = self._new(features, label)

    def _new(self, features: Sequence[str] | None, label: Any) -> IncrementalPDP:
        chosen = self._config
        explainer = IncrementalPDP(
            self._model,
            features,
            label=label,
            alpha=self.alpha,
            grid_size=chosen.grid_size,
            window=chosen.window,
            categorical=chosen.categorical,
            seed=self._seed,
        )
        explainer.know_names()
        return explainer

    def _chosen(self, x: dict[str, Any], importance: Mapping[str, float], followed: Collection[str]) -> list[str]:
        """Return the features to follow, the most important first."""
        named = self._config.features
        if named is None:
            rank = {name: place for name, place in ranks(importance).items() if name in self._groups or name in x}
            order = [one for name in sorted(rank, key=rank.__getitem__) for one in self._groups.get(name, (name,))]
            order = list(dict.fromkeys((*order, *x)))
            limit = self._config.max_features
            stay = [one for place, one in enumerate(order) if one in followed and place < limit + max(limit // 4, 1)]
            new = [one for one in order if one not in followed and self._may_follow(x, one)]
            wanted = {*stay[:limit], *new[: limit - len(stay[:limit])]}
            return [one for one in order if one in wanted]
        return [one for one in named if self._may_follow(x, one)]

    def _may_follow(self, x: dict[str, Any], feature: str) -> bool:
        """Return whether the values of a feature may be published.

        A feature without a value here may be a number, so it passes if the configuration names the features.
        """
        if self._config.publish_values:
            return self._config.features is not None or x.get(feature) is not None
        value = x.get(feature)
        if value is None:
            return self._config.features is not None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and feature not in self._config.categorical

    def due(self, x: dict[str, Any], y_pred: Any, observation: int, importance: Importance) -> list[FoundCurve]:
        """Return the curves to publish after an observation, most important first.

        Mostly none. What was not asked anew since the last publication is not published again. Then the features to
        follow from now on are chosen.
        """
        explainer = self.explainer
        if explainer is None or observation % (self._first_every if self.published is None else self._every):
            return []
        lines = explainer.pdp
        if not lines or explainer.n_observations == self.published:
            return []
        label = explainer.chosen_label
        if isinstance(y_pred, dict) and label is not None and label not in y_pred and self._config.label is not None:
            self._warn(f"no class {label!r}: the model knows {', '.join(map(repr, list(y_pred)[:10]))}")
            return []
        self.published = explainer.n_observations
        numeric = explainer.recent_numbers
        may_be = lines if self._config.publish_values else numeric
        followed = list(explainer.features or ())
        found = [
            FoundCurve(name, name in numeric, *lines[name]) for name in followed if name in lines and name in may_be
        ]
        if self._config.features is None and (features := self._chosen(x, importance(), followed)):
            explainer.follow(features)
        return found

    def forget(self, names: Collection[str]) -> None:
        """Forget features that will not come again, where they were not named."""
        explainer = self.explainer
        if explainer is None or self._config.features is not None:
            return
        left = [name for name in explainer.features or () if name not in names]
        if left and len(left) < len(explainer.features or ()):
            explainer.follow(left)

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            logger.warning("model %s: partial dependence: %s", self._model_id, what)
        self._has_warned = True

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {
            "parameters": self.parameters,
            "explainer": None if self.explainer is None else self.explainer.snapshot(),
            "published": self.published,
            "mean": self._mean.snapshot(),
            "has_warned": self._has_warned,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        known = snapshot["explainer"]
        self.explainer = None if known is None else IncrementalPDP.from_snapshot(known, self._model)
        self.published, self._has_warned = snapshot["published"], snapshot["has_warned"]
        self._mean = SmoothedPrediction.from_snapshot(snapshot["mean"])


def new_dependence(model_id: str, config: ModelConfig, model: Any, seed: int) -> Dependence | None:
    """Return a model's `Dependence`, or None if unwanted or impossible."""
    if config.explainers.pdp is None:
        return None
    try:
        return Dependence(model_id, config, model, seed)
    except ExplainerError:
        return None


def refusal_of_pdp(config: ModelConfig, model: Any) -> str | None:
    """Return why the partial dependence of a model cannot be followed.

    None where it can be followed, or is not configured.
    """
    if config.explainers.pdp is None:
        return None
    try:
        Dependence("", config, model, 0)
    except InvalidParameterError as error:
        return f"explainers.pdp.{error.parameter}: expected {error.expected}, got {error.value!r}"
    except ExplainerError as error:
        return (
            f"explainers.pdp: {type(model).__name__} has no probabilities or numbers of which there is a mean: leave "
            f"pdp out, or write `pdp: null` where `defaults` turn it on ({error})"
        )
    return None


def _larger(labels: Mapping[Any, float]) -> Any:
    """Return the larger class, or the more probable if they have no order."""
    try:
        return max(labels)
    except TypeError:
        return max(labels, key=labels.__getitem__)
