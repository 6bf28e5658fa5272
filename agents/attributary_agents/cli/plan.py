"""`attributary plan`: workers, memory and latency for a load."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attributary_explainers.wording import show_names

from ..config.settings import Config
from ..errors import AttributaryError
from .commands import (
    Numbers,
    check_model_id,
    config_option,
    drop_option,
    json_option,
    open_observations,
    say,
    target_option,
)
from .progress import progress

if TYPE_CHECKING:
    from ..planning.plan import Plan, Wanted
    from ..planning.timing import Timed

_MOST_TIMED = 8


@click.command()
@config_option
@click.option(
    "--rate",
    type=Numbers(min=0, min_open=True),
    help="Plan for so many records a second, of all models together. [default: say what one worker carries]",
)
@click.option(
    "--models",
    "n_models",
    type=click.IntRange(min=1),
    help="Plan for so many models like the configured ones, each with the same rate. [default: those]",
)
@click.option(
    "--busy",
    type=Numbers(0.05, 0.95),
    default=0.6,
    show_default=True,
    help="Let the busiest worker be busy for this part of its time: the rest is for peaks.",
)
@click.option(
    "--sample",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Time a model with rows of this file: CSV, JSON lines, Parquet. [default: rows made up of the "
    "declared features]",
)
@target_option
@drop_option
@click.option(
    "--model",
    "model_id",
    metavar="ID",
    help="Time this model only; needed with FILE where there are several. [default: up to 8 of them]",
)
@click.option(
    "--features",
    "n_features",
    type=click.IntRange(min=1),
    help="Make up rows of so many numbers, where no features are declared and there is no FILE. [default: none]",
)
@click.option("--seconds", type=Numbers(0.1, 60), default=1.0, show_default=True, help="Time each model for so long.")
@json_option
def plan(
    config: Config,
    rate: float | None,
    n_models: int | None,
    busy: float,
    sample: Path | None,
    target: str | None,
    drop: tuple[str, ...],
    model_id: str | None,
    n_features: int | None,
    seconds: float,
    as_json: bool,
) -> None:
    """Say what a load needs: workers, cores, memory, partitions, latency and bytes.

    The configured models are timed on this machine, by the functions of a worker, with rows of a file or with made-up
    ones. What Kafka, Faust and checkpoints take beside them is from a capacity model that was measured, in units of
    what this machine is timed at. No broker is asked and nothing is kept. What a plan assumes is printed below it.

    \b
        attributary plan --rate 5000 --sample history.csv
        attributary plan --rate 20000 --models 10000 --features 12

    The exit code is 0; or 2 where no number of workers carries the load.
    """
    from ..planning.plan import Wanted, installed_capacity, make_plan
    from ..planning.timing import time_model, yardstick

    values, rows = _values(config, sample, target, drop, model_id, n_features)
    wanted = Wanted(rate, n_models or config.n_models_at_most, busy)
    yardstick_s, timed = yardstick(), {}
    with progress("plan", len(values)) as show:
        for number, (name, of_model) in enumerate(values.items()):
            show(number, f"timing {name}")
            timed[name] = time_model(config, name, of_model, seconds)
            show(number + 1)
    yardstick_s = (yardstick_s + yardstick()) / 2
    found = make_plan(config, wanted, timed, yardstick_s, installed_capacity())
    assumed = list(_assumptions(config, wanted, timed, rows, yardstick_s))
    if as_json:
        carried = found.carried and {k: None if v == math.inf else v for k, v in found.carried._asdict().items()}
        plain = found._asdict() | {"carried": carried}
        each = {name: one._asdict() for name, one in timed.items()}
        click.echo(json.dumps({"plan": plain, "timed": each, "yardstick_us": 1e6 * yardstick_s, "assumes": assumed}))
        return
    for name, text in _lines(found, wanted, config):
        say(f"{name:<13} {text}")
    for line in assumed:
        say(f"  assumes: {line}")


def _values(
    config: Config,
    sample: Path | None,
    target: str | None,
    drop: tuple[str, ...],
    model_id: str | None,
    n_features: int | None,
) -> tuple[dict[str, list[bytes]], str]:
    """Return the records that each model is timed with, and their origin."""
    from ..files.source import SAMPLE
    from ..kafka.observations import encode_value
    from ..rehearsal.rehearsal import made_up_values

    if model_id is not None:
        check_model_id(config, model_id)
    chosen = list(config.models)[:_MOST_TIMED] if model_id is None else [model_id]
    if sample is not None:
        if n_features is not None:
            raise AttributaryError("--features makes rows up, and --sample has rows: give one of the two")
        if model_id is None and len(config.models) > 1:
            raise AttributaryError(
                f"whose observations are in {sample}? Name one with --model: {show_names(config.models)}"
            )
        source = open_observations(sample, target, drop, config.settings_of(chosen[0]))
        values = [encode_value(value) for value in islice(source.values(), SAMPLE)]
        if not values:
            raise AttributaryError(f"there is no row in {sample}")
        return {chosen[0]: values}, f"rows of {sample}"
    made = {name: made_up_values(config, name, n_features) for name in chosen}
    for name, values in made.items():
        if not values:
            raise AttributaryError(
                f"nobody says which features {name} has: give rows with --sample FILE, or their number with --features "
                f"N, or declare them (models.{name}.features)"
            )
    return made, "made-up rows"


def _lines(plan: Plan, wanted: Wanted, config: Config) -> Iterator[tuple[str, str]]:
    """Yield the lines of a plan, each with its name."""
    high, configured = 1.0 + plan.error, config.kafka.partitions
    yield (
        "one record",
        f"{_time(plan.record_us)} of processor time ± {plan.error:.0%}: {_time(plan.step_us)} in the worker's own "
        f"functions, timed here, and {_time(plan.record_us - plan.step_us)} around them by the capacity model",
    )
    yield "one worker", f"{plan.per_worker:,.0f} records/s at most; {plan.per_worker / high:,.0f} at the unlucky end"
    yield "memory", f"{_size(plan.worker_bytes)} per worker"
    yield "state", f"{_size(plan.stored_bytes)} stored, of {wanted.models:,} model{'' if wanted.models == 1 else 's'}"
    if plan.carried is None:
        yield "workers", "give --rate to learn how many"
        return
    carried = plan.carried
    yield (
        "workers",
        f"{carried.workers}, each with one core; the busiest is busy for {carried.busiest:.0%} of its time "
        f"({carried.busiest * high:.0%} at the unlucky end)",
    )
    yield "partitions", f"{carried.partitions}; configured are {configured}"
    yield (
        "latency",
        f"{_time(1e6 * carried.wait_p50_s)} in the middle, {_time(1e6 * carried.wait_p99_s)} for 99 % of the records, "
        "in the busiest worker; beside it the way from the producer over the broker, and back",
    )
    yield "changelog", f"{_size(carried.changelog_per_s)}/s written by checkpoints"
    caught_up = "never" if carried.catch_up_s == math.inf else f"within {carried.catch_up_s:.0f} s"
    yield (
        "after a crash",
        f"{carried.replay_records:,.0f} records are repeated at most, and what waited since is handled {caught_up}, "
        f"once the worker is missed ({config.kafka.session_timeout_s:g} s)",
    )
    if carried.partitions > configured:
        yield (
            "CAUTION",
            f"kafka.partitions is {configured}, and {carried.partitions} are needed: models whose key moves to another "
            "partition begin anew, so choose before the topics are created",
        )
    if carried.busiest * high >= 1.0:
        yield "CAUTION", "at the unlucky end records come faster than they are handled: plan with a smaller --busy"


def _assumptions(
    config: Config, wanted: Wanted, timed: Mapping[str, Timed], rows: str, yardstick_s: float
) -> Iterator[str]:
    """Yield the assumptions of a plan."""
    for name, one in timed.items():
        refused = f"; {one.n - one.n_used:,} were dead letters" if one.n > one.n_used else ""
        yield f"{name}: {one.n:,} records ({rows}), {_time(1e6 * one.step_s)} each; its state is " + (
            f"{_size(one.state_bytes)}{refused}"
        )
    if wanted.models != len(config.models):
        yield f"{wanted.models:,} models, all like {'these' if len(timed) > 1 else 'this one'}, each with the same rate"
    yield f"the busiest worker may be busy for {wanted.busy:.0%} of its time (--busy)"
    yield (
        "models grow: a tree that has learnt more, more categories and longer windows cost more than they did here; "
        "plan again with later records"
    )
    yield (
        f"this machine: {1e6 * yardstick_s:.1f} µs for a scaler and a logistic regression to predict and learn; on "
        "another one all times follow that figure, so plan there"
    )


def _time(us: float) -> str:
    if us == math.inf:
        return "ever longer"
    unit, factor = ("µs", 1.0) if us < 1e3 else ("ms", 1e3) if us < 1e6 else ("s", 1e6)
    return f"{us / factor:.3g} {unit}"


def _size(n_bytes: float) -> str:
    unit, factor = ("bytes", 1.0) if n_bytes < 1e3 else ("kB", 1e3) if n_bytes < 1e6 else ("MB", 1e6)
    return f"{n_bytes / 1e9:.3g} GB" if n_bytes >= 1e9 else f"{n_bytes / factor:.3g} {unit}"
