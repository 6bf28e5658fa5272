"""The command `attributary`: its groups of commands, and what runs or checks a worker.

Data goes to stdout, logs and progress to stderr. The exit code is 0, 1 after a crash, or 2 for a user's fault.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from attributary_explainers.wording import printable

from ..config.settings import Config
from ..errors import AttributaryError
from ..logs import without_user
from .check import check
from .commands import Count, Sections, config_option, drop_option, open_observations
from .config import config_group
from .contracts import contracts
from .dead_letters import dlq
from .demo_stream import demo_stream
from .importance import importance
from .incidents import incidents
from .models import models
from .monitoring import dashboards, rules
from .observations import produce, replay
from .plan import plan
from .serve import serve
from .sources import map_sources, sources
from .topics import topics
from .webhooks import webhooks


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="attributary")
def cli() -> None:
    """Explain live what models that learn on Kafka streams rely on, and tell when that changes.

    Each command has examples in its own help: `attributary replay --help`.

    \b
        attributary demo                                     # a stream with drift, on a broker of its own
        attributary config example > attributary.yaml        # a configuration to start from
        attributary replay history.csv -c attributary.yaml   # explain a file, without Kafka
    """


@cli.command()
@config_option
@click.option(
    "--workers",
    type=Count(),
    default=1,
    show_default=True,
    help="Run so many workers on this machine, at most one for each partition; auto: one for each processor.",
)
@click.option("--no-wait", is_flag=True, help="End with exit code 2 where no broker answers, and do not wait for one.")
def run(config: Config, workers: int | str, no_wait: bool) -> None:
    """Run a worker, or several: explain the observations of every configured model, until Ctrl-C or SIGTERM.

    A worker goes on from its last checkpoint. While no broker answers it waits, at the start as later. Logs go to
    stderr; the last line says what was handled and where the partitions stand.

    A worker uses one processor, and partitions are shared among the workers of a group, wherever they run. With
    --workers a supervisor starts several here, a process each, starts again what ends, and stops them together. The
    first has /metrics, /livez and /readyz at the configured port, each further one at the next port; each line of the
    log names its worker.

    \b
        attributary run --config attributary.yaml
        attributary run --config attributary.yaml --workers 4
        ATTRIBUTARY_KAFKA__BROKERS=kafka:9092 attributary run --config attributary.yaml
    """
    from ..supervisor import run_workers  # Faust takes a second: only where it is needed

    sys.exit(run_workers(config, workers, wait=not no_wait))


@cli.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Play this file: CSV, JSON lines, Parquet. [default: made data]",
)
@click.option("--target", help="Take the label from this column. [default: the last one]")
@drop_option
@click.option("--model", "model_id", default="credit", show_default=True, help="Give the demo's model this id.")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many observations. [default: all]")
@click.option(
    "--broker",
    "broker_spec",
    default="embedded",
    show_default=True,
    help="Use this broker: embedded, kafka (Apache Kafka, which needs Java) or HOST:PORT.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6066,
    show_default=True,
    help="Serve /metrics at this port; 0 takes a free one.",
)
@click.option("--no-page", "with_page", flag_value=False, default=True, help="Leave out the page.")
@click.option("--plain", is_flag=True, help="Print plain lines, as without a terminal.")
@click.option("--exit", "exit_at_end", is_flag=True, help="End when all observations have been explained.")
def demo(data: Path | None, target: str | None, drop: tuple[str, ...], **options: Any) -> None:
    """Watch a model change: a stream with drift through Kafka into a worker, with a page and a live table.

    Says the address of the page, starts an embedded broker, creates the topics, runs `attributary serve` and a worker,
    and plays Agrawal's credit data, whose true rule changes half-way. The page, the worker's /metrics and the topics
    stay up until Ctrl-C. The page needs the extra `serve`, which the extra `demo` brings; without it the rest goes on.

    \b
        attributary demo
        attributary demo --data history.csv --target label --limit 20000
    """
    from ..demo.demo import run_demo

    source = None if data is None else open_observations(data, target, drop)
    sys.exit(run_demo(source=source, **options))


for _command in (
    check,
    serve,
    replay,
    plan,
    produce,
    topics,
    map_sources,
    sources,
    config_group,
    models,
    importance,
    incidents,
    dlq,
    dashboards,
    rules,
    contracts,
    webhooks,
    demo_stream,
):
    cli.add_command(_command)


def main() -> None:
    """Run the command; a user's fault is one line on stderr and exit code 2."""
    try:
        cli(standalone_mode=True)
    except AttributaryError as error:
        told = without_user(printable(error, keep="\n"))
        Console(stderr=True).print(f"attributary: {told}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
