"""`attributary replay` and `produce`: observations of a file, explained without Kafka or sent to it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from attributary_explainers.wording import show_count, show_names
from attributary_topics import REASONS

from ..config.settings import Config
from ..errors import AttributaryError, ConfigError, UnsentError
from ..logs import configure_logging
from .commands import Numbers, check_model_id, config_option, drop_option, json_option, open_observations, say
from .progress import holdouts_told, not_acknowledged, progress, told_when_slow

if TYPE_CHECKING:
    from ..replay.replay import ReplayResult

F = TypeVar("F", bound=Callable[..., Any])


def rows_options(function: F) -> F:
    """Add FILE, `--config`, and the options that say which of its rows and columns go to which model."""
    options = (
        click.argument("file", type=click.Path(path_type=Path)),
        config_option,
        click.option(
            "--model", "model_id", help="Give the observations to the model of this id. [default: the only one]"
        ),
        click.option(
            "--target", help="Take the label from this column. [default: the last one; none for a model without labels]"
        ),
        drop_option,
        click.option("--limit", type=click.IntRange(min=1), help="Stop after this many rows. [default: all]"),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@rows_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out"),
    show_default=True,
    help="Write the files to this folder.",
)
@json_option
def replay(
    config: Config,
    file: Path,
    out: Path,
    model_id: str | None,
    target: str | None,
    drop: tuple[str, ...],
    limit: int | None,
    as_json: bool,
) -> None:
    """Explain the observations of FILE (CSV, JSON lines, Parquet) without Kafka, exactly as a worker would.

    Prints what has happened to the model, and writes importances.jsonl, incidents.jsonl, dead-letters.jsonl,
    metrics.prom and report.html into --out. report.html is the page of `attributary serve` with all of this in it: any
    browser opens the file, and it asks no server. The exit code is 0; 1 where nothing was explained; 2 where the model
    cannot work with the first rows, as `check` says.

    \b
        attributary replay history.csv --config attributary.yaml
        attributary replay history.csv --drop id,when
        attributary replay history.jsonl --target label --model credit --limit 20000 --out out
    """
    from attributary_explainers.monitor.holdout import holdouts_shown

    from ..kafka.observations import encode_value
    from ..rehearsal.rehearsal import N_ROWS, rehearse
    from ..replay.replay import replay as run_replay

    configure_logging("WARNING")
    chosen = _model_id(config, model_id)
    source = open_observations(file, target, drop, config.find(chosen))
    first = [encode_value(value) for value in islice(source.values(), min(N_ROWS, limit or N_ROWS))]
    with holdouts_told():
        rehearsed = rehearse(config, chosen, first, f"rows of {file}")
    if rehearsed.problem is not None:
        # What an exception says may hold values of a row, and belongs on nobody's stderr.
        more = "" if rehearsed.said is None else f"; `attributary check --sample {file}` shows what the exception says"
        raise ConfigError(f"models.{chosen}: {rehearsed.problem}{more}")
    total = source.count(limit)
    with progress("replay", total) as shown:

        def handled(n: int, partition: Any) -> None:
            if n % 50 == 0 or n == total:
                found = sum(state.counts.incidents.total() for state in partition.models.values())
                shown(n, f"{found} incident{'' if found == 1 else 's'}")

        def of_holdout(_model_id: str, n: int, of: int) -> None:
            shown(0, f"{show_count(n)} of {show_count(of)} rows of the hold-out explained")

        with holdouts_shown(of_holdout):
            result = run_replay(source, chosen, config, out, limit=limit, progress=handled)
    counts = {
        "observations": result.consumed,
        "explained": result.explained,
        "dead_letters": result.dead_letters,
        "reasons": result.reasons,
        "skipped": result.skipped,
        "guard": None if result.guard is None else asdict(result.guard),
        "out": str(result.out),
    }
    if as_json:
        click.echo(json.dumps(counts))
        sys.exit(0 if result.n_explained else 1)
    for sentence in _happened(out / "incidents.jsonl"):
        say(sentence)
    if result.guard is not None:
        say(f"loss watch: {result.guard.sentence}")
    say(
        f"{result.consumed} observations: {result.explained} explained, {result.dead_letters} dead letters; "
        f"see {out / 'report.html'}"
    )
    for shortfall in _shortfalls(result):
        say(shortfall)
    sys.exit(0 if result.n_explained else 1)


def _happened(path: Path) -> Iterator[str]:
    """Yield the latest sentence of each confirmed incident."""
    sentences: dict[str, str] = {}
    with path.open("rb") as lines:  # bytes: a feature's name may hold what str takes as a line end
        for event in map(json.loads, lines):
            if event["life"] == "confirmed" or event["id"] in sentences:
                sentences[event["id"]] = event["sentence"]
    yield from sentences.values()


def _shortfalls(result: ReplayResult) -> Iterator[str]:
    """Yield what was not explained, by reason: loudly where that is most of the observations, or all."""
    n_failed = result.dead_letters
    n_skipped = result.consumed - n_failed - result.n_explained
    if result.reasons:
        yield "dead letters: " + ", ".join(f"{n} {reason} ({REASONS[reason]})" for reason, n in result.reasons.items())
    if result.n_explained == 0 or 2 * (n_failed + n_skipped) > result.consumed:
        for name, reasons in result.skipped.items():
            # What `explain.every` or the budget passes over was not to be explained.
            shown = [f"{n} {reason.replace('_', ' ')}" for reason, n in reasons.items() if reason != "budget"]
            if shown:
                yield f"{name} skipped: {', '.join(shown)}"
    if result.n_explained == 0:
        yield f"NOTHING WAS EXPLAINED of {result.consumed} observations"
    elif 2 * n_failed > result.consumed:
        yield (
            f"MOST OBSERVATIONS FAILED: {n_failed} of {result.consumed} are dead letters, and the importances are of "
            f"the other {result.consumed - n_failed}; each is in {result.out / 'dead-letters.jsonl'} with its reason"
        )


@click.command()
@rows_options
@click.option(
    "--rate",
    type=Numbers(min=0, min_open=True),
    help="Send at most this many observations per second. [default: as fast as it goes]",
)
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=0,
    help="Leave out the first N rows, which --limit counts all the same. [default: none]",
)
def produce(
    config: Config,
    file: Path,
    model_id: str | None,
    target: str | None,
    drop: tuple[str, ...],
    rate: float | None,
    limit: int | None,
    skip: int,
) -> None:
    """Send the observations of FILE (CSV, JSON lines, Parquet) to the observations topic, in order.

    Those of a sharded model go to all partitions in turn.

    While no broker acknowledges what is sent, it waits, and says so. Where a broker refuses, or at Ctrl-C, it says how
    many rows of FILE are in the topic and with which --skip another run goes on behind them. The few that were sent
    and not acknowledged may be in the topic, too: that run sends them once more.

    \b
        attributary produce history.csv --config attributary.yaml --rate 100
        attributary produce history.csv --config attributary.yaml --skip 12000
    """
    from ..kafka.clients import client_log_muted
    from ..kafka.observations import Sending, encode_value
    from ..kafka.topics import check_topics

    if limit is not None and skip >= limit:
        raise AttributaryError(f"--skip {skip} leaves no row of the first {limit}, which are all that --limit takes")
    if config.direct is not None:
        raise AttributaryError(
            f"sources.{config.direct[0]}: workers read {config.kafka.topics.observations}, which is not ours: nothing "
            "is written there"
        )
    chosen = _model_id(config, model_id)
    source = open_observations(file, target, drop, config.find(chosen))
    with told_when_slow(config):
        check_topics(config, config.kafka.topics.observations)
    with progress("produce", source.count(limit)) as shown, client_log_muted("aiokafka"):
        values = (encode_value(value) for value in islice(source.values(), skip, limit))
        sending = Sending(config, chosen, rate=rate, first=skip, progress=lambda n: shown(skip + n), silent=_say_silent)
        try:
            sent = asyncio.run(sending.send(values))
        except (UnsentError, KeyboardInterrupt) as error:
            n, more = sending.acknowledged, sending.unacknowledged
            why = str(error) or "stopped"
            there = _go_on(config.kafka.topics.observations, skip + n, more, sending.is_next_refused)
            raise UnsentError(f"{why.rstrip('.')}. {there}", n, more) from None
    if not sent:
        raise AttributaryError(f"nothing was sent: {file} has no row{f' behind the first {skip}' if skip else ''}")
    say(f"{sent} observations sent to {config.kafka.topics.observations}")


def _say_silent(seconds: float, n: int) -> None:
    say(f"produce: {not_acknowledged(seconds, n)}", err=True)


def _go_on(topic: str, n: int, more: int, is_next_refused: bool) -> str:
    """Return which rows are in the topic, and how to send the others."""
    there = "None of the rows is" if n == 0 else "The first row is" if n == 1 else f"The first {n} rows are"
    further = f"{more} further row{' was' if more == 1 else 's were'}"
    may = f" {further} sent and not acknowledged: the topic may have them, and has them twice then." if more else ""
    if is_next_refused:
        return (
            f"{there} in the topic {topic}. Row {n + 1} is refused for what it is: mend it and go on with --skip {n}, "
            f"or leave it out with --skip {n + 1}.{may}"
        )
    return f"{there} in the topic {topic}: go on with --skip {n}.{may}"


def _model_id(config: Config, model_id: str | None) -> str:
    if model_id is None and len(config.models) == len(config.finder.ids) == 1:
        return next(iter(config.models))
    if model_id is None:
        raise AttributaryError(f"name one of the configured models with --model: {show_names(config.models)}")
    check_model_id(config, model_id)
    return model_id
