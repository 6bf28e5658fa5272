"""`attributary topics`: lists or creates the topics that the configuration needs."""

from __future__ import annotations

import json

import click

from ..config.settings import Config
from .commands import Commands, config_option, json_option


@click.group(cls=Commands)
def topics() -> None:
    """List or create the topics that the configuration needs."""


@topics.command("list")
@config_option
@json_option
def topics_list(config: Config, as_json: bool) -> None:
    """Print every needed topic with its partitions and settings. Asks no broker.

    \b
        attributary topics list --config attributary.yaml
    """
    from ..kafka.topics import topic_specs

    specs = topic_specs(config)
    if as_json:
        click.echo(json.dumps([vars(spec) for spec in specs], indent=2))
        return
    for spec in specs:
        settings = " ".join(f"{name}={value}" for name, value in spec.settings.items())
        click.echo(f"{spec.name}\tpartitions={spec.partitions}\t{settings}\t# {spec.purpose}")


@topics.command("create")
@config_option
def topics_create(config: Config) -> None:
    """Create the topics that are missing; those that are there are left as they are.

    \b
        attributary topics create --config attributary.yaml
    """
    from ..kafka.topics import create_topics

    for spec, created in create_topics(config):
        partitions = f"{spec.partitions} partition{'' if spec.partitions == 1 else 's'}"
        click.echo(f"{'created' if created else 'exists '} {spec.name} ({partitions})")
