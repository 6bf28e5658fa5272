"""Names of a model file's columns and classes, from the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attributary_explainers import BoosterModel, OnnxModel, SklearnModel, TrainedModel, model_kind
from attributary_explainers.models.sklearn import is_estimator
from attributary_explainers.models.trained import is_booster
from attributary_explainers.wording import did_you_mean

from ...config.models import ModelConfig
from ...config.steps import FileConfig
from ...errors import DeploymentError


@dataclass(frozen=True)
class Columns:
    """Configured names of the columns and classes of a model file.

    Attributes
    ----------
    features
        Columns in the order in which the model was trained; None where it says them itself.
    classes
        Labels in the order of its probabilities; None where it says them itself.
    declared
        All features that observations may have, `features` of the model; None where any may come.
    """

    features: tuple[str, ...] | None = None
    classes: tuple[Any, ...] | None = None
    declared: tuple[str, ...] | None = None

    @classmethod
    def of(cls, config: ModelConfig) -> Columns:
        """Take the names from a model's configuration."""
        file = config.model if isinstance(config.model, FileConfig) else None
        return cls(
            features=None if file is None or file.features is None else tuple(file.features),
            classes=None if file is None or file.classes is None else tuple(file.classes),
            declared=None if config.features is None else tuple(config.features),
        )

    def onnx(self, content: bytes) -> OnnxModel:
        """Return the model in an ONNX file.

        If the file names no columns, the declared features are its columns.
        """
        model = OnnxModel(content, self.features, self.classes)
        if model.features is None and self.declared is not None:
            if model.n_columns not in (None, len(self.declared)):
                raise DeploymentError(
                    f"it takes {model.n_columns} columns, and `features` of the model declares {len(self.declared)}: "
                    "name those of the file in their order, model: {file: …, features: […]}"
                )
            return OnnxModel(content, self.declared, self.classes)
        return model

    def name(self, model: Any) -> Any:
        """Give a model from another file its configured columns and classes.

        Where none are configured, the model is returned as it is.
        """
        if is_booster(model) and (self.features or self.classes):
            return BoosterModel(model, self.features, self.classes)
        if self.classes is not None and model_kind(model) != "classifier":
            raise DeploymentError("`classes` names the labels of a classifier, which this model is not: leave it out")
        if self.features is None and self.classes is None:
            return model
        if not is_estimator(model):
            if self.classes is not None:
                raise DeploymentError("`classes` names labels, and this model knows its own: leave it out")
            raise DeploymentError("`features` names columns, and this model reads them by name: leave it out")
        if not isinstance(model, SklearnModel):
            return SklearnModel(model, self.features, self.classes)
        return SklearnModel(model.estimator, self.features or model.features, self.classes or model.classes)

    def check(self, model: Any) -> None:
        """Check that a model takes no column that no observation may have."""
        if self.declared is None or not isinstance(model, TrainedModel):
            return
        for name in model.features or ():
            if name not in self.declared:
                near = did_you_mean(str(name), self.declared)
                raise DeploymentError(f"it takes {name!r}, which `features` of the model does not declare{near}")
