"""Mean decrease in impurity of a model's trees, read when an event is due."""

from __future__ import annotations

import logging
import math
from typing import Any

from river import compose

from attributary_explainers import IncrementalMDI, ModelError, is_classifier, resolve_loss
from attributary_explainers.monitor.publication import Publication

from ..config.explainers import MDI
from ..config.models import ModelConfig
from ..errors import told

logger = logging.getLogger(__name__)


class TreeImportance:
    """Importance of each feature by the splits of a model's trees.

    It is as of the last reading of the trees. The trees are walked once for each event: a walk takes as long as there
    are nodes, and nothing that the trees hold is lost in between. The importance of a group is the sum over its
    features, which is what it is of their splits. A feature that no tree splits on has 0 where it is known by its name:
    declared, and not changed on its way there.

    Parameters
    ----------
    model
        The model that is read, which goes on learning.

    Raises
    ------
    ModelError
        It has no mean decrease in impurity.
    """

    name = MDI

    def __init__(self, model_id: str, config: ModelConfig, model: Any) -> None:
        self._model_id, self._most = model_id, config.max_features
        self._group_of = {feature: group for group, features in config.groups.items() for feature in features}
        is_direct = not isinstance(model, compose.Pipeline)
        self._explainer = IncrementalMDI(model, features=list(config.features or ()) if is_direct else ())
        self.loss = resolve_loss(model, "brier" if is_classifier(model) else "squared")
        """The loss that impurity is of: the Gini index is the Brier score of the classes' shares, the variance the
        squared error of the mean."""
        self.publication = Publication(config.settings.publish, at_intervals_only=True)
        self.n_observations = 0
        """Observations that the model has taken since it is read."""
        self.importance: dict[str, float] = {}
        """As it was read last, the most important `max_features`; empty before that."""
        self._is_broken = False

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings of the explainer, with its groups, as plain data.

        With other groups an importance is of something else.
        """
        return {**self._explainer.parameters, "groups": dict(self._group_of)}

    @property
    def std_error(self) -> dict[str, float]:
        """NaN: the sum over splits has no standard error."""
        return dict.fromkeys(self.importance, math.nan)

    @property
    def half_width(self) -> dict[str, float]:
        """NaN, as `std_error`."""
        return dict.fromkeys(self.importance, math.nan)

    def note(self, observation: int) -> str | None:
        """Count an observation; return the trigger of a due event, or None.

        The model has taken the observation before.

        Parameters
        ----------
        observation
            Its number.
        """
        self.n_observations += 1
        if not self.publication.needs_importance(observation) or not self._read():
            return None
        return self.publication.trigger(self, observation)

    def _read(self) -> bool:
        """Walk the trees; return whether that could be done."""
        try:
            found: dict[str, float] = {}
            for feature, decrease in self._explainer.importance.items():
                name = str(self._group_of.get(feature, feature))
                found[name] = found.get(name, 0.0) + decrease
        except Exception as error:  # noqa: BLE001 - trees of a class of the user's: whatever they raise, others go on
            if not self._is_broken:
                said = str(error) if isinstance(error, ModelError) else told(error)
                logger.warning("model %s: no mdi, its trees cannot be read: %s", self._model_id, said)
            self._is_broken = True
            return False
        shown = set(sorted(found, key=found.__getitem__, reverse=True)[: self._most])
        self.importance = {name: decrease for name, decrease in found.items() if name in shown}
        return True

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {
            "parameters": self.parameters,
            "n": self.n_observations,
            "importance": dict(self.importance),
            "publication": self.publication.snapshot(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.n_observations, self.importance = snapshot["n"], dict(snapshot["importance"])
        self.publication.restore(snapshot["publication"])


def new_tree_importance(model_id: str, config: ModelConfig, model: Any) -> TreeImportance | None:
    """Return a model's `TreeImportance`, or None if unwanted or impossible."""
    if config.explainers.mdi is None:
        return None
    try:
        return TreeImportance(model_id, config, model)
    except ModelError:
        return None


def refusal_of_mdi(config: ModelConfig, model: Any) -> str | None:
    """Return why a model has no mean decrease in impurity.

    None where it has one, or where none is configured.
    """
    if config.explainers.mdi is None:
        return None
    try:
        IncrementalMDI(model)
    except ModelError:
        return (
            f"explainers.mdi: {type(model).__name__} has no mean decrease in impurity. River's Hoeffding trees with "
            "one target have it, their forests, bagging, boosting and votes, and pipelines that end in one: leave mdi "
            "out, or write `mdi: null` where `defaults` turn it on"
        )
    return None
