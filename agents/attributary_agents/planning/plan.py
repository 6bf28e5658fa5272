"""Plans of the workers, memory and waits that a load needs.

A plan follows from the cost of a record here and from the measured price of everything around it.

Prices are in yardsticks: what River's scaler and logistic regression of ten features take to predict and learn once on
the machine at hand. `python -m benchmarks.scale fit` makes `capacity.json` of measurements on Apache Kafka.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import NamedTuple

from ..config.settings import Config
from ..errors import AttributaryError
from .timing import Timed

MOST_WORKERS = 10_000


class PlanError(AttributaryError):
    """A load that no number of workers carries; the text says how to fit it."""


class Capacity(NamedTuple):
    """The capacity model."""

    coefficients: Mapping[str, float]  # yardsticks for one of each of `terms`
    error: float  # largest relative residual of the points that it was fitted to
    worker_bytes: float  # resident memory of a worker with one small model
    bytes_per_stored: float  # bytes in memory for one byte of a stored state


class Wanted(NamedTuple):
    """A load."""

    rate: float | None  # records a second, of all models together; None asks what one worker carries
    models: int  # like the configured ones, in equal shares
    busy: float = 0.6  # part of its time that the busiest worker may spend: the rest is for peaks


class Carried(NamedTuple):
    """Workers, waits and recovery times for a rate."""

    workers: int  # each with one core
    partitions: int  # at least: one per worker, or four where models are many, so that shares are even
    busiest: float  # part of its time that the busiest worker spends
    wait_p50_s: float  # from a record at the busiest worker until it is handled; infinity: ever longer
    wait_p99_s: float
    changelog_per_s: float  # bytes that checkpoints write
    replay_records: float  # what a crash of a worker repeats at most
    catch_up_s: float  # until the others have handled that, and what came during the session timeout


class Plan(NamedTuple):
    """Costs and memory of a load, and its workers where a rate is given."""

    record_us: float
    step_us: float  # of these, the worker's own functions, as timed here
    error: float
    per_worker: float  # records a second of a worker that is busy all the time
    worker_bytes: float
    stored_bytes: float  # of all states
    carried: Carried | None = None  # None where no rate was asked for


def terms(step: float, stored: float, state_bytes: float) -> dict[str, float]:
    """Return the terms of a record's price, by name.

    They are the worker's own functions, in yardsticks, and the states stored for the record.
    """
    return {"record": 1.0, "step": step, "models stored": stored, "kilobytes stored": stored * state_bytes / 1000.0}


@cache
def installed_capacity() -> Capacity:
    """Return the capacity model of this release."""
    data = json.loads((files(__package__) / "capacity.json").read_text())
    return Capacity(data["coefficients"], data["error"], **data["memory"])


def make_plan(
    config: Config, wanted: Wanted, timed: Mapping[str, Timed], yardstick_s: float, capacity: Capacity
) -> Plan:
    """Return the plan for a load.

    Its models are on average as the models that were timed.

    Raises
    ------
    PlanError
        No number of workers carries the load.
    """
    is_sharded, workers = config.sharded.issuperset(timed), 1
    while True:
        found = _with(workers, config, wanted, timed, yardstick_s, capacity)
        if wanted.rate is None or found.carried is None or found.carried.busiest <= wanted.busy:
            return found
        # Models are spread unevenly: the least that may do, and from there on by a twentieth.
        workers = max(workers + 1 + workers // 20, math.ceil(wanted.rate / found.per_worker / wanted.busy))
        if workers > (MOST_WORKERS if is_sharded else min(wanted.models, MOST_WORKERS)):
            raise PlanError(_impossible(wanted.rate, wanted, found.per_worker, found.carried))


def _impossible(rate: float, wanted: Wanted, per_worker: float, carried: Carried) -> str:
    most, models = wanted.busy * per_worker, f"{wanted.models:,} model{'' if wanted.models == 1 else 's'}"
    why = "the records of one model are of one partition, and so of one worker, which"
    if rate <= most * wanted.models:  # one of them would fit
        why = (
            f"a hash spreads them over the partitions, unevenly: of {carried.workers} workers the busiest would have "
            f"{carried.busiest * per_worker:,.0f} records a second, and one"
        )
    return (
        f"no number of workers carries {rate:,.0f} records/s of {models}: {why} handles {most:,.0f} a second in "
        f"{wanted.busy:.0%} of its time. Explain fewer of them (explain.budget, explain.every), draw less (n_samples), "
        "give parts of the stream models of their own, or have a model that does not learn sharded (learn: false, "
        "sharded: true)"
    )


def _with(
    workers: int, config: Config, wanted: Wanted, timed: Mapping[str, Timed], yardstick_s: float, capacity: Capacity
) -> Plan:
    """Return the plan for a load on the given number of workers."""
    step_s, cv2, encode_s, size = (fmean(each) for each in zip(*(one[:4] for one in timed.values()), strict=True))
    is_sharded = config.sharded.issuperset(timed)
    partitions = max(config.kafka.partitions, workers * (1 if is_sharded or wanted.models < 8 * workers else 4))
    of_one = math.ceil(partitions / workers)
    share = of_one / partitions if is_sharded else largest_share(wanted.models, partitions, workers)
    # Of a sharded model each partition has a state of its own.
    copies, states = (partitions, wanted.models * of_one) if is_sharded else (1, math.ceil(wanted.models * share))
    rate = 1.0 / (step_s + 1e-9) if wanted.rate is None else wanted.rate * share
    stored = models_stored(config, encode_s, states, partitions / workers, rate)
    price = sum(capacity.coefficients[name] * n for name, n in terms(step_s / yardstick_s, stored, size).items())
    record_s = max(yardstick_s * price, step_s)
    memory = capacity.worker_bytes + capacity.bytes_per_stored * size * states
    found = Plan(1e6 * record_s, 1e6 * step_s, capacity.error, 1.0 / record_s, memory, size * wanted.models * copies)
    if wanted.rate is None:
        return found
    replay = min(config.checkpoint.max_observations * partitions / workers, rate * config.checkpoint.interval_s)
    spare = max(workers - 1, 1) / record_s - wanted.rate
    carried = Carried(
        workers,
        partitions,
        busiest=rate * record_s,
        wait_p50_s=record_s + wait_quantile(0.5, rate, record_s, cv2),
        wait_p99_s=record_s + wait_quantile(0.99, rate, record_s, cv2),
        changelog_per_s=wanted.rate * stored * size,
        replay_records=replay,
        catch_up_s=(rate * config.kafka.session_timeout_s + replay) / spare if spare > 0 else math.inf,
    )
    return found._replace(carried=carried)


def wait_quantile(q: float, rate: float, service_s: float, cv2: float) -> float:
    """Return the wait in seconds that a share `q` of the records keeps to.

    It is infinite where more records come than a worker handles. Pollaczek and Khinchine's mean wait of M/G/1, with the
    tail taken as exponential: exact for M/M/1, whose squared coefficient of variation `cv2` is 1. A share of 1 - load
    does not wait at all.
    """
    load = rate * service_s
    if load >= 1.0:
        return math.inf
    return max(0.0, service_s * (1.0 + cv2) / (2.0 * (1.0 - load)) * math.log(load / (1.0 - q)))


def models_stored(config: Config, encode_s: float, models: int, partitions: float, rate: float) -> float:
    """Return how many models a worker stores per record.

    That is the number of distinct models of a checkpoint over the number of its records. The worker has so many models,
    partitions and records a second, and takes `encode_s` to encode a state.
    """
    checkpoint, here, rate = config.checkpoint, max(1.0, models / partitions), rate / partitions
    interval_s = min(checkpoint.interval_s, checkpoint.max_observations / rate)
    # Large states are stored less often: storing may take `max_share` of the time.
    interval_s = max(interval_s, partitions * here * encode_s * (1.0 / checkpoint.max_share - 1.0))
    records = max(1.0, interval_s * rate)
    distinct = here * -math.expm1(records * math.log1p(-1.0 / here)) if here > 1.0 else 1.0
    return min(distinct, records) / records


@cache
def largest_share(models: int, partitions: int, workers: int) -> float:
    """Return the busiest worker's share of all records.

    It is the average over how keys may fall. Models have equal shares; each is of one partition, by a hash of its key,
    and partitions are dealt out evenly.
    """
    if workers == 1:
        return 1.0
    rng, n = random.Random(1), min(models, 20_000)  # beyond, shares are even anyway
    n_trials, total = 40 if n < 2000 else 5, 0.0
    for _ in range(n_trials):
        counts = [0] * workers
        for _model in range(n):
            counts[rng.randrange(partitions) % workers] += 1
        total += max(counts) / n
    return total / n_trials
