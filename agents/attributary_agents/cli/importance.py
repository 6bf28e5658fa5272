"""`attributary importance`: prints what a model relies on now."""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from attributary_explainers.losses.statement import is_score, loss_statement, measured
from attributary_explainers.wording import printable, show_count, show_number

from ..config.settings import Config
from .commands import check_model_id, config_option, json_option, say
from .progress import told_when_slow

if TYPE_CHECKING:
    from ..kafka.events import ReadImportance


_WIDE = 200
"""Columns of a table that is not printed to a terminal: no name is cut in a file."""

_SAME = ("model_version", "removal", "loss")
"""What two events must have in common for the difference of their importances to mean something."""


@click.command()
@click.argument("model_id", metavar="MODEL")
@config_option
@click.option("--follow", "-f", is_flag=True, help="Then print new events as they come, until Ctrl-C.")
@json_option
def importance(config: Config, model_id: str, follow: bool, as_json: bool) -> None:
    """Print what MODEL relies on now: the latest importance event of each of its explainers.

    Each feature has its importance ± half the width of the 95 % interval, its share, its rank, and how far it has moved
    since the event before. With --json each line is a whole event, as the topic has it.

    \b
        attributary importance credit
        attributary importance credit --follow
        attributary importance credit --json | jq '.features | keys'
    """
    from ..kafka.topics import check_topics

    check_model_id(config, model_id)
    with told_when_slow(config):
        check_topics(config, config.kafka.topics.importances)
    try:
        asyncio.run(_print(config, model_id, follow, as_json))
    except KeyboardInterrupt:
        return


async def _print(config: Config, model_id: str, follow: bool, as_json: bool) -> None:
    from ..kafka.clients import client_log_muted
    from ..kafka.events import read_importances

    topic = config.kafka.topics.importances
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)

    def told(n: int) -> None:
        if n == 0:
            model = config.find(model_id)
            every = "" if model is None else f" every {show_count(model.publish.every)} observations"
            say(
                f"nothing to show: {topic} has no event of {model_id} yet; one comes{every} that a worker explains, "
                "and `attributary check` says what it lacks",
                err=True,
            )

    def away(is_away: bool) -> None:
        brokers = ", ".join(config.kafka.brokers)
        answer = "do not answer; events are printed as soon as they do" if is_away else "answer again"
        say(f"attributary: the brokers at {brokers} {answer}", err=True)

    with client_log_muted():
        async with aclosing(read_importances(config, model_id, follow=follow, told=told, away=away)) as events:
            async for now, before in events:
                if as_json:
                    click.echo(now.raw)
                else:
                    _show(console, now, before)


def _show(console: Console, now: ReadImportance, before: ReadImportance | None) -> None:
    event = now.event
    same = before is not None and all(before.event.get(name) == event.get(name) for name in _SAME)
    past = before.event["features"] if before is not None and same else {}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("feature", no_wrap=not console.is_terminal)
    for column in ("importance", "± 95 %", "share", "rank", "moved"):
        table.add_column(column, justify="right")
    for name, feature in event["features"].items():
        width = feature["half_width"]
        table.add_row(
            Text(printable(name)),
            show_number(feature["importance"]),
            "" if width is None else show_number(width),
            f"{100 * feature['share']:.0f} %",
            str(feature["rank"]),
            _moved(feature, past.get(name)),
        )
    say(*_head(now))
    console.print(table)
    figures = {measured(event["loss"]): "model_loss", **_FIGURES}
    said = [f"{name} {show_number(event[key])}" for name, key in figures.items() if event.get(key) is not None]
    since = f" since observation {event['reference_id']}" if event.get("reference_id") else ""
    if event.get("shift") is not None:
        said.append(f"{100 * event['shift']:.0f} % of the importance has moved{since}")
    if event.get("stale"):
        said.append("STALE: nothing was explained since the event before")
    console.print(Text(printable(" · ".join(said)), style="dim"), soft_wrap=True)


_FIGURES = {"without features": "baseline_loss", "discrepancy": "discrepancy"}


def _head(read: ReadImportance) -> tuple[str, ...]:
    event = read.event
    loss, unit = event["loss"], event["loss_unit"]
    return (
        str(read.time),
        event["model_id"],
        f"version {event['model_version']}",
        event["explainer"] if event["removal"] == "none" else f"{event['explainer']} ({event['removal']})",
        f"observation {show_count(event['observation'])}",
        f"importance of the {loss_statement(loss, unit, None)}"
        if is_score(loss)
        else f"importance is {loss}, in {unit}",
    )


def _moved(feature: dict[str, Any], before: dict[str, Any] | None) -> Text:
    """Return by how much an importance has moved since the event before, in colour where that is beyond noise."""
    if before is None:
        return Text("")
    change = feature["importance"] - before["importance"]
    width = feature["half_width"]
    noise = math.inf if width is None else math.sqrt(2.0) * width  # of two importances, taken as independent
    style = "green" if change > noise else "red" if change < -noise else "dim"
    return Text(show_number(change, signed=True), style=style)
