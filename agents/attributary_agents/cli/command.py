"""The command `attributary`. Data goes to stdout, logs and progress to stderr; exit 0, 1, or 2 for a user's fault."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import click
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..config.reading import EXAMPLE
from ..config.settings import Config
from ..errors import AttributaryError
from ..logs import configure_logging
from .changes import changes
from .dashboards import dashboards
from .demo_stream import demo_stream
from .models import models
from .options import config_option, json_option
from .rules import rules

stderr = Console(stderr=True)


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
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out"),
    show_default=True,
    help="Folder to write to.",
)
@click.option("--model", "model_id", help="Model id; needed where more than one is configured.")
@click.option("--target", help="Column with the label. [default: the last one]")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after so many rows.")
@json_option
def replay(
    config: Config, file: Path, out: Path, model_id: str | None, target: str | None, limit: int | None, as_json: bool
) -> None:
    """Explain the observations of FILE (CSV, JSON lines, Parquet) without Kafka, exactly as a worker would.

    Writes importances.jsonl, changes.jsonl, dead-letters.jsonl, metrics.prom and report.html into --out.
    """
    from ..models.model_state import check_models
    from ..replay.files import open_source
    from ..replay.replay import replay as run_replay

    configure_logging("WARNING")  # changes, which are logged as information, are printed below
    source = open_source(file, target)
    chosen = _model_id(config, model_id)
    check_models(config)
    with _progress() as bar:
        task = bar.add_task("replay", total=limit or source.n_rows, detail="")

        def shown(n: int, partition: Any) -> None:
            if n % 50 == 0:
                changes = sum(state.n_changes for state in partition.models.values())
                bar.update(task, completed=n, detail=f"{changes} changes")

        result = run_replay(source, chosen, config, out, limit=limit, progress=shown)
        bar.update(task, completed=result.consumed, total=result.consumed)
    counts = {
        "observations": result.consumed,
        "explained": result.explained,
        "dead_letters": result.dead_letters,
        "out": str(result.out),
    }
    if as_json:
        click.echo(json.dumps(counts))
        return
    with (out / "changes.jsonl").open("rb") as lines:  # bytes: a feature's name may hold what str takes as a line end
        for line in lines:
            click.echo(json.loads(line)["sentence"])
    click.echo(
        f"{result.consumed} observations: {result.explained} explained, {result.dead_letters} dead letters; "
        f"see {out / 'report.html'}"
    )


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@click.option("--model", "model_id", help="Model id; needed where more than one is configured.")
@click.option("--target", help="Column with the label. [default: the last one]")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Observations per second at most.")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after so many rows.")
def produce(
    config: Config, file: Path, model_id: str | None, target: str | None, rate: float | None, limit: int | None
) -> None:
    """Send the observations of FILE (CSV, JSON lines, Parquet) to the observations topic, in order."""
    from ..kafka.clients import client_log_muted
    from ..kafka.producing import encode_value
    from ..kafka.producing import produce as send
    from ..kafka.topics import check_topics
    from ..replay.files import open_source

    source = open_source(file, target)
    chosen = _model_id(config, model_id)
    check_topics(config, config.kafka.topics.observations)
    with _progress() as bar:
        task = bar.add_task("produce", total=limit or source.n_rows, detail="")
        values = (encode_value(value) for value in islice(source.values(), limit))
        progress = lambda n: bar.update(task, completed=n)  # noqa: E731
        with client_log_muted("aiokafka.producer"):
            sent = asyncio.run(send(config, chosen, values, rate=rate, progress=progress))
    click.echo(f"{sent} observations sent to {config.kafka.topics.observations}")


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


cli.add_command(models)
cli.add_command(changes)
cli.add_command(dashboards)
cli.add_command(rules)
cli.add_command(demo_stream)


@cli.group()
def topics() -> None:
    """List or create the topics that the configuration needs."""


@topics.command("list")
@config_option
@json_option
def topics_list(config: Config, as_json: bool) -> None:
    """Print every needed topic with its partitions and settings. Asks no broker."""
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
    """Create the topics that are missing; those that are there are left as they are."""
    from ..kafka.topics import create_topics

    for spec, created in create_topics(config):
        click.echo(f"{'created' if created else 'exists '} {spec.name} ({spec.partitions} partitions)")


@cli.group("config")
def config_group() -> None:
    """Show, explain or check the configuration."""


@config_group.command("show")
@config_option
@json_option
def config_show(config: Config, as_json: bool) -> None:
    """Print the configuration as it is in force: file, environment and defaults."""
    data = config.model_dump(mode="json", by_alias=True)
    click.echo(json.dumps(data, indent=2) if as_json else yaml.safe_dump(data, sort_keys=False).rstrip())


@config_group.command("example")
def config_example() -> None:
    """Print a configuration to start from."""
    click.echo(EXAMPLE.rstrip())


@config_group.command("schema")
def config_schema() -> None:
    """Print the JSON Schema of the configuration: every key, its meaning and its default."""
    click.echo(json.dumps(Config.model_json_schema(), indent=2))


@cli.command()
@click.option("--data", type=click.Path(path_type=Path), help="Play this CSV instead of the Agrawal stream.")
@click.option("--target", help="Column with the label. [default: the last one]")
@click.option("--model", "model_id", default="credit", show_default=True, help="Model id of the demo's model.")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after so many observations.")
@click.option("--broker", "broker_spec", default="embedded", show_default=True, help="embedded, kafka or HOST:PORT.")
@click.option("--port", type=click.IntRange(0, 65535), default=6066, show_default=True, help="Port of /metrics.")
@click.option("--plain", is_flag=True, help="Plain lines, as where there is no terminal.")
@click.option("--exit", "exit_at_end", is_flag=True, help="End when the stream has been explained.")
def demo(**options: Any) -> None:
    """Watch a model change: a stream with drift through Kafka into a worker, with a live table.

    Starts an embedded broker, creates the topics, runs a worker, and plays Agrawal's credit data, whose true rule
    changes half-way. Leaves /metrics and the topics open until Ctrl-C.
    """
    from ..demo.demo import run_demo

    sys.exit(run_demo(**options))


def _model_id(config: Config, model_id: str | None) -> str:
    if model_id is None and len(config.models) == 1:
        return next(iter(config.models))
    if model_id not in config.models:
        raise AttributaryError(f"name one of the configured models with --model: {', '.join(config.models)}")
    return model_id


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
        console=stderr,
        disable=not stderr.is_terminal,
    )


def main() -> None:
    """Entry point: a user's fault is one line on stderr and exit code 2."""
    try:
        cli(standalone_mode=True)
    except AttributaryError as error:
        stderr.print(f"attributary: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
