"""`attributary map` and `attributary sources`: mapping, its status, and setting it back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from attributary_explainers.wording import show_count

from ..config.settings import Config
from .commands import config_option, json_option, say
from .progress import progress, told_when_slow

if TYPE_CHECKING:
    from ..sources.mappers.status import SourceStatus
from .commands import Commands
from .suggest import suggest


@click.command("map")
@config_option
@click.option("--once", is_flag=True, help="Map what the topics have now, and end; nothing is served at /metrics.")
@click.option("--no-wait", is_flag=True, help="End with exit code 2 where no broker answers, and do not wait for one.")
def map_sources(config: Config, once: bool, no_wait: bool) -> None:
    """Map the records of `sources` and `labels` to observations, until Ctrl-C or SIGTERM.

    `attributary run` does it beside the observations, unless `run.mapper` is false. Each source is mapped by one
    process, wherever it runs; which one, a consumer group decides. A mapper that was killed goes on where it was: no
    record is lost, and what it writes a second time is taken once.

    \b
        attributary map --config attributary.yaml
        attributary map --config attributary.yaml --once     # a backlog, or a test
    """
    from ..mapping import run_mapper

    if not once:
        run_mapper(config, wait=not no_wait)
        return
    with progress("map", None) as show:
        board = run_mapper(
            config, once=True, wait=not no_wait, progress=lambda n, total: show(n, f"of {show_count(total)}")
        )
    for name, section in sorted(board.sections.items()):
        counts = section.counts
        say(name, f"{counts['mapped']} mapped", f"{counts['filtered']} passed over", f"{counts['dead']} dead letters")


@click.command("status")
@config_option
@json_option
def sources_status(config: Config, as_json: bool) -> None:
    """Print how far each source is mapped, and who maps it.

    Of each partition: the offset that is mapped next, the partition's end, and the last offset that a worker has taken.
    That one stays behind where the last records were passed over or became dead letters.

    \b
        attributary sources status --config attributary.yaml
    """
    from ..sources.mappers.status import find_status

    with told_when_slow(config):
        found = find_status(config)
    if as_json:
        click.echo(json.dumps([_as_json(one) for one in found], indent=2))
        return
    for one in found:
        say(one.name, f"mapped by {one.mapper or 'nobody now'}", *([f"read again {one.run}x"] if one.run else []))
        for place in one.places:
            mapped = "not begun" if place.committed is None else f"mapped up to {place.committed}"
            taken = "" if place.taken is None else f"last taken {place.taken}"
            lag = "" if place.lag is None else f"{place.lag} to map"
            late = "" if place.time_lag_s is None else f"{place.time_lag_s:.0f} s behind"
            fields = [mapped, f"ends at {place.end}", lag, late, taken]
            say("", f"{place.topic}[{place.partition}]", *(field for field in fields if field))


def _as_json(one: SourceStatus) -> dict[str, Any]:
    places = [{**place._asdict(), "lag": place.lag} for place in one.places]
    return {"name": one.name, "mapper": one.mapper, "run": one.run, "places": places}


@click.command("reset")
@config_option
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def sources_reset(config: Config, name: str, yes: bool) -> None:
    """Map source NAME again from `start` on: its records count twice.

    All mappers must have stopped, and the workers that map. What is mapped again is no repeat: every model has these
    observations a second time. It is what to do after a topic was deleted and made again.

    \b
        attributary sources reset rentals --config attributary.yaml
    """
    from ..sources.mappers.status import reset

    if not yes:
        click.confirm(f"The records of {name} will be mapped, and count, a second time. Go on?", abort=True, err=True)
    with told_when_slow(config):
        places = reset(config, name)
    for place in places:
        say(f"{place.topic}[{place.partition}]", f"is mapped from {place.committed} on")


@click.group(cls=Commands)
def sources() -> None:
    """Attach topics that you have already: suggest how, look at how far they are mapped, set one back."""


for _command in (suggest, sources_status, sources_reset):
    sources.add_command(_command)
