"""Timings on this machine for a plan: the yardstick and a model.

A configured model is timed in the worker's own functions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

from river import linear_model, preprocessing

from ..config.settings import Config
from ..errors import ConfigError
from ..rehearsal.rehearsal import quiet
from ..state.codec import encode_state
from ..worker.dead_letter_log import DeadLetterLog
from ..worker.partition import Partition
from ..worker.records import Record

_BLOCK = 20
"""Records between two looks at the clock."""


class Timed(NamedTuple):
    """Processor time of a model on this machine, in seconds, and its size."""

    step_s: float  # one record, from its bytes to its events: decode, predict, explain, learn
    cv2: float  # squared coefficient of variation of it
    encode_s: float  # to encode its state
    state_bytes: float
    n: int  # records that were handled
    n_used: int  # of these, those that were no dead letters


def yardstick() -> float:
    """Return the yardstick in seconds of processor time.

    It is the time that a scaler and a logistic regression take to predict and learn.
    """
    rng = random.Random(1)
    rows = [({f"f{k}": rng.gauss(0.0, 1.0) for k in range(10)}, rng.random() < 0.5) for _ in range(200)]
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()

    def step(i: int) -> None:
        x, y = rows[i % len(rows)]
        model.predict_proba_one(x)
        model.learn_one(x, y)

    return median(_blocks(step, 0.4))


def time_model(config: Config, model_id: str, values: Sequence[bytes], seconds: float = 1.0) -> Timed:
    """Time a model by passing records through a partition repeatedly.

    The records have these values, and pass again and again for so many seconds.

    Raises
    ------
    ConfigError
        The model takes none of the records.
    """
    config, model_id = config.with_one_of(model_id)
    partition = Partition("plan", 0, config, lambda _key: None, dead_letter_log=_Silent(config))

    def step(i: int) -> None:
        partition.handle(Record("plan", 0, partition.offset + 1, 0, model_id.encode(), values[i % len(values)]))

    with quiet():
        blocks, singles = _blocks(step, seconds), [_took(step, i) for i in range(400)]
        state, counters, mean = partition.models.get(model_id), partition.counters, fmean(singles)
        if state is None or not counters.used:
            raise ConfigError(
                f"none of the {len(values)} rows can be used by {model_id}: `attributary check --sample` says why"
            )
        encode_s, size = min(_took(lambda _: encode_state(state), i) for i in range(3)), len(encode_state(state))
    cv2 = fmean((one - mean) ** 2 for one in singles) / mean**2
    return Timed(median(blocks), cv2, encode_s, size, counters.consumed, counters.used)


class _Silent(DeadLetterLog):
    """Dead-letter log that writes nothing: refused records are counted."""

    def note(self, key: bytes | None, stage: str, reason: str, error: Exception, where: str) -> None:
        """Do nothing."""


def _blocks(step: Callable[[int], Any], seconds: float) -> list[float]:
    """Return a step's processor time in seconds, in each block of steps.

    The first third of the blocks is left out: it warms up.
    """
    blocks: list[float] = []
    ends = time.process_time() + seconds
    while time.process_time() < ends or len(blocks) < 4:
        rows = range(len(blocks) * _BLOCK, (len(blocks) + 1) * _BLOCK)
        blocks.append(_took(lambda rows: [step(i) for i in rows], rows) / _BLOCK)
    return blocks[len(blocks) // 3 :]


def _took(step: Callable[[Any], Any], i: Any) -> float:
    began = time.process_time()
    step(i)
    return time.process_time() - began
