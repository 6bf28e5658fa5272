"""Builds a model from its description."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

import river
from pydantic import ValidationError
from river import compose

from attributary_explainers.wording import closest, did_you_mean
from attributary_topics.errors import shorten

from ..config.mlflow import MlflowModel
from ..config.models import ModelConfig
from ..config.served import ServedConfig, is_address_allowed
from ..config.steps import FileConfig, StepConfig
from ..errors import ConfigError, DeploymentError, NotAllowedError, told
from .artefacts import Columns, check_ending, load_artefact, read_artefact, sha256_of
from .artefacts.served.client import check_installed
from .artefacts.served.model import ServedModel, make_served
from .artefacts.served.served import Served
from .from_mlflow.loading import load_configured
from .guards.parts import argument_for_files, is_named, is_part


def make_model(config: ModelConfig) -> Any:
    """Build the model that the configuration describes.

    Raises
    ------
    ConfigError
        The class or function cannot be imported, or does not take these arguments; or the file cannot be read.
    """
    if isinstance(config.model, ServedConfig):
        return make_served(config.model)
    if isinstance(config.model, MlflowModel):
        return load_configured(config.model)
    if isinstance(config.model, FileConfig):
        return _load_configured(config.model, Columns.of(config))
    return build_model(config.spec)


def _load_configured(config: FileConfig, columns: Columns) -> Any:
    """Load the file that the configuration names as the first version."""
    try:
        check_ending(config.file)
        content = read_artefact(config.directory, config.file, config.sha256, "the configuration")
        if config.sha256 is None:
            raise ConfigError(f"model: {config.file} has no hash; write sha256: {sha256_of(content)}")
        return load_artefact(config.file, content, config.allowed, columns, in_full=True)
    except DeploymentError as error:
        raise ConfigError(f"model: {error}") from error


def build_model(
    spec: dict[str, Any],
    allowed: Sequence[str] | None = None,
    *,
    in_full: bool = True,
    declared: dict[str, str] | None = None,
) -> Any:
    """Build the model that a spec describes.

    The spec is `{"model": …}` or `{"factory": …, "params": …}`, as in `Deployment.spec`.

    Parameters
    ----------
    allowed
        Dotted packages, modules and classes that the spec may name, at any depth; None allows all, functions too. A
        class must be defined there, since a module also holds what it has imported, and be what a model is made of
        (`guards.parts`) unless it is named itself. A factory must be named itself, as `module:function`.
    in_full
        Whether messages may hold the arguments, and the texts of exceptions that are not ours.
    declared
        The features that the model's configuration declares, which a model that is served takes where it names none.

    Raises
    ------
    ConfigError
        The class or function cannot be imported, or does not take these arguments.
    NotAllowedError
        It is in no allowed package, and nothing has been imported then; or no class of which models are made.
    """
    return _Builder(allowed, in_full, declared).build(spec)


SPEC = ("served", "protocol", "input", "output", "features", "classes", "predicts", "request", "answer")
"""What a record of the models topic may say of a model that is served."""


class _Builder:
    def __init__(self, allowed: Sequence[str] | None, in_full: bool, declared: dict[str, str] | None) -> None:
        self._declared = declared
        self._allowed = allowed
        self._in_full = in_full

    def build(self, spec: dict[str, Any]) -> Any:
        if "factory" in spec:
            path: str = spec["factory"]
            module, separator, name = path.partition(":")
            if not separator:
                raise ConfigError(f"factory: expected module:function, got {shorten(path)}")
            if self._allowed is not None and not is_named(path, self._allowed):
                raise NotAllowedError(
                    f"factory {shorten(path)}: a record of the models topic may name only functions that "
                    "control.allowed names as module:function; add it in the workers' configuration, or name a class"
                )
            params = {name: self._value(f"params.{name}", value) for name, value in spec.get("params", {}).items()}
            return self._call(self._import(module, name, path), params, path)
        model = spec["model"]
        if isinstance(model, dict) and "served" in model:
            return self._served(model)
        if isinstance(model, list):
            return compose.Pipeline(*(self._step(step) for step in model))
        return self._step(model)

    def _served(self, data: dict[str, Any]) -> Any:
        """Return the served model at an address, if the address is allowed.

        A record names an address only where `control.allowed` has it.
        """
        address = data["served"]
        if self._allowed is not None and not (isinstance(address, str) and is_address_allowed(address, self._allowed)):
            raise NotAllowedError(
                f"{shorten(address)} is below no address of control.allowed: a record of the models topic may name "
                "only addresses that begin with one, such as http://fraud/v2/models; add it in the workers' "
                "configuration"
            )
        for name in data:
            if name not in SPEC:
                raise NotAllowedError(
                    f"model.{str(name)[:80]}: a record of the models topic says {', '.join(SPEC)}; how a model is "
                    "asked, and by whom, is for the workers' configuration"
                )
        try:
            config = ServedConfig.model_validate(data)
            config.take_features(self._declared)
        except ValueError as error:  # pydantic's own among them
            first = error.errors()[0] if isinstance(error, ValidationError) else {"msg": str(error), "loc": ()}
            where = ".".join(map(str, ("model", *first["loc"])))
            raise ConfigError(f"{where}: {str(first['msg']).removeprefix('Value error, ')}") from None
        check_installed()
        return ServedModel(Served.of(config))

    def _step(self, data: Any, where: str = "model") -> Any:
        try:
            step = StepConfig.model_validate(data)
        except ValidationError as error:
            raise ConfigError(f"{where}: expected {{class: …, params: …}}, got {shorten(data)}") from error
        module, _, name = step.class_.rpartition(".")
        params = {name: self._value(f"params.{name}", value) for name, value in step.params.items()}
        return self._call(self._lookup(module, name, step.class_), params, step.class_)

    def _value(self, path: str, value: Any) -> Any:
        # {class: …, params: …} as an argument is a model in a model: the trees of a bagging, the members of a vote.
        if isinstance(value, list):
            return [self._value(f"{path}[{i}]", item) for i, item in enumerate(value)]
        if not isinstance(value, dict) or "class" not in value:
            return value
        return self._step(value, path)

    def _lookup(self, module: str, name: str, path: str) -> Any:
        """Return the class that a record or the configuration may build."""
        if self._allowed is None or is_named(path, self._allowed):
            return self._import(module, name, path)
        self._check_allowed(module, path)
        found = self._import(module, name, path)
        self._check_allowed(getattr(found, "__module__", None) or "", path)
        if not is_part(found):
            raise NotAllowedError(
                f"{shorten(path)} is not what a model is made of: a record of the models topic builds estimators, "
                "transformers, optimisers, losses, metrics, drift detectors and statistics, and no function, data set "
                f"or evaluation. If it is a class of your own, let control.allowed name {shorten(path)} itself"
            )
        return found

    def _import(self, module: str, name: str, path: str) -> Any:
        separator = ":" if ":" in path else "."
        try:
            imported = importlib.import_module(module)
        except Exception as error:  # importing runs the user's module: anything may come of it
            is_missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
            why = str(error) if self._in_full or is_missing else told(error)
            why = why if module else "its module is not named"
            raise ConfigError(f"cannot import {path!r}: {why}{self._remedy(module, name, separator)}") from error
        try:
            return getattr(imported, name)
        except AttributeError as error:
            why = f"module {module!r} has no attribute {name!r}{self._remedy(module, name, separator)}"
            raise ConfigError(f"cannot import {path!r}: {why}") from error

    def _remedy(self, module: str, name: str, separator: str) -> str:
        """Suggest a similar name, or where to put the missing module.

        Only modules that the spec may name are looked into.
        """
        in_river = module.split(".")[0] in ("", "river") and separator == "." and self._is_allowed("river")
        if in_river and (homes := _homes(name)):
            return f": did you mean '{homes[0]}.{name}'?"
        package = module
        while package and not _can_import(package, self._is_allowed):
            package = package.rpartition(".")[0]
        if package and package != module:
            wrong = module[len(package) + 1 :].split(".")[0]
            if near := closest(wrong, _modules(package)):
                module = f"{package}.{near}"
        if _can_import(module, self._is_allowed):
            names = [found for found in dir(sys.modules[module]) if not found.startswith("_")]
            near = name if name in names else closest(name, names)
            if near:
                return f": did you mean '{module}{separator}{near}'?"
        if package == module and module:
            return f": {module} is there, and has nothing of that name or like it"
        top = module.split(".")[0]
        return (
            f": install the package of {top or 'the class, and name it with its module'}, or put {top or 'module'}.py "
            "beside the configuration, into the working directory or on PYTHONPATH"
        )

    def _is_allowed(self, module: str) -> bool:
        allowed = self._allowed
        return allowed is None or any(f"{module}.".startswith(f"{prefix.rstrip('.')}.") for prefix in allowed)

    def _check_allowed(self, module: str, path: str) -> None:
        if self._allowed is not None and not self._is_allowed(module):
            where = "" if path.startswith(module) and module else f" (defined in {module or 'no module'})"
            raise NotAllowedError(
                f"{path}{where} is in none of control.allowed ({', '.join(self._allowed) or 'which is empty'}): if "
                f"records of the models topic may name it, add {(module or path).split('.')[0]!r} to control.allowed "
                "in the workers' configuration"
            )

    def _call(self, target: Any, params: dict[str, Any], path: str) -> Any:
        _check_arguments(target, params, path)
        if self._allowed is not None and (name := argument_for_files(target, params)) is not None:
            raise NotAllowedError(
                f"{path}: a record of the models topic may not set {name!r}, which reads or keeps files"
            )
        try:
            return target(**params)
        except MemoryError:
            raise
        except Exception as error:
            called = f"{path}(**{params!r})" if self._in_full else path
            raise ConfigError(f"{called} raised {told(error, self._in_full)}") from error


def _check_arguments(target: Any, params: dict[str, Any], path: str) -> None:
    """Refuse unknown arguments, and numbers in quotes."""
    try:
        known = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for name, value in params.items():
        if name not in known and not takes_any:
            has = f"it has {', '.join(known)}" if known else "it has none"
            near = did_you_mean(name, known)
            raise ConfigError(f"{path} has no parameter {name!r}{near or f': {has}'}")
        default = known[name].default if name in known else None
        if isinstance(value, str) and isinstance(default, int | float) and _is_plain(value):
            raise ConfigError(f"{path}: params.{name} is {value!r}, a text: write {value} without quotes")


def _is_plain(text: str) -> bool:
    """Return whether a text without quotes would be a number or boolean."""
    try:
        float(text)
    except ValueError:
        return text in ("true", "false")
    return True


def _can_import(module: str, is_allowed: Callable[[str], bool]) -> bool:
    try:
        return bool(module) and is_allowed(module) and importlib.import_module(module) is not None
    except Exception:  # noqa: BLE001 - as in `_lookup`: importing runs the user's module
        return False


def _modules(package: str) -> list[str]:
    return [found.name for found in pkgutil.iter_modules(getattr(sys.modules[package], "__path__", []))]


def _homes(name: str) -> list[str]:
    """Return the modules of River that have a class of this name."""
    modules = [f"river.{found.name}" for found in pkgutil.iter_modules(river.__path__)]
    return [m for m in modules if _can_import(m, lambda _: True) and isinstance(getattr(sys.modules[m], name, 0), type)]
