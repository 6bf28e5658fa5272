"""Defines the command `attributary incidents`."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import click

from ..config.settings import Config
from .commands import check_model_id, config_option, json_option, say


@click.command()
@click.argument("model_id", required=False)
@config_option
@click.option(
    "--last", type=click.IntRange(min=1), default=10, show_default=True, help="Print at most this many past incidents."
)
@click.option("--open", "only_open", is_flag=True, help="Leave out past incidents that are over or withdrawn.")
@click.option("--revisions", is_flag=True, help="Print every revision of an incident, not the newest alone.")
@click.option("--follow", "-f", is_flag=True, help="Then print each new revision as it comes, until Ctrl-C.")
@json_option
def incidents(config: Config, model_id: str | None, as_json: bool, **options: Any) -> None:
    """Print the last incidents of a model, or of all models.

    A line has since when, severity, life, id, and what happened, as the newest revision says it: a revision replaces
    all earlier ones. With --revisions and --follow the time is that of the revision. The id is that of the first
    revision; it has topic, partition and offset of its observation. With --json each line is a whole event.

    \b
        attributary incidents credit --last 3
        attributary incidents --open
        attributary incidents --follow
    """
    from ..kafka.topics import check_topics

    if model_id is not None:
        check_model_id(config, model_id)
    check_topics(config, config.kafka.topics.incidents)
    try:
        asyncio.run(_print(config, model_id, as_json, **options))
    except KeyboardInterrupt:
        return


async def _print(
    config: Config, model_id: str | None, as_json: bool, *, last: int, only_open: bool, revisions: bool, follow: bool
) -> None:
    from ..kafka.clients import client_log_muted
    from ..kafka.events import onset_time, read_incidents

    of_revision = revisions

    def told(n: int) -> None:
        nonlocal of_revision
        of_revision = True
        if n == 0:
            whose = f" of {model_id}" if model_id is not None else ""
            open_ = "open " if only_open else ""
            say(f"nothing to show: {config.kafka.topics.incidents} has no {open_}incident{whose}", err=True)

    with client_log_muted():
        reading = read_incidents(
            config, model_id, last, only_open=only_open, revisions=revisions, follow=follow, told=told
        )
        async with aclosing(reading) as events:
            async for event in events:
                if as_json:
                    click.echo(json.dumps(event))
                else:
                    time = event["time"] if of_revision else onset_time(event)
                    say(time, event["severity"], event["life"], event["id"], event["sentence"])
