"""`attributary config`: shows or explains the configuration."""

from __future__ import annotations

import json

import click
import yaml

from ..config.reading import EXAMPLE
from ..config.settings import Config
from .options import config_option, json_option


@click.group("config")
def config_group() -> None:
    """Show, explain or check the configuration."""


@config_group.command("show")
@config_option
@json_option
def config_show(config: Config, as_json: bool) -> None:
    """Print the configuration as it is in force: file, environment and defaults."""
    data = config.model_dump(mode="json", by_alias=True)
    click.echo(json.dumps(data, indent=2) if as_json else yaml.safe_dump(data, sort_keys=False).rstrip())


@config_group.command("example")
def config_example() -> None:
    """Print a configuration to start from."""
    click.echo(EXAMPLE.rstrip())


@config_group.command("schema")
def config_schema() -> None:
    """Print the JSON Schema of the configuration: every key, its meaning and its default."""
    click.echo(json.dumps(Config.model_json_schema(), indent=2))
