"""What the monitor costs: microseconds beside the record without it, and bytes of its state."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import orjson
from river import linear_model, preprocessing

from attributary_explainers import LossMonitor
from benchmarks.harm.feeding import Map, Row, mappings, of_many, of_two
from benchmarks.harm.worlds.kinds import clean
from benchmarks.harm.worlds.subjects import subject

BLOCK, BLOCKS = 1000, 40


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Processor time, block by block in turn: other load of the machine counts little."""
    s = subject("linear")
    x, y, _ = clean(s, np.random.default_rng(79), BLOCK * BLOCKS)
    five = np.random.default_rng(80).dirichlet(np.ones(5), len(y))
    two, numbers = list(of_two(s.predict(x))), (x[:, 0] + 0.5).tolist()
    features, ys = list(mappings(s.population.names, x)), y.tolist()
    logistic: Any = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    monitors = {
        "two classes": (LossMonitor(learns=False), two),
        "two classes, features named": (LossMonitor(s.model, learns=False), two),
        "five classes": (LossMonitor(learns=False), list(of_many(five))),
        "numbers": (LossMonitor(output="number", learns=False), numbers),
        "two classes, a model that learns": (LossMonitor(learns=True), two),
    }

    def record(k: int) -> None:
        logistic.predict_proba_one(features[k])
        logistic.learn_one(features[k], ys[k])

    def nothing(x: Any, y: Any, y_pred: Any) -> None:
        """What the loop itself takes."""

    steps: dict[str, Callable[[int], Any]] = {"alone": record, "loop": _step(nothing, features, ys, two)}
    for name, (monitor, predictions) in monitors.items():
        steps[name] = _step(monitor.update, features, ys, predictions)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for start in range(0, len(ys), BLOCK):
        for name, step in steps.items():
            began = time.process_time()
            for k in range(start, start + BLOCK):
                step(k)
            times[name].append((time.process_time() - began) / BLOCK * 1e6)
    alone = median(times["alone"])
    for name in monitors:
        own = median(times[name]) - median(times["loop"])
        yield Row(
            f"cost per record, {name}: µs; ratio to a record of River's logistic regression with it",
            f"{own:.1f}; {(alone + own) / alone:.2f} (the record alone {alone:.0f} µs)",
            "≤ 3 µs",
        )
    for name, (monitor, _) in monitors.items():
        if monitor.model is None:
            state = monitor.snapshot()
            yield Row(f"state after {len(ys)} rows, {name}: kB", _size(state), "≤ 10")


def _step(
    update: Callable[[Any, Any, Any], Any], features: list[Any], ys: list[Any], predictions: list[Any]
) -> Callable[[int], Any]:
    return lambda k: update(features[k], ys[k], predictions[k])


def _size(state: Any) -> str:
    pickled = f"{len(pickle.dumps(state)) / 1e3:.1f} pickled"
    try:
        options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
        return f"{pickled}, {len(orjson.dumps(state, option=options)) / 1e3:.1f} as JSON"
    except TypeError:  # bytes
        return pickled
