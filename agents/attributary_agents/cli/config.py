"""`attributary config`: shows or explains the configuration."""

from __future__ import annotations

import json
from typing import Any

import click
import yaml

from ..config.reading import EXAMPLE
from ..config.settings import Config
from ..logs import without_user
from .commands import Commands, config_option, json_option


@click.group("config", cls=Commands)
def config_group() -> None:
    """Print a configuration to start from, the one in force, or what every key means."""


@config_group.command("show")
@config_option
@json_option
def config_show(config: Config, as_json: bool) -> None:
    """Print the configuration as it is in force: file, environment and defaults.

    \b
        attributary config show --config attributary.yaml
        ATTRIBUTARY_MODELS__CREDIT__ALPHA=0.01 attributary config show --config attributary.yaml
    """
    data = _masked(config.model_dump(mode="json", by_alias=True))
    click.echo(json.dumps(data, indent=2) if as_json else yaml.safe_dump(data, sort_keys=False).rstrip())


def _masked(value: Any) -> Any:
    """Return what is shown of a value: a URL, or a broker, may have a user and a password in it."""
    if isinstance(value, dict):
        return {name: _masked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return without_user(value) if isinstance(value, str) else value


@config_group.command("example")
def config_example() -> None:
    """Print a configuration to start from.

    \b
        attributary config example > attributary.yaml
    """
    click.echo(EXAMPLE.rstrip())


@config_group.command("schema")
def config_schema() -> None:
    """Print the JSON Schema of the configuration: every key, its meaning and its default.

    \b
        attributary config schema > attributary.schema.json   # for an editor that completes keys
    """
    click.echo(json.dumps(Config.model_json_schema(), indent=2))
