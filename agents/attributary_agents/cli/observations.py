"""`attributary replay` and `produce`: observations of a file, explained without Kafka or sent to it."""

from __future__ import annotations

import asyncio
import json
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..config.settings import Config
from ..errors import AttributaryError
from ..logs import configure_logging
from .options import config_option, json_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out"),
    show_default=True,
    help="Folder that the files are written to.",
)
@click.option("--model", "model_id", help="Id of the observations' model; needed where several are configured.")
@click.option("--target", help="Column with the label. [default: the last one]")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many rows.")
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


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@click.option("--model", "model_id", help="Id of the observations' model; needed where several are configured.")
@click.option("--target", help="Column with the label. [default: the last one]")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="Send at most this many observations per second."
)
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many rows.")
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


def _model_id(config: Config, model_id: str | None) -> str:
    if model_id is None and len(config.models) == 1:
        return next(iter(config.models))
    if model_id not in config.models:
        raise AttributaryError(f"name one of the configured models with --model: {', '.join(config.models)}")
    return model_id


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
        console=console,
        disable=not console.is_terminal,
    )
