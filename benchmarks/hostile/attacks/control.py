"""Attacks by whoever may write to the models topic, and records that end the worker that handles them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from support.kafka import Record, produce, read_all
from support.states import stored
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.settings import Config
from benchmarks.hostile.lab import Found, attack

from ..lab import LOGISTIC, Lab

KEY = "f00dfeed" * 8
"""Stands for the secret that must be found nowhere."""

_HERE = "benchmarks.hostile.hostile_models"
_BAYES = {"class": "river.naive_bayes.GaussianNB"}


def _of_class(name: str, **params: Any) -> dict[str, Any]:
    return {"model": {"class": name, "params": params}}


# What is read is no year: the exception says what it is.
_READ = {"filepath_or_buffer": "/proc/self/environ", "fieldnames": ["a"], "parse_dates": {"a": "%Y"}}
_CSV = {"class": "river.stream.iter_csv", "params": _READ}
READERS: dict[str, dict[str, Any]] = {
    "an evaluation over a file": _of_class(
        "river.evaluate.progressive_val_score", dataset=_CSV, model=_BAYES, metric={"class": "river.metrics.Accuracy"}
    ),
    "a data set over a file": _of_class(
        "river.datasets.base.FileDataset",
        n_features=1,
        task="x",
        filename="environ",
        directory="/proc/self",
    ),
    "a factory that is a function": {
        "model": {"factory": "river.stream:iter_csv", "params": {"filepath_or_buffer": "/proc/self/environ"}},
    },
    "a function in the arguments of a transformer": {
        "model": [{"class": "river.compose.FuncTransformer", "params": {"func": _CSV}}, _BAYES]
    },
}


def _observation(n: int, **more: float) -> bytes:
    return json.dumps({"x": {"a": n % 7 / 7, "b": n % 3 / 3, **more}, "y": n % 2 == 0}).encode()


def _send(lab: Lab, config: Config, n: int, key: bytes = b"m", at: int | None = None) -> None:
    records: list[Record] = [(key, _observation(i, **({"kill": 1.0} if i == at else {})), []) for i in range(n)]
    produce(lab.broker.bootstrap, config.kafka.topics.observations, records, partition=0)


def _deploy(lab: Lab, config: Config, specs: list[dict[str, Any]]) -> None:
    records: list[Record] = [
        (b"m", json.dumps({"version": f"v{i}", **spec}).encode(), []) for i, spec in enumerate(specs)
    ]
    produce(lab.broker.bootstrap, config.kafka.topics.models, records, partition=0)


def _dead_letters(lab: Lab, config: Config) -> list[Any]:
    return read_all(lab.broker.bootstrap, config.kafka.topics.dead_letters)


def _reasons(lab: Lab, config: Config) -> list[str]:
    return [dict(letter.headers)["attributary-dlq-reason"].decode() for letter in _dead_letters(lab, config)]


class _Supervised:
    """A worker that is started again whenever it ends, as a supervisor does; counts how often it ended."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.n_ended = 0

    def wait(self, what: str, is_so: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Wait until something is so, and see to the worker meanwhile."""

        def seen() -> bool:
            if self.worker.exit_code is not None:
                self.n_ended += 1
                self.worker.start()
            return is_so()

        wait_for(what, seen, timeout_s=timeout_s)

    def __enter__(self) -> _Supervised:
        self.worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.stop()


@attack(
    "readers",
    "four ways to read a file or the environment through a models record",
)
def readers(lab: Lab) -> Found:
    """Name what reads /proc/self/environ, in which the state's key was given."""
    raw, config = lab.configure({"m": LOGISTIC})
    worker = lab.worker(raw, forked=False)  # a fork has the environment of whom it is forked from in /proc
    inherited = dict(os.environ)
    os.environ.clear()
    os.environ.update({"ATTRIBUTARY_STATE__KEY": KEY, **inherited})  # first: a dead letter's message is cut
    try:
        worker.start()
    finally:
        del os.environ["ATTRIBUTARY_STATE__KEY"]
    try:
        _send(lab, config, 20)
        _deploy(lab, config, list(READERS.values()))
        worker.wait_consumed(20 + len(READERS), timeout_s=60)
        n_used = worker.total("model_versions_total")
    finally:
        worker.stop()
    letters = _dead_letters(lab, config)
    refused = sum(dict(one.headers)["attributary-dlq-reason"] == b"not_allowed" for one in letters)
    said = repr([(one.value, one.headers) for one in letters]), worker.log.read_text()
    n_leaks = sum(KEY in text for text in said)
    figure = f"{refused} of {len(READERS)} refused; the key in {n_leaks} of dead letters and log"
    return Found(figure, refused == len(READERS) and n_leaks == n_used == 0)


def _huge_deployment(
    spec: dict[str, Any], *, memory: tuple[int, int] | None = None, **control: Any
) -> Callable[[Lab], Found]:
    """Return the attack; `memory` is what a model may have while it is made, and that in short."""

    def run(lab: Lab) -> Found:
        bounds = {"allowed": ["river.", _HERE], **control}
        if memory is not None:
            bounds["build_memory"] = memory[lab.short]
        raw, config = lab.configure({"m": LOGISTIC, "n": LOGISTIC}, control=bounds)
        _send(lab, config, 50)
        _deploy(lab, config, [spec])
        with _Supervised(lab.worker(raw)) as supervised:
            worker = supervised.worker
            supervised.wait("the deployment is a dead letter", lambda: bool(_reasons(lab, config)))
            _send(lab, config, 50, b"n")
            supervised.wait("all is handled", lambda: worker.total("records_consumed_total") >= 101)
        reasons = _reasons(lab, config)
        counters, _ = stored(config).checkpoints[0]
        figure = f"{supervised.n_ended} workers ended; dead letters: {', '.join(reasons)}; {counters.used} of 100 used"
        return Found(figure, supervised.n_ended <= 2 and len(reasons) == 1 and counters.used == 100)

    return run


_BIG = {"model": _BAYES, "n_models": 1_000_000_000}
attack("huge", "a deployment with n_models: 1000000000")(
    _huge_deployment(
        _of_class("river.ensemble.BaggingClassifier", **_BIG), memory=(1_000_000_000, 400_000_000), build_within_s=15.0
    )
)
attack("endless", "a deployment whose constructor never ends")(
    _huge_deployment(_of_class(f"{_HERE}.NeverMade"), build_within_s=8.0)
)
attack("kills-when-made", "a deployment whose constructor kills its process")(
    _huge_deployment(_of_class(f"{_HERE}.EndsWhenMade"))
)


@attack(
    "kills-when-learnt",
    "an observation at which the model kills its process",
)
def kills_when_learnt(lab: Lab) -> Found:
    """Send one record that ends whatever handles it, among others, to a worker that is started again."""
    model = {**LOGISTIC, "model": {"class": f"{_HERE}.EndsAtASign"}}
    raw, config = lab.configure({"m": model, "n": LOGISTIC})
    n = 300
    _send(lab, config, n, at=137)
    _send(lab, config, 100, b"n")
    with _Supervised(lab.worker(raw)) as supervised:
        worker = supervised.worker
        began = time.monotonic()
        supervised.wait("all is handled", lambda: worker.total("records_consumed_total") >= n + 100, timeout_s=120)
        took = time.monotonic() - began
    reasons = _reasons(lab, config)
    counters, offset = stored(config).checkpoints[0]
    figure = (
        f"{supervised.n_ended} workers ended; dead letters: {', '.join(reasons)}; {counters.used} of {n + 99} used, "
        f"after {took:.0f} s"
    )
    is_whole = (offset, counters.used, reasons) == (n + 99, n + 99, ["ended_worker"])
    return Found(figure, supervised.n_ended <= 2 and is_whole)
