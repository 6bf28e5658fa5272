"""The command `attributary`: its groups of commands, and what runs or checks a worker.

Data goes to stdout, logs and progress to stderr. The exit code is 0, 1 after a crash, or 2 for a user's fault.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ..config.settings import Config
from ..errors import AttributaryError
from .changes import changes
from .config import config_group
from .dashboards import dashboards
from .demo_stream import demo_stream
from .models import models
from .observations import produce, replay
from .options import config_option, json_option
from .rules import rules
from .topics import topics


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="attributary")
def cli() -> None:
    """Live feature attributions for models that learn on Kafka streams."""


@cli.command()
@config_option
def run(config: Config) -> None:
    """Run a worker: explain the observations of every configured model, until Ctrl-C or SIGTERM."""
    from ..run import run_worker  # Faust takes a second to import: only where it is needed

    sys.exit(run_worker(config))


@cli.command()
@config_option
@json_option
def check(config: Config, as_json: bool) -> None:
    """Check configuration, models, broker and topics: everything `run` needs, without running."""
    from ..kafka.admin import check_group
    from ..kafka.topics import check_topics
    from ..models.model_state import check_models
    from ..models.warm_up import warm_up
    from ..state.objects import check_objects

    check_models(config)
    check_topics(config)
    check_group(config)
    check_objects(config)
    evaluated = warm_up(config)
    if as_json:
        click.echo(json.dumps({"ok": True, "models": list(config.models), "evaluated": evaluated}))
        return
    click.echo(f"ok: {len(config.models)} models, topics at {', '.join(config.kafka.brokers)}")
    for model_id, how in evaluated.items():
        click.echo(f"{model_id}: evaluated {how}")


@cli.command()
@click.option("--data", type=click.Path(path_type=Path), help="Play this file (CSV, JSON lines, Parquet) instead.")
@click.option("--target", help="Column with the label. [default: the last one]")
@click.option("--model", "model_id", default="credit", show_default=True, help="Model id of the demo's model.")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many observations.")
@click.option(
    "--broker", "broker_spec", default="embedded", show_default=True, help="Broker: embedded, kafka or HOST:PORT."
)
@click.option("--port", type=click.IntRange(0, 65535), default=6066, show_default=True, help="Port of /metrics.")
@click.option("--plain", is_flag=True, help="Print plain lines, as without a terminal.")
@click.option("--exit", "exit_at_end", is_flag=True, help="End when all observations have been explained.")
def demo(**options: Any) -> None:
    """Watch a model change: a stream with drift through Kafka into a worker, with a live table.

    Starts an embedded broker, creates the topics, runs a worker, and plays Agrawal's credit data, whose true rule
    changes half-way. The worker's /metrics and the topics stay up until Ctrl-C.
    """
    from ..demo.demo import run_demo

    sys.exit(run_demo(**options))


for _command in (replay, produce, topics, config_group, models, changes, dashboards, rules, demo_stream):
    cli.add_command(_command)


def main() -> None:
    """Run the command; a user's fault is one line on stderr and exit code 2."""
    try:
        cli(standalone_mode=True)
    except AttributaryError as error:
        Console(stderr=True).print(f"attributary: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
