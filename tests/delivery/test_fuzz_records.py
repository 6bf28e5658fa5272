"""Whatever is in a record: nothing raises, everything is accounted for, and the other records are explained as ever."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_agents.worker.view import PartitionView, WorkerView
from attributary_explainers import is_usable
from attributary_topics import DEAD_LETTER_HEADER_PREFIX, REASONS
from tests.agents.monitoring.views import samples
from tests.agents.stand_ins import DEAD_LETTERS, FACTORY, MODELS, TOPIC, balances, header
from tests.agents.worker.test_partition import Table

# Models raise on purpose; numpy says what overflows.
pytestmark = [
    pytest.mark.filterwarnings("ignore::attributary_explainers.ModelFailureWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
MAX_BYTES = 1_000_000
SCALER = {"class": "river.preprocessing.StandardScaler"}
KINDS: dict[str, dict[str, Any]] = {
    "logistic": {"model": [SCALER, {"class": "river.linear_model.LogisticRegression"}]},
    "forest": {"model": {"class": "river.forest.ARFClassifier", "params": {"n_models": 2, "seed": 1}}},
    "linear": {"model": {"class": "river.linear_model.LinearRegression"}},
    "nearest": {"model": {"class": "river.neighbors.KNNRegressor", "params": {"n_neighbors": 1}}},
    "declared": {"factory": FACTORY, "features": {"a": "number", "b": "number"}},
}


def config(**more: Any) -> Config:
    common = {
        "alpha": 0.1,
        "explainers": {"pfi": {"n_samples": 1, "reservoir_size": 8}, "sage": {"n_samples": 1, "reservoir_size": 8}},
        "change": {"window": 20, "threshold": 0.0},
        "publish": {"every": 1, "reference_after": 2},
        "max_features": 12,
        "max_text": 300,
        **more,
    }
    return parse_config(
        {"kafka": {"max_record_bytes": MAX_BYTES}, "models": {name: {**kind, **common} for name, kind in KINDS.items()}}
    )


CONFIG = config()


def good(i: int, kind: str) -> bytes:
    a, b = ((i * k % 101) / 50 - 1 for k in (37, 53))
    return json.dumps({"x": {"a": a, "b": b}, "y": 2 * a + b if kind in ("linear", "nearest") else a > 0}).encode()


GOOD = good(3, "declared")

names = st.sampled_from(["a", "b", "c", "", "\x00", '",}{\n\\', "ü", "n" * 300]) | st.text(max_size=3)
poison = st.sampled_from(
    [1e308, -1.7e308, 1e154, 1e150, -0.0, 5e-324, 2**63, 2**64 - 1, -(2**63), 0, 1, True, False, "", "1", "x" * 400]
)
scalars = poison | st.floats() | st.integers() | st.text(max_size=4) | st.none()
nested = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
legal = st.builds(lambda x, y: {"x": x, "y": y}, st.dictionaries(names, poison, min_size=1, max_size=6), poison)
two = st.builds(lambda a, b, y: {"x": {"a": a, "b": b}, "y": y}, poison, poison, poison)
fields = {"x": nested | st.dictionaries(names, scalars, max_size=15), "y": nested, "model": nested}
texts = dict.fromkeys(("model_id", "version", "factory", "artefact", "sha256"), scalars)
odd = st.fixed_dictionaries({}, optional={**fields, **texts})
literal = st.sampled_from(
    [
        b"",
        b"[" * 100_000,
        b'{"x": {"a": ' + b"[" * 500 + b"]" * 500 + b'}, "y": 1}',
        b'{"x": {"a": NaN, "b": 1}, "y": 1}',
        b'{"x": {"a": NaN, "b": null}, "y": 1}',
        b'{"x": {"b": 1}, "y": 1}',
        b'{"x": {"a": 1, "b": 1e999}, "y": 1}',
        b'{"x": {"a": ' + b"9" * 5000 + b', "b": 1}, "y": 1}',
        b'{"x": {"a": 1, "a": 2, "b": 1}, "y": 1, "y": 0}',
        b'{"x": {"a": "\\ud800", "b": 1}, "y": 1}',
        b'{"x": {"\\udfff": 1}, "y": "\\ud800"}',
        b'{"x": {"a": "' + b"v" * 900_000 + b'"}, "y": 1}',
        b'{"x": {' + b", ".join(b'"f%d": 1' % i for i in range(10_000)) + b'}, "y": 1}',
        GOOD * 2,
    ]
)
values = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.integers(0, len(GOOD) - 1).map(lambda n: GOOD[:n]),
    literal,
    st.one_of(legal, two, two, odd, nested).map(lambda data: json.dumps(data).encode()),
)
model_ids = st.sampled_from([name.encode() for name in KINDS])
odd_keys = st.sampled_from([b"", b"unknown", b"logistic\x00", b"\xff\xfe", b"k" * 250, b"k" * 1_200_000])
keys = st.one_of(*[model_ids] * 3, st.none(), st.binary(max_size=12), odd_keys)
ce_headers = st.lists(
    st.tuples(st.sampled_from(["ce_id", "ce_type", "ce_time", "content-type"]), st.none() | st.binary(max_size=8))
)
headers = st.one_of(
    st.just([]),
    ce_headers,
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4),
    st.sampled_from([[("ü" * 300_000, None)] * 2, [("h", b"\x00" * 1_100_000)], [("", b"")] * 40_000]),
)
timestamps = st.sampled_from([0, -1, -(2**63), 2**63 - 1, 1_700_000_000_000])
content = st.tuples(keys, values, headers, timestamps)


def collected(partition: Partition, control: PartitionControl) -> AttributaryCollector:
    return AttributaryCollector(partition.config, WorkerView({0: PartitionView(partition, control)}))


def metrics(collector: AttributaryCollector) -> dict[str, float]:
    """Sample name to the sum over its labels, out of what a scrape is given."""
    found: dict[str, float] = Counter()
    for (name, _), value in samples(collector).items():
        found[name] += value
    return found


def size(sent: Outgoing) -> int:
    of_headers = sum(len(name.encode()) + len(value or b"") + 2 for name, value in sent.headers)
    return len(sent.key or b"") + len(sent.value or b"") + of_headers


def check_letter(letter: Outgoing, record: Record) -> str:
    """One dead letter, with the original's bytes or as many as a record holds; its reason."""
    assert letter.topic == DEAD_LETTERS
    cut = {
        name.removeprefix(DEAD_LETTER_HEADER_PREFIX): int(value or b"")
        for name, value in letter.headers
        if name.startswith(f"{DEAD_LETTER_HEADER_PREFIX}truncated")
    }
    empty = b"" if record.key is record.value is None else record.value  # Kafka's producer sends nothing without both
    n_headers = len(record.headers) - cut.get("truncated-headers", 0)
    assert list(letter.headers[:n_headers]) == list(record.headers)[:n_headers]
    for got, original, name in (
        (letter.value, empty, "truncated-bytes"),
        (letter.key, record.key, "truncated-key-bytes"),
    ):
        if name not in cut:
            assert got == original
        else:
            assert got is not None
            assert original is not None
            assert got == original[: len(got)]
            assert len(got) + cut[name] == len(original)
    reason = header(letter, "attributary-dlq-reason")
    assert reason in REASONS
    return reason


