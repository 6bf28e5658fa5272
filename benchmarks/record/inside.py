"""The measured process: it has the product of one checkout on its path, and handles a block of records when told.

    python -m benchmarks.record.inside CASE fixed|whole|model

`fixed`: model, explainers and what watches the model are replaced by what does nothing. `whole`: nothing is replaced.
`model`: the model alone predicts and learns what the records hold. Each line read is a number of records, answered
by the processor time of one in microseconds; the end of the input by the hash of all that was sent and stored.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.state.codec import encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from benchmarks.record.cases import CASES, MODEL_ID, Case, config_of, values

TOPIC = "observations"
WARM_UP = 1000


class Subject:
    """A partition that handles records of a case, one after the other.

    Parameters
    ----------
    is_stubbed
        Whether the model and all that explains or watches it do nothing, from record WARM_UP on.
    """

    def __init__(self, case: Case, *, is_stubbed: bool) -> None:
        self.partition = Partition(TOPIC, 0, parse_config(config_of(case)), lambda _key: None, time.perf_counter)
        self._values: Iterator[bytes] = values(case)
        self._is_stubbed = is_stubbed
        self._offset = 0
        self._sent = hashlib.sha256()
        self.n_sent = 0
        self.handle(WARM_UP)
        if is_stubbed:
            _stub(self.partition.models[MODEL_ID])

    def handle(self, n: int) -> float:
        """Handle `n` records; return the seconds of the processor that it took."""
        chosen = [next(self._values) for _ in range(n)]
        key, handle, first = MODEL_ID.encode(), self.partition.handle, self._offset
        sent: list[Outgoing] = []
        began = time.process_time()
        for offset, value in enumerate(chosen, first):
            sent += handle(Record(TOPIC, 0, offset, 1_700_000_000_000 + offset, key, value))
        took = time.process_time() - began
        dead = {reason: n for reason, n in self.partition.counters.dead_letters.items() if n}
        if dead:
            raise SystemExit(f"records of the case are dead letters, which cost something else: {dead}")
        self._offset += n
        self.n_sent += len(sent)
        for one in sent:
            self._sent.update(repr((one.topic, one.key, one.value, list(one.headers))).encode())
        return took

    def digest(self) -> str:
        """Return the hash of all that was sent, of the counters and, where nothing is replaced, of the state."""
        found = self._sent.copy()
        counters = self.partition.counters
        found.update(repr((counters.consumed, counters.used, sorted(counters.dead_letters.items()))).encode())
        for state in () if self._is_stubbed else self.partition.models.values():
            found.update(encode_state(state))
        return found.hexdigest()


def _stub(state: Any) -> None:
    together, y_pred = state.together, 0.25 if state.loss.output == "number" else {False: 0.4, True: 0.6}
    together.predict = lambda _x, explain=True: y_pred
    together.explain = together.pass_over = lambda *_, **__: None
    state._learn = state.model, lambda *_: None  # the model itself is pickled now and then
    for watch in state.shifts.values():
        watch.update = lambda *_: None
    if state.change is not None:
        state.change.update = lambda *_: ()
    if state.loss_watch is not None:
        state.loss_watch.update = lambda *_: []
    if state.incident_watch is not None:
        state.incident_watch.update = lambda *_: []
    if state.quality is not None:
        state.quality.update = lambda *_: None


def alone(case: Case) -> Callable[[int], float]:
    """Return what lets the model of a case predict and learn the observations of so many records."""
    import orjson

    state = Partition(TOPIC, 0, parse_config(config_of(case)), lambda _key: None).models.find_or_make(MODEL_ID)
    model, stream = state.model, values(case)
    predict = model.predict_one if case.is_regression else model.predict_proba_one

    def handle(n: int) -> float:
        chosen = [orjson.loads(next(stream)) for _ in range(n)]
        began = time.process_time()
        for one in chosen:
            predict(one["x"])
            model.learn_one(one["x"], one["y"])
        return time.process_time() - began

    handle(WARM_UP)
    return handle


def main(argv: list[str]) -> int:
    """Handle blocks of records as the input says."""
    warnings.simplefilter("ignore")
    logging.disable()  # of odd records the log would tell
    case, mode = CASES[argv[0]], argv[1]
    subject = None if mode == "model" else Subject(case, is_stubbed=mode == "fixed")
    handle = alone(case) if subject is None else subject.handle
    print("ready", flush=True)
    for line in sys.stdin:
        n = int(line)
        print(handle(n) / n * 1e6, flush=True)
    print("-" if subject is None else f"{subject.digest()} {subject.n_sent}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
