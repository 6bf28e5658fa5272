"""Reads the configuration: a YAML file and environment variables.

`ATTRIBUTARY_KAFKA__GROUP=blue` sets `kafka.group`: see `environment`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from yaml.constructor import SafeConstructor

from ..errors import ConfigError
from .environment import with_environment
from .faults import lines_of
from .settings import Config


class _UniqueKeys(SafeConstructor):
    """YAML constructor that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        twice = sorted(str(key) for key, n in Counter(self._keys(node)).items() if n > 1)
        if twice:
            problem = f"key {', '.join(twice)} is given twice"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return super().construct_mapping(node, deep)

    def _keys(self, node: yaml.MappingNode) -> Iterator[Any]:
        for key, _ in node.value:
            made = self.construct_object(key, deep=True)
            if isinstance(made, Hashable):  # the others are refused anyway
                yield made


class _Loader(_UniqueKeys, yaml.SafeLoader):
    """Is written in Python: its faults say most."""


class _FastLoader(_UniqueKeys, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML loader on libyaml, where PyYAML has it.

    A file of 5 000 models takes a third of the time.
    """


def _parse(text: str) -> Any:
    try:
        return yaml.load(text, _FastLoader)
    except yaml.YAMLError:
        return yaml.load(text, _Loader)


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
            data = _parse(path.read_text(encoding="utf-8")) or {}
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}. See `attributary config example`") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not YAML: {_yaml_fault(error)}") from None
        if not isinstance(data, dict):
            got = "a list" if isinstance(data, list) else f"the text {data!r}"
            raise ConfigError(f"{path}: expected a mapping with the key `models`, got {got}")
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
    if foreign := [key for key in data if not isinstance(key, str)]:
        raise ConfigError(f"{where}: unknown key {', '.join(map(repr, foreign))}: keys are text")
    try:
        return Config.model_validate(with_environment(data))
    except ValidationError as error:
        raise ConfigError(f"{where}: {lines_of(error.errors())}") from None
    except ValueError as error:  # a message of ours, of a variable or out of model_post_init
        raise ConfigError(f"{where}: {error}") from None


def _yaml_fault(error: Exception) -> str:
    """Describe a fault of a YAML file and its place, without its text.

    A line, or a name, may hold a secret.
    """
    if not (isinstance(error, yaml.MarkedYAMLError) and (mark := error.problem_mark)):
        return " ".join(str(error).split())
    where = f"in line {mark.line + 1}, column {mark.column + 1}"
    problem = error.problem or "a fault"
    for found, said, remedy in _YAML:
        if re.match(found, problem):
            return f"{said} {where}: {remedy}"
    problem = re.sub(r"(alias|anchor|tag|handle) ['\"].*", r"\1", problem)
    return f"{problem} {where}"


_YAML = (
    (r"found character '\\t'", "a tab", "YAML indents with blanks, so replace each tab by two"),
    (
        r"found unknown escape character|expected escape sequence",
        "a backslash in double quotes",
        "write the text without quotes, or in single quotes",
    ),
    (
        r"mapping values are not allowed here",
        "a colon that no key can have",
        "keys of one section are indented alike, and a text with a colon and a blank needs quotes",
    ),
    (
        r"expected ',' or '[}\]]'",
        "a brace or bracket that is not closed",
        "close it, or give each key a line of its own",
    ),
    (r"expected <block end>", "a line that is indented otherwise", "keys of one section are indented alike"),
    (r"could not find expected ':'", "a line without a colon", "each key is followed by a colon and a blank"),
    (r"found character '[@`%]'", "a text that begins with a special character", "put it in quotes"),
)


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
