"""`attributary map`: maps the sources, in a process of its own."""

from __future__ import annotations

import click

from attributary_explainers.wording import show_count

from ...config.settings import Config
from ..commands import config_option, say
from ..progress import progress


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
    from ...mapping import run_mapper

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
