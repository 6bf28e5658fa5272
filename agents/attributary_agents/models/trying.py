"""Tries configured models before the start: whether they can be made, saved, explained as configured, and taught."""

from __future__ import annotations

from collections.abc import Iterable

from attributary_explainers import ExplainerError, dump_model
from attributary_explainers.models.learning import learn_function

from ..config.given.served import ServedConfig
from ..config.models import ModelConfig
from ..config.settings import Config
from ..errors import ConfigError, ForeignTypeError
from ..lean_imports import import_for
from .artefacts.served.client import Client
from .beside.rules import check_beside
from .detectors import check_mode
from .from_mlflow.checking import check_registered
from .model_state import ModelState, new_state
from .versions import allowlist_of, configured_version


def check_models(config: Config) -> None:
    """Build every configured model with its explainers once, save and forget it: faults show before the start.

    Of models that are configured alike, one is built. Of those of MLflow's registry none is: which version they begin
    with, the models topic says, and it is tried when it is deployed. What a model imports late is imported, so that no
    observation waits for it.

    Raises
    ------
    ConfigError
        As for `check_model`.
    """
    check_registered(config)
    for model_id in _distinct(config):
        import_for(check_model(model_id, config.models[model_id]))


def import_models(config: Config) -> None:
    """Import all that the configured models use: processes that are forked from this one have it then.

    They have been checked by another process.
    """
    for model_id in _distinct(config):
        import_for(new_state(model_id, config.models[model_id]))


def _distinct(config: Config) -> Iterable[str]:
    """Return the id of one of each that are configured alike, without those of a registry."""
    distinct: dict[str, str] = {}
    for model_id, model in config.models.items():
        if model.registered is None:
            distinct.setdefault(repr(model), model_id)
    return distinct.values()


def check_model(model_id: str, config: ModelConfig) -> ModelState:
    """Build a model with its explainers once, save it, and return it before its first observation.

    Raises
    ------
    ConfigError
        The model cannot be made or saved, holds what stored models may not hold, cannot be explained as configured, or
        is to learn and cannot; or what a served model is asked with is not there.
    """
    try:
        if isinstance(config.model, ServedConfig):
            Client(config.model).check()
        version = configured_version(config)
        check_mode(config, version.model)
        state = new_state(model_id, config, version)
        check_beside(config, state.model)
        if config.learn:
            learn_function(state.model)
        allowlist_of(config).load(dump_model(state.model))
    except (ExplainerError, ConfigError, ForeignTypeError) as error:
        raise ConfigError(f"models.{model_id}: {error}") from None
    return state