def check_sent(sent: list[Outgoing], record: Record) -> str | None:
    """Every event is strict JSON within the limit; the reason of the dead letter, of which there is one at most."""
    reasons = [check_letter(one, record) for one in sent if one.topic == DEAD_LETTERS]
    assert len(reasons) <= 1
    for one in sent:
        assert size(one) < MAX_BYTES
        if one.topic != DEAD_LETTERS:
            json.loads(one.value or b"", parse_constant=lambda word: pytest.fail(f"{word} in an event"))
    return reasons[0] if reasons else None


def table_of(partition: Partition) -> Table:
    return {name.encode(): encode_state(state) for name, state in partition.models.items()}


def new_partition(chosen: Config = CONFIG, table: Table | None = None) -> Partition:
    return Partition(TOPIC, 0, chosen, (table or {}).get)


@pytest.mark.long
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(content, min_size=1, max_size=12))
def test_any_observation_is_explained_or_a_dead_letter_and_the_others_do_not_notice(garbage: list[Any]) -> None:
    partition = new_partition()
    collector = collected(partition, PartitionControl(MODELS, partition, {}.get))
    records = []
    for i in range(12):
        for name in ("logistic", "forest", "nearest") if i < 6 else ("logistic", "linear"):
            records.append((name.encode(), good(i, name), [], 1))
        if i >= 4:
            records += garbage[(i - 4) :: 8]
    kept: list[tuple[Record, list[Outgoing]]] = []
    refused = 0
    for offset, (key, value, pairs, timestamp) in enumerate(records):
        record = Record(TOPIC, 0, offset, timestamp, key, value, pairs)
        sent = partition.handle(record)
        reason = check_sent(sent, record)
        refused += reason is not None
        counters = partition.counters
        assert counters.consumed == offset + 1
        assert balances(counters)
        assert sum(counters.dead_letters.values()) == refused
        if reason in (None, "model_failed", "prediction_not_finite"):  # the model was asked: it belongs to the run
            kept.append((record, sent))
    seen = metrics(collector)
    assert seen["records_consumed_total"] == len(records)
    assert seen["dead_letters_total"] == refused
    assert seen["model_observations_total"] == len(records) - refused

    # Without what was refused the rest gives the same, byte for byte; so it does from stored states on.
    other = new_partition()
    half = len(kept) // 2
    for i, (record, sent) in enumerate(kept):
        if i == half:
            other = new_partition(table=table_of(other))
        assert other.handle(record) == sent


