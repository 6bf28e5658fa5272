"""Says what a load needs: from what a record costs here to workers, partitions, memory, latency and bytes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from ..config.settings import Config
from ..errors import AttributaryError
from .capacity import Capacity, Load, by_settings, by_step
from .queueing import wait_quantile
from .timing import Timed

MOST_WORKERS = 10_000
_TRIALS = 40


class PlanError(AttributaryError):
    """Says that no number of workers carries a load, and what would."""


@dataclass(frozen=True)
class Wanted:
    """The load that is asked for.

    Attributes
    ----------
    rate
        Records a second, of all models together; None asks what one worker carries.
    models
        Number of models; they are taken to be like the configured ones, in equal shares.
    busy
        Part of a worker's time that may be spent, of the busiest one: the rest is for peaks and for catching up.
    """

    rate: float | None
    models: int
    busy: float = 0.6


@dataclass(frozen=True)
class Carried:
    """What a rate needs.

    Attributes
    ----------
    workers
        Each with one core.
    partitions
        At least so many: one per worker, or four where models are many, so that shares are even.
    busiest
        Part of its time that the busiest worker spends.
    wait_p50_s, wait_p99_s
        From a record at the busiest worker until it is handled.
    changelog_per_s
        Bytes that checkpoints write a second.
    replay_records
        What a crash of a worker repeats at most.
    catch_up_s
        How long the others take, after a crash, to handle what came during the session timeout and is repeated.
    """

    workers: int
    partitions: int
    busiest: float
    wait_p50_s: float
    wait_p99_s: float
    changelog_per_s: float
    replay_records: float
    catch_up_s: float


@dataclass(frozen=True)
class Plan:
    """What a load needs.

    Attributes
    ----------
    record_us, step_us, settings_us
        Microseconds of one record; of these, those that the worker's own functions took here, the others being those of
        Kafka, Faust and checkpoints by the capacity model; and the same record by the settings alone.
    error
        Largest relative error of the capacity model on what it was fitted to.
    per_worker
        Records a second of one worker that is busy all the time.
    worker_bytes, stored_bytes
        Memory of one worker, and all stored states.
    carried
        None where no rate was asked for.
    """

    record_us: float
    step_us: float
    settings_us: float
    error: float
    per_worker: float
    worker_bytes: float
    stored_bytes: float
    carried: Carried | None = None


def make_plan(
    config: Config, wanted: Wanted, timed: Mapping[str, Timed], yardstick_s: float, capacity: Capacity
) -> Plan:
    """Return what a load needs, by what was timed here and the capacity model.

    Parameters
    ----------
    timed
        Of each model that was timed.
    yardstick_s
        Seconds of a yardstick on this machine.

    Raises
    ------
    PlanError
        No number of workers carries the load.
    """
    n_workers = 1
    most = MOST_WORKERS if is_sharded(config, timed) else min(wanted.models, MOST_WORKERS)
    while True:
        found = _of(config, wanted, timed, yardstick_s, capacity, n_workers)
        if found.carried is None or found.carried.busiest <= wanted.busy:
            return found
        assert wanted.rate is not None
        # Models are spread unevenly: the least that may do, and from there on by a twentieth.
        least = math.ceil(wanted.rate * found.record_us * 1e-6 / wanted.busy)
        n_workers = max(n_workers + 1 + n_workers // 20, least)
        if n_workers > most:
            raise PlanError(_impossible(wanted, found))


def is_sharded(config: Config, names: Iterable[str]) -> bool:
    """Return whether all of these models are sharded, so that each worker has an even part of all records."""
    return config.sharded.issuperset(names)


def _impossible(wanted: Wanted, found: Plan) -> str:
    most = wanted.busy * found.per_worker
    models = f"{wanted.models:,} model{'' if wanted.models == 1 else 's'}"
    assert wanted.rate is not None
    assert found.carried is not None
    if wanted.rate <= most * wanted.models:  # one of them would fit
        why = (
            f"a hash spreads them over the partitions, unevenly: of {found.carried.workers} workers the busiest would "
            f"have {found.carried.busiest * found.per_worker:,.0f} records a second, and one"
        )
    else:
        why = "the records of one model are of one partition, and so of one worker, which"
    return (
        f"no number of workers carries {wanted.rate:,.0f} records/s of {models}: {why} handles {most:,.0f} a second in "
        f"{wanted.busy:.0%} of its time. "
        "Explain fewer of them (explain.budget, explain.every), draw less (n_samples), give parts of the stream "
        "models of their own, or have a model that does not learn sharded (learn: false, sharded: true)"
    )


def _of(
    config: Config,
    wanted: Wanted,
    timed: Mapping[str, Timed],
    yardstick_s: float,
    capacity: Capacity,
    n_workers: int,
) -> Plan:
    has_shards = is_sharded(config, timed)
    is_even = not has_shards and wanted.models >= 8 * n_workers
    partitions = max(config.kafka.partitions, n_workers * (4 if is_even else 1))
    per_worker = math.ceil(partitions / n_workers)
    share = per_worker / partitions if has_shards else largest_share(wanted.models, partitions, n_workers)
    # Of a sharded model each partition has a state of its own.
    copies, states = (partitions, wanted.models * per_worker) if has_shards else (1, math.ceil(wanted.models * share))
    rate = None if wanted.rate is None else wanted.rate * share
    prices = [
        _price(config, timed[name], name, states, partitions / n_workers, rate, yardstick_s, capacity) for name in timed
    ]
    record_s, step_s, settings_s, stored = (fmean(one[i] for one in prices) for i in range(4))
    state_bytes = fmean(one.state_bytes for one in timed.values())
    carried = None
    if wanted.rate is not None and rate is not None:
        cv2 = fmean(one.cv2 for one in timed.values())
        checkpoint = config.checkpoint
        replay = min(checkpoint.max_observations * partitions / n_workers, rate * checkpoint.interval_s)
        spare = max(n_workers - 1, 1) / record_s - wanted.rate
        missed = rate * config.kafka.session_timeout_s
        carried = Carried(
            n_workers,
            partitions,
            rate * record_s,
            record_s + wait_quantile(0.5, rate, record_s, cv2),
            record_s + wait_quantile(0.99, rate, record_s, cv2),
            wanted.rate * stored * state_bytes,
            replay,
            (missed + replay) / spare if spare > 0 else math.inf,
        )
    return Plan(
        1e6 * record_s,
        1e6 * step_s,
        1e6 * settings_s,
        capacity.by_step.error,
        1.0 / record_s,
        capacity.worker_bytes + capacity.bytes_per_stored * state_bytes * states,
        state_bytes * wanted.models * copies,
        carried,
    )


def _price(
    config: Config,
    timed: Timed,
    name: str,
    models: int,
    per_worker: float,
    rate: float | None,
    yardstick_s: float,
    capacity: Capacity,
) -> tuple[float, float, float, float]:
    """Return the seconds of a record, of its step, and of it by its settings alone; and the models stored for it.

    Parameters
    ----------
    models, per_worker, rate
        Of one worker: models, partitions and records a second.
    """
    own = config.settings_of(name)
    draws = tuple(e.n_samples * (e.n_permutations or 1) for e in own.explainers.by_removal.values())
    per_s = 1.0 / (timed.step_s + 1e-9) if rate is None else rate
    stored = models_stored(config, timed, models, per_worker, per_s)
    load = Load(
        timed.n_features,
        timed.predict_s / yardstick_s,
        timed.learn_s / yardstick_s,
        draws,
        models,
        max(1, round(per_worker)),
        timed.value_bytes,
        stored,
        timed.state_bytes,
        timed.step_s / yardstick_s,
    )
    record_s = max(yardstick_s * capacity.by_step.price(by_step(load)), timed.step_s)
    settings_s = yardstick_s * capacity.by_settings.price(by_settings(load))
    return record_s, timed.step_s, settings_s, stored


def models_stored(config: Config, timed: Timed, models: int, partitions: float, per_s: float) -> float:
    """Return how many models are stored for one record: the distinct ones of a checkpoint over its records.

    Parameters
    ----------
    models, partitions, per_s
        Of one worker: models, partitions and records a second.
    """
    checkpoint, here, rate = config.checkpoint, max(1.0, models / partitions), per_s / partitions
    interval_s = min(checkpoint.interval_s, checkpoint.max_observations / rate)
    # Large states are stored less often: storing may take `max_share` of the time.
    cost_s = partitions * here * timed.encode_s
    interval_s = max(interval_s, cost_s * (1.0 / checkpoint.max_share - 1.0))
    records = max(1.0, interval_s * rate)
    distinct = here * -math.expm1(records * math.log1p(-1.0 / here)) if here > 1.0 else 1.0
    return min(distinct, records) / records


@cache
def largest_share(models: int, partitions: int, workers: int) -> float:
    """Return the part of all records that the busiest worker gets, on average over how keys may fall.

    Models have equal shares; each is of one partition, by a hash of its key, and partitions are dealt out evenly.
    """
    if workers == 1:
        return 1.0
    rng = random.Random(1)
    n = min(models, 20_000)  # beyond, shares are even anyway
    total = 0.0
    for _ in range(_TRIALS if n < 2000 else 5):
        counts = [0] * workers
        for _model in range(n):
            counts[rng.randrange(partitions) % workers] += 1
        total += max(counts) / n
    return total / (_TRIALS if n < 2000 else 5)
