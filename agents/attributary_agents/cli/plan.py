"""`attributary plan`: what a load needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from ..planning.fleet import Sample
    from ..planning.plan import Plan, Wanted
    from ..planning.timing import Timed


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
@click.option("--simulate", is_flag=True, help="Also play minutes in which a worker is killed and one joins.")
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
    simulate: bool,
    as_json: bool,
) -> None:
    """Say what a load needs: workers, cores, memory, partitions, latency and bytes.

    The configured models are timed on this machine, by the functions of a worker, with rows of a file or with made-up
    ones. What Kafka, Faust and checkpoints take beside them is from a capacity model that was measured, in units of
    what this machine is timed at. No broker is asked and nothing is kept. What a plan assumes is printed below it.

    \b
        attributary plan --rate 5000 --sample history.csv
        attributary plan --rate 20000 --models 10000 --features 12
        attributary plan --rate 5000 --sample history.csv --simulate

    The exit code is 0; or 2 where no number of workers carries the load.
    """
    from ..planning.capacity import installed_capacity
    from ..planning.plan import Wanted, make_plan
    from ..planning.report import as_plain, assumptions, plan_lines, simulation_lines
    from ..planning.timing import yardstick

    if simulate and rate is None:
        raise AttributaryError("--simulate plays a load: give it with --rate")
    values, rows = _values(config, sample, target, drop, model_id, n_features)
    wanted = Wanted(rate, n_models or config.n_models_at_most, busy)
    before = yardstick()
    timed = _timed(config, values, seconds)
    yardstick_s = (before + yardstick()) / 2
    found = make_plan(config, wanted, timed, yardstick_s, installed_capacity())
    samples = _simulated(config, found, wanted, timed) if simulate else []
    if as_json:
        made: dict[str, Any] = {
            "plan": as_plain(found),
            "timed": {name: asdict(one) for name, one in timed.items()},
            "yardstick_us": 1e6 * yardstick_s,
            "assumes": list(assumptions(config, wanted, timed, rows, yardstick_s)),
            "simulation": [asdict(one) for one in samples],
        }
        click.echo(json.dumps(made))
        return
    for name, text in plan_lines(found, wanted, config):
        say(f"{name:<13} {text}")
    for line in assumptions(config, wanted, timed, rows, yardstick_s):
        say(f"  assumes: {line}")
    if samples:
        say("")
        for row in simulation_lines(samples):
            say("  ".join(f"{cell:>15}" for cell in row))


_MOST_TIMED = 8


def _values(
    config: Config,
    sample: Path | None,
    target: str | None,
    drop: tuple[str, ...],
    model_id: str | None,
    n_features: int | None,
) -> tuple[dict[str, list[bytes]], str]:
    """Return the values of the records that each model is timed with, and where they are from."""
    from ..files.source import SAMPLE
    from ..kafka.producing import encode_value
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


def _timed(config: Config, values: dict[str, list[bytes]], seconds: float) -> dict[str, Timed]:
    from ..planning.timing import time_model

    found: dict[str, Timed] = {}
    with progress("plan", len(values)) as show:
        for number, (name, rows) in enumerate(values.items()):
            show(number, f"timing {name}")
            found[name] = time_model(config, name, rows, seconds)
            show(number + 1)
    return found


def _simulated(config: Config, found: Plan, wanted: Wanted, timed: dict[str, Timed]) -> list[Sample]:
    from ..planning.fleet import Fleet
    from ..planning.scenarios import crash_and_join

    assert wanted.rate is not None
    scenario = crash_and_join(config, found, wanted.rate, wanted.models, timed)
    samples: list[Sample] = []
    with progress("simulation", round(scenario.seconds)) as show:
        for sample in Fleet(scenario).play():
            samples.append(sample)
            show(round(sample.at_s), f"{sample.waiting:,} wait")
    return samples
