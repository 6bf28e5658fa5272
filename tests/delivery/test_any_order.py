"""Observations, garbage, deployments, checkpoints and kills in any order: as if nobody had been killed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from attributary_agents.worker.records import Record
from tests.agents.stand_ins import CONTRARY_FACTORY, FACTORY, MODELS, TOPIC, TOUCHY_FACTORY, balances
from tests.delivery.test_control_crash import Cluster, Owner, control, observation, successor
from tests.delivery.test_control_crash import outcome as what_is_left

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::attributary_explainers.ModelFailureWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

SPECS: list[dict[str, Any]] = [
    {"factory": FACTORY},
    {"factory": CONTRARY_FACTORY},
    {"factory": TOUCHY_FACTORY},
    {"model": {"class": "river.naive_bayes.GaussianNB"}},
    {"model": {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 5}}},
    {"model": {"class": "river.tree.NoSuchTree"}},  # a dead letter
]
numbers = st.floats(-1, 1) | st.sampled_from([0.5, -0.5, 1e308, -0.0, "text", True, None, math.nan])
moods = st.sampled_from(["fine", "fine", "fine", "predict", "learn", "explain"])
features = st.fixed_dictionaries({"a": numbers, "b": numbers, "c": moods})
good = st.builds(lambda x, y: json.dumps({"x": x, "y": y}).encode(), features, st.booleans())
wrong = st.sampled_from(
    [b"{poison", b"", b'{"x": {"a": Infinity}, "y": 1}', b'{"x": {"a": null}, "y": 1}', b'{"x": {}, "y": 1}', b"[]"]
)
bad = wrong | st.binary(max_size=9)
orders = st.sampled_from(["control first", "control last", "control between"])
owners_of = st.sampled_from(["m", "n", "m", "unknown"])


def outcome(cluster: Cluster) -> str:
    """Everything that is left in the end, as text: a NaN is itself."""
    found = what_is_left(cluster)
    assert all(balances(counters) for counters, _ in found["checkpoints"])
    # In whatever order models have been loaded.
    ordered = {"models": dict(sorted(found["models"].items()))}
    return repr(found | ordered | {"sent": sorted((key, repr(one)) for key, one in cluster.by_id.items())})


class Killed(Exception):  # noqa: N818 - it is no error
    pass


class Mortal(Owner):
    """Dies when its writes are used up; None: of any number."""

    writes: int | None = None

    def write(self, key: bytes, value: bytes) -> None:
        self.memory[key] = value
        if self.writes is not None:
            if self.writes == 0:
                raise Killed
            self.writes -= 1
        self.cluster.table[key] = value


class AnyOrder(RuleBasedStateMachine):
    """What was sent, in its order, is `steps`; `cluster` is what survives, `owner` who is working now."""

    @initialize()
    def begin(self) -> None:
        self.steps: list[Record] = []
        self.n = {TOPIC: 0, MODELS: 0}
        self.cluster = Cluster()
        self.owner = Mortal(self.cluster, backlog_end=-1)

    def _sent(self, record: Record) -> Record:
        self.n[record.topic] += 1
        self.steps.append(record)
        return record

    @rule(batch=st.lists(st.tuples(owners_of, st.one_of(good, good, good, bad)), min_size=1, max_size=8))
    def observe(self, batch: list[tuple[str, bytes]]) -> None:
        for model_id, value in batch:
            self.owner.handle(self._sent(observation(self.n[TOPIC], model_id, value)))

    @rule(model_id=owners_of, spec=st.sampled_from(SPECS), writes=st.none() | st.integers(0, 1), order=orders)
    def deploy(self, model_id: str, spec: dict[str, Any], writes: int | None, order: str) -> None:
        offset = self.n[MODELS]
        record = self._sent(control(offset, model_id, f"v{offset}", spec))
        self.owner.writes = writes
        try:
            self.owner.handle(record)
        except Killed:
            self.owner = successor(self.cluster, self.steps, order, Mortal)
        self.owner.writes = None

    @rule()
    def checkpoint(self) -> None:
        self.owner.checkpoint()

    @rule(n=st.integers(1, 3))
    def store_slices(self, n: int) -> None:
        for _ in range(n):
            self.owner.storing.store_slice()

    @precondition(lambda self: self.steps)
    @rule(writes=st.integers(0, 2), order=orders)
    def killed_in_a_checkpoint(self, writes: int, order: str) -> None:
        self.owner.writes = writes
        try:
            self.owner.checkpoint()
        except Killed:
            self.owner = successor(self.cluster, self.steps, order, Mortal)
        self.owner.writes = None

    @precondition(lambda self: self.steps)
    @rule(order=orders)
    def killed(self, order: str) -> None:
        self.owner = successor(self.cluster, self.steps, order, Mortal)

    def teardown(self) -> None:
        if not hasattr(self, "owner"):
            return
        self.owner.checkpoint()
        undisturbed = Owner(Cluster(), backlog_end=-1)
        for record in self.steps:
            undisturbed.handle(record)
        undisturbed.checkpoint()
        assert outcome(self.cluster) == outcome(undisturbed.cluster)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(
    max_examples=120,
    stateful_step_count=20,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink a failure takes minutes; it is readable as it is
    suppress_health_check=[HealthCheck.too_slow],
)
