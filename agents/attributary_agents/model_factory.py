"""From a model's configuration to the model."""

from __future__ import annotations

import importlib
from typing import Any

from pydantic import ValidationError
from river import compose

from .config import ModelConfig, StepConfig
from .errors import ConfigError


def make_model(config: ModelConfig) -> Any:
    """Build the model that the configuration describes.

    Raises
    ------
    ConfigError
        The class or function cannot be imported, or does not take these arguments.
    """
    if config.factory is not None:
        module, separator, name = config.factory.partition(":")
        if not separator:
            raise ConfigError(f"factory: expected module:function, got {config.factory!r}")
        return _call(_lookup(module, name, config.factory), {}, config.factory)
    if isinstance(config.model, StepConfig):
        return _step(config.model)
    return compose.Pipeline(*(_step(step) for step in config.model or []))


def _step(step: StepConfig) -> Any:
    module, _, name = step.class_.rpartition(".")
    return _call(_lookup(module, name, step.class_), _nested(step.params), step.class_)


def _nested(params: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(f"params.{name}", value) for name, value in params.items()}


def _value(path: str, value: Any) -> Any:
    # {class: …, params: …} as an argument is a model in a model: the trees of a bagging, the members of a vote.
    if isinstance(value, list):
        return [_value(f"{path}[{i}]", item) for i, item in enumerate(value)]
    if not isinstance(value, dict) or "class" not in value:
        return value
    try:
        return _step(StepConfig.model_validate(value))
    except ValidationError as error:
        raise ConfigError(f"{path}: expected {{class: …, params: …}}, got {value!r}") from error


def _lookup(module: str, name: str, path: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # importing runs the user's module: anything may come of it
        raise ConfigError(f"cannot import {path!r}: {error}. Is the package installed and on PYTHONPATH?") from error


def _call(target: Any, params: dict[str, Any], path: str) -> Any:
    try:
        return target(**params)
    except Exception as error:
        raise ConfigError(f"{path}(**{params!r}) raised {type(error).__name__}: {error}") from error
