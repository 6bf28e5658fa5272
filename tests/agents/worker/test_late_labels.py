"""Records of a model whose labels come later, from bytes: what becomes of each, and a worker killed at every point."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.state.checkpoints import encode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_agents.worker.view import PartitionView, WorkerView
from attributary_topics import RECORD_HEADER, Origin
from tests.agents.stand_ins import FACTORY, TOPIC, balances, header

LABEL = [(RECORD_HEADER, b"label")]


def config(mode: str = "late", **model: Any) -> Config:
    chosen = {"factory": FACTORY, "alpha": 0.05, "publish": {"every": 10, "min_observations": 5}, **model}
    given: dict[str, Any] = {"models": {"m": chosen, "plain": {"factory": FACTORY}}}
    if mode == "late":
        given["sources"] = {"s": {"topic": "s", "id": "id", "model": "m"}}
        given["labels"] = {"l": {"topic": "l", "id": "id", "y": "y", "model": "m", "ttl": "60s", "max_waiting": 20}}
    return parse_config(given)


def record(offset: int, value: dict[str, Any], headers: Any = (), key: bytes = b"m") -> Record:
    return Record(TOPIC, 0, offset, 1_700_000_000_000 + offset, key, orjson.dumps(value), headers)


def observed(offset: int, key: Any, a: float = 1.0, **more: Any) -> Record:
    return record(offset, {"x": {"a": a, "b": 0.5}, "id": key, **more})


def labelled(offset: int, key: Any, y: Any = True, **more: Any) -> Record:
    return record(offset, {"id": key, "y": y, **more}, LABEL)


def records(n: int) -> list[Record]:
    """Observations and their labels, up to a minute and more later; some twice, some never, some first, some broken."""
    rng = random.Random(2)
    parts: list[tuple[float, str, int]] = []
    for i in range(n):
        parts.append((i, "observation", i))
        if rng.random() < 0.9:
            parts.append((i + rng.choice([-1, 2, 10, 70]), "label", i))
        if rng.random() < 0.3:
            parts.append((i + 15, rng.choice(["label", "observation", "garbage", "stray label"]), i))
    made = []
    for offset, (at, what, i) in enumerate(sorted(parts)):
        time = 1_700_000_000_000 + round(at * 1000)
        a = 1.0 if i % 3 else -1.0
        if what == "observation":
            made.append(observed(offset, i, a, time=time))
        elif what == "label":
            made.append(labelled(offset, str(i), a > 0, time=time))
        elif what == "stray label":
            made.append(labelled(offset, f"nobody's {i}", True, time=time))
        else:
            made.append(record(offset, {"x": {"a": 1}}))
    return made


def sent(outgoing: list[Outgoing]) -> list[tuple[Any, ...]]:
    return [(one.topic, one.key, one.value, tuple(one.headers)) for one in outgoing]


@pytest.mark.long
def test_a_worker_killed_anywhere_goes_on_to_the_same_events_and_the_same_state() -> None:
    stream = records(120)
    chosen = config()
    whole = Partition(TOPIC, 0, chosen, {}.get)
    expected = [sent(whole.handle(one)) for one in stream]
    final = _told(whole)
    assert balances(whole.counters)
    letters = whole.counters.dead_letters
    assert letters["duplicate_id"] > 0
    assert letters["missing_id"] > 0
    joiner = _labels(whole)
    assert joiner.counts.expired_ttl > 0
    assert joiner.counts.expired_cap > 0
    assert joiner.counts.orphaned > 0
    assert joiner.counts.observed == joiner.counts.joined + joiner.n_waiting + joiner.n_expired

    for stop in range(1, len(stream), 7):
        table: dict[bytes, bytes] = {}
        partition = Partition(TOPIC, 0, chosen, table.get)
        for n, one in enumerate(stream[:stop]):
            partition.handle(one)
            if n == stop // 2:  # a checkpoint
                table[b"m"] = encode_state(partition.models["m"])
                table[checkpoint_key(0)] = encode_checkpoint(one.offset, partition.counters)
        table[b"m"] = encode_state(partition.models["m"])  # and dies before the next one
        again = Partition(TOPIC, 0, chosen, table.get)
        events = [sent(again.handle(one)) for one in stream]
        assert events[stop:] == expected[stop:]
        assert again.models["m"].failed_offsets.keys() <= set(range(len(stream)))
        assert _told(again) == final
        assert again.counters == whole.counters


def _told(partition: Partition) -> dict[str, Any]:
    state = partition.models["m"]
    snapshot = state.snapshot()
    kept = ("late", "model_loss", "present_loss", "baseline_loss", "n_observations", "n_failed", "offset", "labels")
    importances = {name: (one.importance, one.std_error) for name, one in state.explainers.items()}
    return {**{name: snapshot[name] for name in kept}, "importances": importances, "counts": state.model.counts}


def _labels(partition: Partition) -> Any:
    late = partition.models["m"].late
    assert late is not None
    return late.labels


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (record(1, {"x": {"a": 1, "b": 2}}), "missing_id"),
        (observed(1, 1.5), "wrong_type"),
        (observed(1, "x" * 2000), "wrong_type"),
        (observed(1, "again", y=True), "unexpected_label"),
        (observed(1, "again", time="yesterday"), "wrong_time"),
        (observed(1, "ahead", time=1_700_000_000_000 + 3_600_002), "wrong_time"),
        (record(1, {"id": "a"}, LABEL), "missing_label"),
        (record(1, {"y": True}, LABEL), "missing_id"),
        (record(1, {"id": "a", "y_pred": 1}, [(RECORD_HEADER, b"response")]), "unexpected_record"),
        (record(1, {"id": "a", "y": 1}, [(RECORD_HEADER, b"\xff")]), "unexpected_record"),
        (record(1, {"id": "a", "y": True}, LABEL, key=b"plain"), "unexpected_record"),
    ],
)
def test_a_record_that_cannot_be_used_is_a_dead_letter_with_its_reason(one: Record, reason: str) -> None:
    partition = Partition(TOPIC, 0, config(), {}.get)
    partition.handle(observed(0, "first"))
    (letter,) = partition.handle(one)
    assert header(letter, "attributary-dlq-reason") == reason
    assert balances(partition.counters)
    assert _labels(partition).n_waiting == 1
    partition.handle(labelled(2, "first"))
    assert partition.models["m"].n_observations == 1


def test_an_id_is_the_same_as_text_and_as_an_integer() -> None:
    partition = Partition(TOPIC, 0, config(), {}.get)
    partition.handle(observed(0, 17))
    partition.handle(labelled(1, "17"))
    assert partition.models["m"].n_observations == 1


def test_events_name_the_record_that_completed_them_where_it_was_mapped_from_and_its_time() -> None:
    partition = Partition(TOPIC, 0, config(publish={"every": 1}), {}.get)
    origin = ("attributary-origin", Origin("counts", 2, 77, 0, True, 0).encode())
    for n in range(5):
        partition.handle(observed(2 * n, n))
        partition.handle(labelled(2 * n + 1, n))
    partition.handle(observed(10, "a", time=1_700_000_000_000))
    one = record(11, {"id": "a", "y": True, "time": 1_700_000_030_000}, [*LABEL, origin])
    (event,) = partition.handle(one)
    assert orjson.loads(event.value or b"")["source"] == {
        "topic": TOPIC,
        "partition": 0,
        "offset": 11,
        "origin": {"topic": "counts", "partition": 2, "offset": 77},
        "event_time": "2023-11-14T22:13:50.000Z",
    }


def test_without_labels_in_the_configuration_what_waited_is_forgotten_and_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    partition = Partition(TOPIC, 0, config(), {}.get)
    partition.handle(observed(0, "a"))
    table = {b"m": encode_state(partition.models["m"])}
    again = Partition(TOPIC, 0, config("plain"), table.get)
    again.handle(record(1, {"x": {"a": 1, "b": 2}, "y": True}))
    assert "1 observations waited" in caplog.text
    assert again.models["m"].n_observations == 1


def test_the_metrics_say_what_waits_and_what_became_of_labels() -> None:
    partition = Partition(TOPIC, 0, config(), {}.get)
    for one in records(120):
        partition.handle(one)
    samples = {
        (
            sample.name,
            sample.labels.get("outcome") or sample.labels.get("reason") or sample.labels.get("le"),
        ): sample.value
        for family in AttributaryCollector(config(), WorkerView({0: PartitionView(partition)})).collect()
        for sample in family.samples
        if sample.labels.get("model_id") == "m"
    }
    counts = _labels(partition).counts
    assert samples["attributary_observations_observed_total", None] == counts.observed == 120
    outcomes = ("joined", "joined_old_version", "orphaned", "duplicate", "changed", "late")
    by_outcome = {outcome: samples["attributary_labels_total", outcome] for outcome in outcomes}
    assert sum(by_outcome.values()) + samples["attributary_labels_early", None] == counts.labels
    expired = [samples["attributary_observations_expired_total", reason] for reason in ("ttl", "cap")]
    waiting = samples["attributary_observations_waiting", None]
    assert sum(expired) + waiting + by_outcome["joined"] + by_outcome["joined_old_version"] == 120
    assert samples["attributary_label_delay_seconds_bucket", "+Inf"] == counts.joined
    assert samples["attributary_observations_waiting_limit", None] == 20
    assert samples["attributary_model_present_loss", None] is not None


def test_values_that_break_are_told_when_they_come_and_not_when_their_labels_do() -> None:
    partition = Partition(TOPIC, 0, config(change=None, watch_loss=False), {}.get)
    rng = random.Random(5)
    found, offset = [], 0
    for i in range(900):
        a = rng.uniform(20.0, 90.0) * (12.0 if i >= 600 else 1.0)
        time = 1_700_000_000_000 + 1000 * i
        handled = [observed(offset, i, a, time=time)]
        if i >= 15:
            handled.append(labelled(offset + 1, i - 15, a > 50.0, time=time))
        for one in handled:
            found += [out for out in partition.handle(one) if out.topic.endswith("incidents.v1")]
        offset += len(handled)
    told = [orjson.loads(one.value or b"") for one in found]
    first, *_ = told
    assert (first["what"], first["life"]) == ("inputs", "confirmed")
    assert list(first["features"]) == ["a"]
    first_broken = 15 + 2 * (600 - 15)  # its offset, and its milliseconds after the first record
    assert first["source"]["offset"] <= first_broken + 2 * 50, "whose labels are to come"
    assert first["since"]["time"] == "2023-11-14T22:13:21.185Z", f"{first_broken} ms after the first"
    assert "12 times what it was" in first["sentence"]
    watch = partition.models.find_or_make("m").incident_watch
    assert watch is not None
    assert watch.inputs is not None
    assert watch.inputs.n_observations == 900, "each once"
