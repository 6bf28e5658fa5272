"""Builds a model from its description."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from river import compose

from ..config.models import ModelConfig, StepConfig
from ..errors import ConfigError, NotAllowedError


def make_model(config: ModelConfig) -> Any:
    """Build the model that the configuration describes.

    Raises
    ------
    ConfigError
        The class or function cannot be imported, or does not take these arguments.
    """
    return build_model(config.spec)


def build_model(spec: dict[str, Any], allowed: Sequence[str] | None = None) -> Any:
    """Build the model of a spec: `{"model": …}` or `{"factory": …}`, as in `Deployment.spec`.

    Parameters
    ----------
    allowed
        Dotted packages and modules whose classes and functions the spec may name, at any depth; None allows all.
        What they name must be defined there too: a module also holds what it has imported.

    Raises
    ------
    ConfigError
        The class or function cannot be imported, or does not take these arguments.
    NotAllowedError
        It is in no allowed package; nothing has been imported then.
    """
    return _Builder(allowed).build(spec)


class _Builder:
    def __init__(self, allowed: Sequence[str] | None) -> None:
        self._allowed = allowed

    def build(self, spec: dict[str, Any]) -> Any:
        if "factory" in spec:
            path: str = spec["factory"]
            module, separator, name = path.partition(":")
            if not separator:
                raise ConfigError(f"factory: expected module:function, got {path!r}")
            return self._call(self._lookup(module, name, path), {}, path)
        model = spec["model"]
        if isinstance(model, list):
            return compose.Pipeline(*(self._step(step) for step in model))
        return self._step(model)

    def _step(self, data: Any) -> Any:
        step = StepConfig.model_validate(data)
        module, _, name = step.class_.rpartition(".")
        params = {name: self._value(f"params.{name}", value) for name, value in step.params.items()}
        return self._call(self._lookup(module, name, step.class_), params, step.class_)

    def _value(self, path: str, value: Any) -> Any:
        # {class: …, params: …} as an argument is a model in a model: the trees of a bagging, the members of a vote.
        if isinstance(value, list):
            return [self._value(f"{path}[{i}]", item) for i, item in enumerate(value)]
        if not isinstance(value, dict) or "class" not in value:
            return value
        try:
            return self._step(value)
        except ValidationError as error:
            raise ConfigError(f"{path}: expected {{class: …, params: …}}, got {value!r}") from error

    def _lookup(self, module: str, name: str, path: str) -> Any:
        self._check_allowed(module, path)
        try:
            found = getattr(importlib.import_module(module), name)
        except Exception as error:  # importing runs the user's module: anything may come of it
            raise ConfigError(
                f"cannot import {path!r}: {error}. Is the package installed and on PYTHONPATH?"
            ) from error
        self._check_allowed(getattr(found, "__module__", None) or "", path)
        return found

    def _check_allowed(self, module: str, path: str) -> None:
        if self._allowed is None:
            return
        if not any(f"{module}.".startswith(f"{prefix.rstrip('.')}.") for prefix in self._allowed):
            where = "" if path.startswith(module) and module else f" (defined in {module or 'no module'})"
            raise NotAllowedError(
                f"{path}{where} is in none of control.allowed ({', '.join(self._allowed) or 'which is empty'}): if "
                f"records of the models topic may name it, add {(module or path).split('.')[0]!r} to control.allowed "
                "in the workers' configuration"
            )

    @staticmethod
    def _call(target: Any, params: dict[str, Any], path: str) -> Any:
        try:
            return target(**params)
        except Exception as error:
            raise ConfigError(f"{path}(**{params!r}) raised {type(error).__name__}: {error}") from error
