"""`attributary models export`, `import` and `reset`: moves or deletes the stored state of one model."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from attributary_explainers.wording import show_names
from attributary_topics import InvalidRecordError, decode_model_id

from ..config.settings import Config
from ..errors import AttributaryError
from .commands import config_option, json_option, refuse_template, say
from .progress import told_when_slow

F = TypeVar("F", bound=Callable[..., Any])


def _yes_option(function: F) -> F:
    return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(function)


def _prepare(config: Config, model_id: str) -> None:
    """Do what all three need: warn on stderr, and check the model id and the changelog."""
    from ..kafka.topics import check_topics
    from ..logs import configure_logging

    configure_logging("WARNING")
    try:
        decode_model_id(model_id.encode(errors="surrogateescape"))
    except InvalidRecordError as error:
        raise AttributaryError(f"model id {model_id!r}: {error}") from None
    refuse_template(config, model_id)
    with told_when_slow(config):
        check_topics(config, config.kafka.changelog)


def _refuse_shards(config: Config, model_id: str) -> None:
    """Refuse to move the states of shards: each belongs to the offsets of its partition."""
    if model_id in config.sharded:
        raise AttributaryError(
            f"{model_id} is sharded: it has a state on each partition, and none of them can be moved. What it knows it "
            "has from the last observations; `attributary models reset` lets it begin afresh"
        )


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise AttributaryError(f"{question} There is no terminal to ask on: say --yes")
    click.confirm(question, abort=True, err=True)


@click.command("export")
@click.argument("model_id")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@config_option
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@json_option
def export(config: Config, model_id: str, file: Path, force: bool, as_json: bool) -> None:
    """Write the stored state of MODEL_ID to FILE: the model, its explainers, its counters.

    Workers may run: FILE gets the state of the last checkpoint. Its first line is JSON and says what is in it, up to
    which observation. With state.key it is signed. FILE contains stored observations: let only those read it who
    may read the observations, and only those write it who may write the state.

    \b
        attributary models export credit credit.state
    """
    from ..state.admin import export_state
    from ..state.files import check_free, write_file
    from ..state.objects import check_objects
    from ..state.seal import seal_of

    _refuse_shards(config, model_id)
    check_free(file, force=force)
    _prepare(config, model_id)
    check_objects(config)
    exported = export_state(config, model_id)
    write_file(file, exported, seal_of(config))
    said = exported.header
    if as_json:
        click.echo(json.dumps({**said, "file": str(file)}))
        return
    place = f"{config.kafka.topics.observations}[{said['partition']}]@{said['offset']}"
    say(
        f"{file}: {model_id}, version {said['version']}, {said['observations']} observations up to {place}, "
        f"{said['size']} bytes"
    )


@click.command("import")
@click.argument("model_id")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@config_option
@click.option(
    "--partition",
    type=click.IntRange(min=0),
    help="Import into this partition, that of the model's observations. [default: what the stored state tells]",
)
@click.option("--as-other", is_flag=True, help="Accept the state of another model.")
@_yes_option
@json_option
def import_(
    config: Config, model_id: str, file: Path, partition: int | None, as_other: bool, yes: bool, as_json: bool
) -> None:
    """Let MODEL_ID go on from the state in FILE, which `models export` has written. Stop the group's workers before.

    The model goes on with the next observation that the group has not handled: what was handled in the meantime is not
    repeated, and the imported model does not learn it. Where the topic has the last observation of FILE, the model goes
    on behind that one at the earliest. FILE is refused, before anything is written, if it is damaged, not signed with
    state.key, holds a type that stored models may not hold, or is of no use to this release as configured.

    \b
        attributary models import credit credit.state
    """
    from ..state.files import read_file
    from ..state.importing import carry_out, plan_import
    from ..state.objects import check_objects
    from ..state.seal import seal_of

    _refuse_shards(config, model_id)
    exported = read_file(file, seal_of(config))
    _prepare(config, model_id)
    check_objects(config)
    planned = plan_import(config, model_id, exported, partition=partition, as_other=as_other)
    topic = config.kafka.topics.observations
    what = f"version {planned.version} of {model_id}, {planned.n_observations} observations"
    where = f"goes on behind {topic}[{planned.partition}]@{planned.offset}"
    lost = "" if planned.replaces is None else f" The present state, {planned.replaces} observations, is replaced."
    _confirm(f"{what}, {where}.{lost} Import?", yes)
    carry_out(config, planned)
    if as_json:
        names = ("model_id", "version", "partition", "offset", "n_observations", "replaces")
        click.echo(json.dumps({"topic": topic} | {name: getattr(planned, name) for name in names}))
    else:
        say(f"{what}, {where}")


@click.command("reset")
@click.argument("model_id")
@config_option
@_yes_option
@json_option
def reset(config: Config, model_id: str, yes: bool, as_json: bool) -> None:
    """Delete what is stored of MODEL_ID, damaged or not: state and deployments. Stop the group's workers before.

    The next worker begins the model afresh, as configured, with the next observation that the group has not handled.
    This works for models that are no longer configured, too. `models export` makes a copy first.

    \b
        attributary models reset credit
    """
    from ..kafka.deployments import repeat_deployment
    from ..state.writing import reset_state

    _prepare(config, model_id)
    topic = config.kafka.changelog
    _confirm(f"Everything that {topic} has of {model_id} is deleted. Reset?", yes)
    places = reset_state(config, model_id)
    if not places and config.find(model_id) is None:
        raise AttributaryError(f"{topic} has nothing of {model_id}; configured are {show_names(config.models)}")
    if (settings := config.find(model_id)) is not None and settings.registered is not None:
        asyncio.run(repeat_deployment(config, model_id))  # or it would wait for its registry to name another version
    if as_json:
        click.echo(json.dumps({"model_id": model_id, "topic": topic, "partitions": places}))
    elif places:
        say(f"{model_id} is reset: deleted from {', '.join(f'{topic}[{n}]' for n in places)}")
    else:
        say(f"{topic} has nothing of {model_id}: nothing to reset")