@pytest.mark.long
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(content, min_size=1, max_size=4))
def test_any_control_record_is_taken_or_a_dead_letter(garbage: list[Any]) -> None:
    partition = new_partition()
    table: Table = {}
    control = PartitionControl(MODELS, partition, table.get)
    refused = 0
    for offset, (key, value, pairs, timestamp) in enumerate(garbage):
        record = Record(MODELS, 0, offset, timestamp, key, value, pairs)
        step = control.take(record, -1)
        refused += check_sent(step.outgoing, record) is not None
        table.update(step.writes)
        assert control.counters.consumed == offset + 1
        assert balances(control.counters)
        assert sum(control.counters.dead_letters.values()) == refused
        assert all(len(stored) < MAX_BYTES for stored in table.values())
    assert metrics(collected(partition, control))["dead_letters_total"] == refused
    again = PartitionControl(MODELS, new_partition(), table.get)
    assert (again.counters, again.offset) == (control.counters, control.offset)


def feed(kind: str, observations: list[dict[str, Any]], **more: Any) -> tuple[Partition, list[Outgoing]]:
    partition = new_partition(config(**more))
    sent: list[Outgoing] = []
    for offset, data in enumerate(observations):
        record = Record(TOPIC, 0, offset, 1, kind.encode(), json.dumps(data).encode())
        out = partition.handle(record)
        check_sent(out, record)
        sent += out
    assert balances(partition.counters)
    return partition, sent


