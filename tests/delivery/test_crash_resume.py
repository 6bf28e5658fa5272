"""A partition's work survives a crash at every point: as if it had never been stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from attributary_agents.config.settings import Config
from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.agents.stand_ins import BAD, DEAD_LETTERS, TOPIC, TOUCHY_FACTORY, balances, observations
from tests.agents.worker.test_partition import Table, config, partition_of, record
from tests.delivery.remains import Log, Storing, checkpoint, store_models, stored_models

# Its model raises on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::attributary_explainers.ModelFailureWarning")


N = 100


def stream() -> list[Record]:
    """100 records of two models: good ones, bad ones, and some that the model raises on at each stage."""
    records = []
    bad = [(key, value) for kind, (key, value, _) in BAD.items() if kind not in ("2 MB value", "deeply nested")]
    for i, observation in enumerate(observations(N, flip_at=55)):
        a = round(observation.x["a"], 6)
        x = {"a": a, "b": round(2 * a, 6), "c": {5: "predict", 6: "learn", 7: "explain"}.get(i % 13, "fine")}
        key: bytes | None = b"n" if i % 6 == 0 else b"m"
        value: bytes | None = json.dumps({"x": x, "y": observation.y}).encode()
        if i % 6 == 4:
            key, value = bad[i // 6 % len(bad)]
        records.append(record(i, key, value, headers=[("n", b"%d" % i)]))
    return records


EAGER = {"min_instances": 1, "threshold": 0.2, "delta": 0.0, "mode": "both"}


def crash_config() -> Config:
    return config(
        factory=TOUCHY_FACTORY,
        features=None,
        alpha=0.1,
        explainers={
            "pfi": {"n_samples": 2},
            "sage": {"n_samples": 2},
            "pdp": {"window": 8, "grid_size": 4, "every": 10},
        },
        change={"window": 20, "threshold": 0.0, "detector": "page_hinkley", "detector_params": EAGER},
        publish={"every": 5, "material_shift": 0.3, "min_observations": 4, "reference_after": 8},
    )


def outcome(partition: Partition, table: Table, log: Log) -> dict[str, Any]:
    checkpoint(partition, table)
    return {
        "events": log.by_id,
        "checkpoint": decode_checkpoint(table[checkpoint_key(0)]),
        "models": stored_models(table, partition.config),
    }


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    partition, table, log = partition_of(crash_config()), {}, Log()
    for one in stream():
        log.send(partition.handle(one))
    result = outcome(partition, table, log)
    # What is compared below is not empty.
    topics = {topic for topic, _ in result["events"]}
    assert topics == {"attributary.importances.v1", "attributary.incidents.v1", DEAD_LETTERS}
    assert set(result["models"]) == {"m", "n"}
    incidents = [json.loads(one.value or b"") for (topic, _), one in log.by_id.items() if "incidents" in topic]
    assert any(event["explanation"] is not None for event in incidents), "a change is explained"
    counters, offset = result["checkpoint"]
    assert (offset, counters.consumed) == (N - 1, N)
    assert counters.dead_letters["model_failed"] >= 5
    assert balances(counters)
    return result


def crash_after(n: int, store: Callable[[Partition, Table], None], first_checkpoint: int | None = None) -> Any:
    """Stop after `n` records with what `store` has stored, and let another process do the rest."""
    records, table, log = stream(), dict[bytes, bytes](), Log()
    partition = partition_of(crash_config(), table)
    for i, one in enumerate(records[:n], start=1):
        log.send(partition.handle(one))
        if i == first_checkpoint:
            checkpoint(partition, table)
    store(partition, table)

    return finished_by_a_successor(table, log)


def finished_by_a_successor(table: Table, log: Log) -> Any:
    """Let another process do what comes after the stored checkpoint."""
    successor = Partition(TOPIC, 0, crash_config(), dict(table).get)
    committed = decode_checkpoint(table.get(checkpoint_key(0)))[1] + 1
    for one in stream()[committed:]:
        log.send(successor.handle(one))
    return outcome(successor, table, log)


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=[] if n % 20 in (0, 14) else [pytest.mark.long]) for n in range(0, N + 1, 2)]
)
@pytest.mark.parametrize("stored", [checkpoint, store_models], ids=["all", "all models and no checkpoint"])
@pytest.mark.share(2, "n", "stored")
def test_a_crash_after_storing_is_invisible(n: int, stored: Any, undisturbed: dict[str, Any]) -> None:
    assert crash_after(n, stored) == undisturbed


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=[] if n % 24 == 4 else [pytest.mark.long]) for n in range(20, N + 1, 8)]
)
@pytest.mark.parametrize("first_checkpoint", [7, 19])
@pytest.mark.share(2, "first_checkpoint", "n")
def test_a_crash_with_an_older_checkpoint_is_invisible(
    n: int, first_checkpoint: int, undisturbed: dict[str, Any]
) -> None:
    assert crash_after(n, store_models, first_checkpoint) == undisturbed
    assert crash_after(n, lambda *_: None, first_checkpoint) == undisturbed


def test_a_crash_between_the_snapshots_of_two_models_is_invisible(undisturbed: dict[str, Any]) -> None:
    def store_one(partition: Partition, table: Table) -> None:
        partition.dirty &= {"m"}
        store_models(partition, table)

    for n in range(0, N + 1, 10):
        assert crash_after(n, store_one) == undisturbed


@pytest.mark.parametrize(
    ("between", "begin"),
    [
        *(pytest.param(*one, marks=pytest.mark.long) for one in ((1, 11), (2, 11), (7, 11), (1, 40), (7, 40))),
        (2, 40),
    ],
)
def test_a_crash_between_the_slices_of_a_checkpoint_is_invisible(
    begin: int, between: int, undisturbed: dict[str, Any]
) -> None:
    for n in range(begin + 1, N + 1, 5):
        table, log = dict[bytes, bytes](), Log()
        partition = partition_of(crash_config(), table)
        storing = Storing(partition, table.__setitem__)
        for i, one in enumerate(stream()[:n]):
            log.send(partition.handle(one))
            if i >= begin and (i - begin) % between == 0:
                storing.store_slice()
        assert finished_by_a_successor(table, log) == undisturbed, n
