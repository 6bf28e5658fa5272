"""`attributary changes`: prints the change events."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import click

from ...config.settings import Config
from ..commands import Names, check_model_id, config_option, json_option, say

KINDS = (
    "alarm",
    "explanation",
    "not_confirmed",
    "importance_shift",
    "importance_shift_released",
    "loss_shift",
    "loss_shift_explained",
    "loss_shift_released",
    "recovered",
)


@click.command()
@click.argument("model_id", required=False)
@config_option
@click.option(
    "--last", type=click.IntRange(min=1), default=10, show_default=True, help="Print at most this many past events."
)
@click.option(
    "--event",
    "kinds",
    type=Names(KINDS),
    multiple=True,
    help="Print events of this kind only; may be given several times. [default: all]",
)
@click.option("--follow", "-f", is_flag=True, help="Then print new events as they come, until Ctrl-C.")
@json_option
def changes(
    config: Config, model_id: str | None, last: int, kinds: tuple[str, ...], follow: bool, as_json: bool
) -> None:
    """Print the last events of change, of MODEL_ID or of all models: time, id, and what they say.

    The id is the one that an alert's exemplar names; it contains topic, partition and offset of the observation. An
    alarm is closed by an explanation or a not_confirmed. With --json each line is a whole event.

    \b
        attributary changes credit --last 3
        attributary changes --event explanation --follow
    """
    from ...kafka.topics import check_topics

    if model_id is not None:
        check_model_id(config, model_id)
    check_topics(config, config.kafka.topics.changes)
    try:
        asyncio.run(_print(config, model_id, last, kinds, follow, as_json))
    except KeyboardInterrupt:
        return


async def _print(
    config: Config, model_id: str | None, last: int, kinds: tuple[str, ...], follow: bool, as_json: bool
) -> None:
    from ...kafka.clients import client_log_muted
    from ...kafka.events.changes import read_changes

    def told(n: int) -> None:
        if n == 0:
            whose = f" of {model_id}" if model_id is not None else ""
            which = f" of the kind {' or '.join(kinds)}" if kinds else ""
            say(f"nothing to show: {config.kafka.topics.changes} has no event{whose}{which} yet", err=True)

    with client_log_muted():
        async with aclosing(read_changes(config, model_id, last, kinds, follow=follow, told=told)) as events:
            async for event in events:
                if as_json:
                    click.echo(json.dumps(event))
                else:
                    say(event["time"], event["id"], event["sentence"])
