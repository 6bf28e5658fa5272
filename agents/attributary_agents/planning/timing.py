"""Times on this machine what a plan rests on: the yardstick, and a configured model in the worker's own functions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from river import compose, linear_model, preprocessing

from ..config.settings import Config
from ..errors import ConfigError
from ..models.guards.limits import features_of_model
from ..models.model_state import ModelState
from ..rehearsal.rehearsal import quiet
from ..state.codec import encode_state
from ..worker.dead_letter_log import DeadLetterLog
from ..worker.partition import Partition
from ..worker.reading import ObservationReader
from ..worker.records import Record

BLOCK = 20
"""Records between two looks at the clock."""

_YARDSTICK_S = 0.4
_SINGLE = 400
_FEATURES = 10


def yardstick() -> float:
    """Return the seconds of processor time that a scaler and a logistic regression take to predict and learn."""
    rng = random.Random(1)
    rows = [({f"f{k}": rng.gauss(0.0, 1.0) for k in range(_FEATURES)}, rng.random() < 0.5) for _ in range(200)]
    model = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())

    def step(i: int) -> None:
        x, y = rows[i % len(rows)]
        model.predict_proba_one(x)
        model.learn_one(x, y)

    return _timed(step, _YARDSTICK_S)[0]


@dataclass(frozen=True)
class Timed:
    """What a model takes on this machine, seconds of processor time.

    Attributes
    ----------
    step_s
        One record, from its bytes to its events: decode, predict, explain, learn.
    cv2
        Squared coefficient of variation of it.
    predict_s, learn_s
        The model by itself.
    encode_s, state_bytes
        To store its state, and how large that is.
    n_features, value_bytes
        Of the records.
    n, n_used
        Records that were handled, and those that were no dead letters.
    """

    step_s: float
    cv2: float
    predict_s: float
    learn_s: float
    encode_s: float
    state_bytes: int
    n_features: int
    value_bytes: int
    n: int
    n_used: int


def time_model(config: Config, model_id: str, values: Sequence[bytes], seconds: float = 1.0) -> Timed:
    """Let records of a model pass through a partition that is made for this alone, again and again.

    Parameters
    ----------
    values
        Values of records of the observations topic.
    seconds
        Of processor time; the first third of the records warms up.

    Raises
    ------
    ConfigError
        None of the records can be used.
    """
    config, model_id = config.with_one_of(model_id)
    key = model_id.encode()
    partition = Partition("plan", 0, config, lambda _key: None, dead_letter_log=_Silent(config))
    with quiet():

        def step(i: int) -> None:
            partition.handle(Record("plan", 0, i, 0, key, values[i % len(values)]))

        step_s, n = _timed(step, seconds)
        cv2 = _variation(step, n)
        state = partition.models.get(model_id)
        none_usable = ConfigError(
            f"none of the {len(values)} rows can be used by {model_id}: `attributary check --sample` says why"
        )
        if state is None or not partition.counters.used:
            raise none_usable
        rows = _usable_rows(config, state, values)
        if not rows:
            raise none_usable
        took: list[float] = []
        for _ in range(3):
            began = time.process_time()
            blob = encode_state(state)
            took.append(time.process_time() - began)
        predict_s = _timed(lambda i: state.together.function(rows[i % len(rows)][0]), seconds / 4)[0]
        learn_s = 0.0
        if state.config.learn:
            learn_s = _timed(lambda i: state.learn(*rows[i % len(rows)]), seconds / 4)[0]
    return Timed(
        step_s,
        cv2,
        predict_s,
        learn_s,
        min(took),
        len(blob),
        max(len(x) for x, _ in rows),
        round(sum(map(len, values)) / len(values)),
        partition.counters.consumed,
        partition.counters.used,
    )


class _Silent(DeadLetterLog):
    """Logs nothing: what is refused here is counted."""

    def note(self, key: bytes | None, stage: str, reason: str, error: Exception, where: str) -> None:
        """Do nothing."""


def _usable_rows(config: Config, state: ModelState, values: Sequence[bytes]) -> list[tuple[dict[str, Any], Any]]:
    """Return what the model itself is given of the rows, missing values by its policy, of those that it takes."""
    reader = ObservationReader(state.model_id.encode(), state.config, config.max_observation_bytes)
    rows = []
    for value in values:
        try:
            observation = reader.read(value)
            row = features_of_model(observation.x, state.config.missing), observation.y
            state.together.function(row[0])
            if state.config.learn:
                state.learn(*row)
        except Exception:  # noqa: BLE001 - a model is the user's code: it is a dead letter in the worker
            continue
        rows.append(row)
    return rows


def _timed(step: Callable[[int], Any], seconds: float) -> tuple[float, int]:
    """Return the median seconds of a step over blocks, the first third of them left out, and how many steps there were.

    Of processor time: what else runs on the machine is not counted.
    """
    took: list[float] = []
    began_at = time.process_time()
    n = 0
    while (now := time.process_time()) - began_at < seconds or len(took) < 4:
        for _ in range(BLOCK):
            step(n)
            n += 1
        took.append((time.process_time() - now) / BLOCK)
    return median(took[len(took) // 3 :]), n


def _variation(step: Callable[[int], Any], begin: int) -> float:
    """Return the squared coefficient of variation of single steps."""
    took = []
    for i in range(begin, begin + _SINGLE):
        began = time.process_time()
        step(i)
        took.append(time.process_time() - began)
    mean = fmean(took)
    return fmean((one - mean) ** 2 for one in took) / mean**2
