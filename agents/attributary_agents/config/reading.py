"""Reads the configuration: one YAML file, overridden by environment variables.

`ATTRIBUTARY_KAFKA__GROUP=blue` sets `kafka.group`; a value that is a list or an object is given as JSON.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ..errors import ConfigError
from .secrets import holds_secret
from .settings import Config


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that is given twice: YAML would take the last and forget the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twice:
            problem = f"key {', '.join(twice)} is given twice"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return super().construct_mapping(node, deep)


def load_config(path: Path | None) -> Config:
    """Read the YAML file, apply the environment, check everything.

    Raises
    ------
    ConfigError
        The file cannot be read, is no YAML, or a key or value is wrong; every fault is named with its path.
    """
    data: Any = {}
    if path is not None:
        try:
            data = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader) or {}
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}. See `attributary config example`") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not YAML: {_yaml_fault(error)}") from None
        if not isinstance(data, dict):
            raise ConfigError(f"{path}: expected a mapping with the key `models`, got {type(data).__name__}")
    return parse_config(
        data, where=str(path) if path else "no configuration file given (--config, or ATTRIBUTARY_CONFIG)"
    )


def parse_config(data: dict[str, Any], where: str = "configuration") -> Config:
    """Check the configuration in `data`, overridden by the environment.

    Parameters
    ----------
    where
        Where `data` comes from, for error messages.

    Raises
    ------
    ConfigError
        A key or value is wrong; every fault is named with its path.
    """
    unknown = [name for name in os.environ if name.startswith("ATTRIBUTARY_") and not _is_known_variable(name)]
    if unknown:
        raise ConfigError(
            f"unknown environment variable {', '.join(sorted(unknown))}: see `attributary config example`"
        )
    # Names with an underscore are arguments of the settings library, which would take them.
    foreign = [key for key in data if not isinstance(key, str) or key.startswith("_")]
    if foreign:
        raise ConfigError(f"{where}: unknown key {', '.join(map(repr, foreign))}")
    try:
        return Config(**data)
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors())
        raise ConfigError(f"{where}: {faults}") from None
    except ValueError as error:  # a message of ours out of model_post_init
        raise ConfigError(f"{where}: {error}") from None


# Read elsewhere: not settings, but how the process is started.
_OTHER_VARIABLES = {"ATTRIBUTARY_CONFIG", "ATTRIBUTARY_KAFKA_LIB"}


def _is_known_variable(name: str) -> bool:
    section = name.removeprefix("ATTRIBUTARY_").lower().split("__")[0]
    return name in _OTHER_VARIABLES or section in Config.model_fields


def _yaml_fault(error: Exception) -> str:
    """Say what is wrong and where, without the line itself: it may hold a secret, and so may a name in it."""
    if isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark):
        problem = re.sub(r"(alias|anchor|tag|handle) ['\"].*", r"\1", error.problem or "a fault")
        return f"{problem} in line {mark.line + 1}, column {mark.column + 1}"
    return " ".join(str(error).split())


def _fault(fault: Any) -> str:
    loc = fault["loc"]
    path = ".".join(str(part) for part in loc)
    if fault["type"] == "extra_forbidden":
        # `password:x` without a blank is a key, in a section with secrets.
        if holds_secret(Config, loc[:-1]) and not re.fullmatch(r"[\w.-]+", str(loc[-1])):
            return f"unknown key in {'.'.join(map(str, loc[:-1])) or 'the configuration'} (not shown)"
        return f"unknown key {path!r}"
    if fault["type"] == "missing":
        return f"{path} is missing"
    message = fault["msg"].removeprefix("Value error, ")
    given = fault["input"]
    shown = f"{type(given).__name__} (not shown)" if holds_secret(Config, loc) else repr(given)
    got = "" if isinstance(given, dict) else f", got {shown}"
    return f"{path}: {message}{got}"


EXAMPLE = """\
# Every key and its default: attributary config schema
kafka:
  brokers: ["localhost:9092"]
  group: attributary
  topic_prefix: attributary
  partitions: 4
models:
  credit:                      # the model id: the key of its observations
    model:
      class: river.forest.ARFClassifier
      params: {n_models: 10, seed: 1}
    alpha: 0.002               # importance over a window of about 1000 observations
    explainers:
      pfi: {n_samples: 5}
      sage: {n_samples: 5}
    change: {importances: [pfi, sage]}
    publish: {every: 500}
    # quality: [accuracy, f1]    # River's metrics, published beside the loss; see docs/explainers/quality.md
    # explain: {budget: 0.3}     # explaining may take this share of the time; see docs/delivery.md, A budget
web: {host: 127.0.0.1, port: 6066}
"""
