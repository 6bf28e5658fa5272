"""Versions of a model, configured or deployed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..config.mlflow import MlflowModel
from ..config.models import ModelConfig
from ..config.steps import FileConfig
from .factory import make_model
from .from_mlflow.loading import load_present
from .guards.allowlist import Allowlist


@dataclass(frozen=True)
class Version:
    """A version of a model.

    Attributes
    ----------
    name
        Its name in the configuration or in its deployment.
    spec
        How the model was made, in the form of `Deployment.spec`.
    deployed
        Offset in the models topic of the last deployment that is in effect or was refused; -1 before the first.
    """

    name: str
    spec: dict[str, Any]
    model: Any = field(repr=False)
    deployed: int = -1


def configured_version(config: ModelConfig, model: Any = None, deployed: int = -1) -> Version:
    """Return the version that the configuration describes.

    Parameters
    ----------
    model
        The model of that version; None makes it. Of MLflow's registry it is the version that is named there now.
    deployed
        Offset of the last deployment that the configuration overrules.
    """
    if model is None and isinstance(config.model, MlflowModel) and config.registered is not None:
        name, spec, model = load_present(config.model)
        return Version(name, spec, model, deployed)
    return Version(config.version, config.spec, make_model(config) if model is None else model, deployed)


def configured_as(config: ModelConfig) -> dict[str, Any]:
    """Return the settings that say which model is configured.

    Where they differ, another model takes over.
    """
    named = config.model.named if isinstance(config.model, FileConfig) else {}
    return {"version": config.version, **config.spec, **named}


def allowlist_of(config: ModelConfig) -> Allowlist:
    """Return the list of types that a model's stored state may hold."""
    # Of a registry's models the lists have to know all: to ask it takes too long where states are read.
    return Allowlist(config, make_model if config.registered is None else None)
