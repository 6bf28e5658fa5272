"""`attributary changes`: prints the change events."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import click

from ..config.settings import Config
from ..errors import AttributaryError
from .options import config_option, json_option

KINDS = (
    "alarm",
    "explanation",
    "not_confirmed",
    "importance_shift",
    "importance_shift_released",
    "loss_shift",
    "loss_shift_explained",
    "loss_shift_released",
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
    type=click.Choice(KINDS),
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
    """
    from ..kafka.topics import check_topics

    if model_id is not None and model_id not in config.models:
        raise AttributaryError(f"no model {model_id!r} is configured, but {', '.join(config.models)}")
    check_topics(config, config.kafka.topics.changes)
    try:
        asyncio.run(_print(config, model_id, last, kinds, follow, as_json))
    except KeyboardInterrupt:
        return


async def _print(
    config: Config, model_id: str | None, last: int, kinds: tuple[str, ...], follow: bool, as_json: bool
) -> None:
    from ..kafka.changes import read_changes
    from ..kafka.clients import client_log_muted

    with client_log_muted():
        async with aclosing(read_changes(config, model_id, last, kinds, follow=follow)) as events:
            async for event in events:
                click.echo(json.dumps(event) if as_json else f"{event['time']}\t{event['id']}\t{event['sentence']}")