@pytest.mark.parametrize("magnitude", [1e152, 1e154, 1e200, 8e307])
@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.share(2, "loss", "magnitude")
def test_targets_whose_losses_are_useless_are_dead_letters_and_the_rest_goes_on(magnitude: float, loss: str) -> None:
    rng = random.Random(1)
    ordinary = [json.loads(good(i, "nearest")) for i in range(60)]
    extreme = [
        {"x": {"a": rng.uniform(-1, 1), "b": rng.uniform(-1, 1)}, "y": rng.choice([-1, 1]) * magnitude}
        for _ in range(45)
    ]
    mixed = [one for pair in zip(ordinary[15:], extreme, strict=True) for one in pair]
    partition, sent = feed(
        "nearest", [*ordinary[:15], *mixed, *ordinary], loss=loss, change={"window": 20, "threshold": 0.0}
    )
    state = partition.models["nearest"]
    assert (state.n_observations, state.n_failed) == (120, 45)
    letters = [one for one in sent if one.topic == DEAD_LETTERS]
    assert {header(one, "attributary-dlq-reason") for one in letters} == {"prediction_not_finite"}
    last = json.loads(sent[-1].value or b"")
    assert last["stale"] is False
    assert last["baseline_loss"] < 10.0
    assert all(abs(of["importance"]) < 10.0 for of in last["features"].values())


def test_a_model_that_one_value_has_spoilt_says_so_and_goes_back() -> None:
    # Scaled, 1e308 makes weights of NaN: the model predicts nothing from then on, and does not raise either.
    ordinary = [json.loads(good(i, "logistic")) for i in range(20)]
    spoilt = {"x": {"a": 1e308, "b": 1e308}, "y": True}
    partition, sent = feed("logistic", [*ordinary, spoilt, {**spoilt, "y": False}, *ordinary])
    state = partition.models["logistic"]
    assert is_usable(state.together.predict({"a": 0.0, "b": 0.0}, explain=False))
    assert state.counts.recoveries["recovered"] == 1
    letters = [one for one in sent if one.topic == DEAD_LETTERS]
    assert 2 <= len(letters) <= 4
    assert {header(one, "attributary-dlq-reason") for one in letters} == {"prediction_not_finite"}
    assert "models reset logistic" in header(letters[-1], "attributary-dlq-message")
    seen = metrics(collected(partition, PartitionControl(MODELS, partition, {}.get)))
    assert seen["dead_letters_total"] == len(letters)
    assert state.n_observations + state.n_failed == 42
    again = decode_state("logistic", partition.config.models["logistic"], encode_state(state))
    assert again.n_observations == state.n_observations


def test_features_beyond_the_limit_are_refused_and_those_known_go_on() -> None:
    ordinary = [json.loads(good(i, "logistic")) for i in range(10)]
    many = {"x": {f"f{i}": 1.0 for i in range(13)}, "y": True}
    ever_new = [{"x": {f"g{i}_{k}": 1.0 for k in range(3)}, "y": True} for i in range(10)]
    mixed = [one for pair in zip(ordinary, ever_new, strict=True) for one in pair]
    partition, sent = feed("logistic", [*ordinary, many, *mixed])
    letters = [one for one in sent if one.topic == DEAD_LETTERS]
    reasons = [header(one, "attributary-dlq-reason") for one in letters]
    # 2 and 3 are 5; a further 3 would be more than half of the bound, and do not come again.
    assert reasons == ["too_large"] * 10
    assert "max_features" in header(letters[0], "attributary-dlq-message")
    assert all("features" in header(one, "attributary-dlq-message") for one in letters)
    state = partition.models["logistic"]
    assert state.n_observations == 21
    assert all(len(explainer.importance) == 5 for explainer in state.explainers.values())


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({"x": {"a": "t" * 301, "b": 1}, "y": 1}, "max_text"),
        ({"x": {"a": 1, "b": 1}, "y": "t" * 301}, "max_text"),
        ({"x": {"n" * 250: 1}, "y": 1}, "249"),
    ],
)
def test_texts_beyond_the_limit_are_refused(data: dict[str, Any], what: str) -> None:
    _, (letter,) = feed("forest", [data])
    assert header(letter, "attributary-dlq-reason") == "too_large"
    assert what in header(letter, "attributary-dlq-message")
    assert feed("forest", [{"x": {"a": "t" * 300, "n" * 249: 1}, "y": 1}])[1] == []
