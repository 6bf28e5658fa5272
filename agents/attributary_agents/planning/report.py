"""Says in plain text what a load needs, and what that rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..config.settings import Config
from .fleet import Sample
from .plan import Carried, Plan, Wanted
from .timing import Timed


def plan_lines(plan: Plan, wanted: Wanted, config: Config) -> Iterator[tuple[str, str]]:
    """Yield the lines of a plan: what is said, and its value."""
    high = 1.0 + plan.error
    yield (
        "one record",
        f"{_us(plan.record_us)} of processor time ± {plan.error:.0%}: {_us(plan.step_us)} in the worker's own "
        f"functions, timed here, and {_us(plan.record_us - plan.step_us)} around them by the capacity model; by the "
        f"settings alone {_us(plan.settings_us)}",
    )
    yield "one worker", f"{plan.per_worker:,.0f} records/s at most; {plan.per_worker / high:,.0f} at the unlucky end"
    yield "memory", f"{_size(plan.worker_bytes)} per worker"
    yield "state", f"{_size(plan.stored_bytes)} stored, of {wanted.models:,} model{'' if wanted.models == 1 else 's'}"
    if plan.carried is None:
        yield "workers", "give --rate to learn how many"
    else:
        yield from _carried_lines(plan.carried, config, high)


def _carried_lines(carried: Carried, config: Config, high: float) -> Iterator[tuple[str, str]]:
    unlucky = f"{carried.busiest * high:.0%} at the unlucky end"
    yield (
        "workers",
        f"{carried.workers}, each with one core; the busiest is busy for {carried.busiest:.0%} of its time ({unlucky})",
    )
    yield "partitions", f"{carried.partitions}; configured are {config.kafka.partitions}"
    yield (
        "latency",
        f"{_ms(carried.wait_p50_s)} in the middle, {_ms(carried.wait_p99_s)} for 99 % of the records, in the busiest "
        "worker; beside it the way from the producer over the broker, and back",
    )
    yield "changelog", f"{_size(carried.changelog_per_s)}/s written by checkpoints"
    catch_up = "never" if math.isinf(carried.catch_up_s) else f"within {carried.catch_up_s:.0f} s"
    yield (
        "after a crash",
        f"{carried.replay_records:,.0f} records are repeated at most, and what waited since is handled {catch_up}, "
        f"once the worker is missed ({config.kafka.session_timeout_s:g} s)",
    )
    if carried.partitions > config.kafka.partitions:
        yield (
            "CAUTION",
            f"kafka.partitions is {config.kafka.partitions}, and {carried.partitions} are needed: models whose "
            "key moves to another partition begin anew, so choose before the topics are created",
        )
    if carried.busiest * high >= 1.0:
        yield "CAUTION", "at the unlucky end records come faster than they are handled: plan with a smaller --busy"


def assumptions(
    config: Config, wanted: Wanted, timed: Mapping[str, Timed], rows: str, yardstick_s: float
) -> Iterator[str]:
    """Yield what a plan assumes."""
    for name, one in timed.items():
        refused = one.n - one.n_used
        yield (
            f"{name}: {one.n:,} records of {one.n_features} features, {one.value_bytes} bytes each ({rows}); "
            f"{_us(1e6 * one.step_s)} each; by itself the model predicts in {_us(1e6 * one.predict_s)} and learns in "
            f"{_us(1e6 * one.learn_s)}; its state is {_size(one.state_bytes)}"
            + (f"; {refused:,} were dead letters" if refused else "")
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


def simulation_lines(samples: Sequence[Sample], at_most: int = 24) -> Iterator[tuple[str, ...]]:
    """Yield a simulation's samples as rows, so many at most, evenly spread; the heading first."""
    yield "second", "workers", "waiting", "worst partition", "p50 wait", "p99 wait", "repeated"
    every = max(1, math.ceil(len(samples) / at_most))
    for sample in samples[every - 1 :: every]:
        yield (
            f"{sample.at_s:.0f}",
            str(sample.members),
            f"{sample.waiting:,}",
            f"{sample.waiting_most:,}",
            "" if sample.wait_p50_s is None else _ms(sample.wait_p50_s),
            "" if sample.wait_p99_s is None else _ms(sample.wait_p99_s),
            f"{sample.repeated:,}",
        )


def _us(microseconds: float) -> str:
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 1000 else f"{microseconds:.3g} µs"


def _ms(seconds: float) -> str:
    if math.isinf(seconds):
        return "ever longer"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _size(n_bytes: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"


def as_plain(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data; what is infinite is null."""
    return {name: _finite(value) for name, value in asdict(plan).items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return None if isinstance(value, float) and math.isinf(value) else value
