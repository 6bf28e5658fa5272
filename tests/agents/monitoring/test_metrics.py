"""The metrics of a hand-made worker: every name, its labels and its value."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections import Counter
from datetime import datetime
from typing import Any, get_args

import pytest
from prometheus_client import CollectorRegistry

from attributary_agents.config.reading import parse_config
from attributary_agents.kafka.observations import encode_value
from attributary_agents.monitoring.metrics import (
    CATALOGUE,
    ENDPOINT_METRICS,
    REGISTRY_METRICS,
    SOURCE_METRICS,
    AttributaryCollector,
)
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_agents.worker.view import OBSERVATION_BUCKETS_S, PartitionView, WorkerView
from attributary_explainers.loss_shift.events import Kind
from attributary_explainers.monitor.families import OTHER
from attributary_explainers.monitor.state import INCIDENTS
from attributary_topics import REASONS, RECORD_HEADER, WHATS
from tests.agents.models.frozen import FLIPPED_FROM, made
from tests.agents.monitoring.views import PREFIX, config_of, filled, samples, scraped, value
from tests.agents.stand_ins import FACTORY, MODELS, TOPIC

OF_FROZEN = {
    "factory": "tests.agents.models.frozen:frozen",
    "learn": False,
    "change": None,
    "explainers": {},
}
BRIER = {"loss": "brier", "loss_unit": "squared probability", "loss_largest": "2"}


@pytest.fixture(scope="module")
def worker() -> tuple[AttributaryCollector, WorkerView]:
    config = config_of("m", explain={"budget": 0.5})
    view = filled(config, {0: ["m"]}, n=260, flip_at=100)
    assert view.partitions[0].partition.models["m"].counts.incidents.total() > 0, (
        "so that there is a time of the last one"
    )
    return AttributaryCollector(config, view), view


@pytest.fixture(scope="module")
def attached() -> AttributaryCollector:
    """A worker of one model whose labels come later, beside predictions that were logged, and of a mirror."""
    model = {"factory": FACTORY, "alpha": 0.05}
    config = parse_config(
        {
            "sources": {"s": {"topic": "s", "id": "id", "y_pred": "score", "model": "late"}},
            "labels": {"l": {"topic": "l", "id": "id", "y": "y", "model": "late", "ttl": "1h"}},
            "models": {"late": model, "mirror": {**model, "mode": "mirror"}},
        }
    )
    partition = Partition(TOPIC, 0, config, {}.get)
    offsets = itertools.count()

    def send(key: bytes, kind: bytes, **given: object) -> None:
        header = [(RECORD_HEADER, kind)]
        partition.handle(Record(TOPIC, 0, next(offsets), 1_700_000_000_000, key, encode_value(given), header))

    for n in range(20):
        x, y = {"a": 1.0 if n % 3 else -1.0, "b": 0.5}, n % 3 > 0
        send(b"late", b"observation", x=x, id=n, time=1_700_000_000_000 + 1000 * n, y_pred=y)
        send(b"late", b"label", id=n, y=y, time=1_700_000_030_000 + 1000 * n)
        send(b"mirror", b"observation", x=x, y_pred=y)
    return AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))


DOUBT = "feature_importance_doubt"
"""A worker without observational removal has none."""

SHARDS = "explainer_shards"
"""A worker without a sharded model has none."""

TRANSACTIONS = "transactions_total"
"""A worker that publishes at least once makes none."""

TEMPLATES = tuple(name for name, (_, labels) in CATALOGUE.items() if "template" in labels)
"""A worker without a template has none."""

LATE = (
    "importance_locality_ratio",
    "importance_least_shift",
    "model_excess_loss",
    "model_excess_loss_low",
    "model_excess_loss_high",
)
"""Known after some thousand observations."""


def test_every_name_of_the_catalogue_appears_with_its_labels(
    worker: tuple[AttributaryCollector, WorkerView], attached: AttributaryCollector
) -> None:
    found = {family.name.removeprefix(PREFIX): family for family in worker[0].collect()}
    assert set(found) == {name.removesuffix("_total") for name in CATALOGUE}
    for family in attached.collect():
        found[family.name.removeprefix(PREFIX)].samples += family.samples
    for name, (text, labels) in CATALOGUE.items():
        family = found[name.removesuffix("_total")]
        assert family.documentation == text
        absent = (DOUBT, SHARDS, TRANSACTIONS, *TEMPLATES, *LATE, *SOURCE_METRICS, *ENDPOINT_METRICS, *REGISTRY_METRICS)
        assert bool(family.samples) == (name not in absent), f"{name} has no series"
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(labels), name
            assert not math.isnan(sample.value), name


def test_transactions_are_counted_by_how_they_ended(worker: tuple[AttributaryCollector, WorkerView]) -> None:
    collector, view = worker
    view.transactions = Counter(committed=3, fenced=1)
    try:
        (family,) = (one for one in collector.collect() if one.name == f"{PREFIX}transactions")
    finally:
        view.transactions = None
    found = {sample.labels["outcome"]: sample.value for sample in family.samples}
    assert found == {"committed": 3, "aborted": 0, "fenced": 1}


def test_counters_end_in_total_and_nothing_else_does(worker: tuple[AttributaryCollector, WorkerView]) -> None:
    for family in worker[0].collect():
        for sample in family.samples:
            assert (family.type == "counter") == sample.name.endswith("_total")
        assert not family.name.endswith("_total")
        assert family.type in ("counter", "gauge", "histogram")


def test_the_doubt_has_a_series_where_it_is_known(
    worker: tuple[AttributaryCollector, WorkerView], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = worker[1].partitions[0].partition.models["m"].explainers["pfi"]
    first, second, *_ = explainer.importance
    monkeypatch.setattr(type(explainer), "observational_doubt", {first: 0.25, second: math.nan})
    (family,) = (family for family in worker[0].collect() if family.name == PREFIX + DOUBT)
    assert [(s.labels["feature"], s.value) for s in family.samples if s.labels["explainer"] == "pfi"] == [(first, 0.25)]


def test_the_values_are_those_of_the_state(worker: tuple[AttributaryCollector, WorkerView]) -> None:
    collector, view = worker
    found, state = samples(collector), view.partitions[0].partition.models["m"]
    m = {"model_id": "m"}
    for name, explainer in state.explainers.items():
        of = {**m, "explainer": name}
        for feature in ("a", "b"):
            assert value(found, "feature_importance", **of, feature=feature) == explainer.importance[feature]
            assert value(found, "feature_importance_half_width", **of, feature=feature) == explainer.half_width[feature]
        assert sum(value(found, "feature_importance_share_ratio", **of, feature=f) for f in "ab") == pytest.approx(1)
        assert value(found, "explainer_observations", **of) == 259
        assert 0 <= value(found, "importance_shift_ratio", **of) <= 1
        assert 0 < value(found, "importance_ndcg_ratio", **of) <= 1
    assert value(found, "model_loss", **m) == state.model_loss.value
    assert value(found, "model_baseline_loss", **m) == state.baseline_loss.value
    assert value(found, "model_observations_total", **m) == 260
    assert [value(found, "model_pattern", **m, pattern=pattern) for pattern in ("trend", "recurring")] == [0, 0]
    for name in state.explainers:
        assert value(found, "importance_shifted", **m, explainer=name, feature="a") == 0
        assert value(found, "explainer_stale", **m, explainer=name) == 0
    assert value(found, "loss_reference_observations", **m) == 0
    for kind in ("worse", "level", "harder", "rose"):
        assert value(found, "loss_shift_open", **m, kind=kind) == 0
    for outcome in ("explained", "unexplained", "refused"):
        assert value(found, "model_versions_total", **m, outcome=outcome) == 0
    assert value(found, "model_info", **m, version="v3", **BRIER, detector="page_hinkley") == 1
    assert value(found, "model_state_bytes", **m) == 1000
    assert value(found, "explain_every_observations", **m) == 1
    assert value(found, "explain_share_ratio", **m) == 0.25
    assert value(found, "explain_budget_ratio", **m) == 0.5
    assert value(found, "worker_step_limit_seconds") == 30
    assert value(found, "model_discrepancy_threshold", **m) == 0.05
    assert value(found, "last_observation_timestamp_seconds", **m) == 1_700_000_000.5
    where = {"topic": TOPIC, "partition": "0"}
    assert value(found, "records_consumed_total", **where) == 261
    assert value(found, "records_unavailable_total", **where) == 0
    assert value(found, "consumer_lag_records", **where) == 5


def test_every_reason_for_a_dead_letter_starts_at_zero() -> None:
    config = config_of("m")
    partition = Partition(TOPIC, 3, config, lambda _key: None)
    control = PartitionControl(MODELS, partition, lambda _key: None)
    view = WorkerView({3: PartitionView(partition, control)})
    found = samples(AttributaryCollector(config, view))
    reasons = {dict(at)["topic"]: {} for name, at in found if name == "dead_letters_total"}
    for (name, at), n in found.items():
        if name == "dead_letters_total":
            reasons[dict(at)["topic"]][dict(at)["reason"]] = n
            assert dict(at)["partition"] == "3"
    assert reasons == dict.fromkeys((TOPIC, MODELS), dict.fromkeys(REASONS, 0.0))


def test_every_series_of_a_known_model_starts_at_zero() -> None:
    """A counter whose first sample is 1 is no increase to Prometheus."""
    config = config_of("m")
    found = samples(AttributaryCollector(config, filled(config, {0: ["m"]}, n=1)))
    counters = {"model_versions_total": ("outcome", ["explained", "unexplained", "refused"])}
    for name, (label, values) in counters.items():
        series = {dict(at)[label]: n for (found_name, at), n in found.items() if found_name == name}
        assert series == dict.fromkeys(values, 0.0)
    incidents = {
        (dict(at)["what"], dict(at)["severity"]): n for (n_, at), n in found.items() if n_ == "incidents_total"
    }
    assert incidents == dict.fromkeys(INCIDENTS, 0)
    assert {what for what, _ in incidents} == WHATS.keys()


def test_an_open_shift_of_the_loss_has_its_kind_and_the_excess_its_interval() -> None:
    config = config_of("m", **OF_FROZEN)
    view = WorkerView({0: PartitionView(partition := Partition(TOPIC, 0, config, lambda _key: None))})
    collector, m = AttributaryCollector(config, view), {"model_id": "m"}
    for offset, one in enumerate(made(FLIPPED_FROM + 300, seed=11)):
        if offset == FLIPPED_FROM:
            found = samples(collector)
            assert value(found, "loss_shift_open", **m, kind="worse") == 0
            assert value(found, "model_excess_loss_low", **m) <= 0 <= value(found, "model_excess_loss_high", **m)
            assert value(found, "loss_reference_observations", **m) > 5000
        partition.handle(Record(TOPIC, 0, offset, 0, b"m", encode_value({"x": one.x, "y": one.y})))
    found = samples(collector)
    assert {kind: value(found, "loss_shift_open", **m, kind=kind) for kind in get_args(Kind)} == {
        **dict.fromkeys(get_args(Kind), 0),
        "worse": 1,
    }
    low, excess, high = (value(found, f"model_excess_loss{end}", **m) for end in ("_low", "", "_high"))
    assert low < excess < high


def words_of(told: dict[str, Any]) -> dict[str, str]:
    headline, action = told["headline"], told["action"]
    details = told["sentence"].removeprefix(f"{headline}. {action} ")
    return {"id": told["id"], "headline": headline, "action": action, "details": details}


def test_an_open_incident_has_its_kind_and_its_words_as_its_event_has_them() -> None:
    config = config_of("m", **OF_FROZEN)
    view = WorkerView({0: PartitionView(partition := Partition(TOPIC, 0, config, lambda _key: None))})
    told: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for offset, one in enumerate(made(FLIPPED_FROM + 1500, seed=11)):
        sent = partition.handle(Record(TOPIC, 0, offset, 0, b"m", encode_value({"x": one.x, "y": one.y})))
        events = [json.loads(found.value) for found in sent if found.topic == config.kafka.topics.incidents]
        for told in events:
            found = samples(AttributaryCollector(config, view))
            shown = {name: dict(at) for name, at in found if name in ("incident_open", "incident_info")}
            if told["life"] == "suspected" and told["severity"] != "critical":
                assert shown == {}
            else:
                assert shown == {
                    "incident_open": {"model_id": "m", "what": told["what"], "severity": told["severity"]},
                    "incident_info": {"model_id": "m", **words_of(told)},
                }
                since = value(found, "incident_since_timestamp_seconds", model_id="m")
                assert since == datetime.fromisoformat(told["since"]["time"]).timestamp()
            n_confirmed = sum(n for (name, _), n in found.items() if name == "incidents_total")
            assert n_confirmed == (told["life"] == "confirmed")
            seen[told["life"]] = told["id"]
    assert seen.keys() == {"suspected", "confirmed"}
    assert len({*seen.values()}) == 1


def test_a_model_whose_loss_is_not_watched_has_no_series_of_it() -> None:
    config = config_of("m", watch_loss=False)
    found = samples(AttributaryCollector(config, filled(config, {0: ["m"]}, n=1)))
    assert not [name for name, _ in found if name.startswith("loss_") or "excess" in name]


def test_figures_that_nothing_has_updated_are_stale_until_something_does() -> None:
    config = config_of("m", explain={"every": 50}, publish={"every": 20, "min_observations": 1000})
    stale = []
    for n in (79, 80, 99, 100, 101):
        found = samples(AttributaryCollector(config, filled(config, {0: ["m"]}, n=n)))
        stale.append(value(found, "explainer_stale", model_id="m", explainer="pfi"))
    assert stale == [0, 1, 1, 0, 0], "explained at 50 and 100, and published at 60, 80 and 100"


def test_the_live_version_and_the_records_of_the_models_topic() -> None:
    config = config_of("m")
    view = filled(config, {0: ["m"]}, n=30)
    own = view.partitions[0]
    own.control = control = PartitionControl(MODELS, own.partition, lambda _key: None)
    for offset, body in enumerate(
        (b'{"version": "v4", "model": {"class": "river.naive_bayes.GaussianNB"}}', b"{poison")
    ):
        control.take(Record(MODELS, 0, offset, 0, b"m", body), -1)
    own.control_lag.note(3, time.monotonic())
    collector = AttributaryCollector(config, view)
    labels = {"model_id": "m", **BRIER, "detector": "page_hinkley"}
    assert value(samples(collector), "model_info", version="v3", **labels) == 1
    own.partition.handle(Record(TOPIC, 0, 100, 0, b"m", b'{"x": {"a": 1.0, "b": 1.0}, "y": true}'))
    found = samples(collector)
    assert value(found, "model_info", version="v4", **labels) == 1
    assert value(found, "model_versions_total", model_id="m", outcome="unexplained") == 0, "not known yet"
    assert value(found, "records_consumed_total", topic=MODELS, partition="0") == 2
    assert value(found, "consumer_lag_records", topic=MODELS, partition="0") == 3
    assert value(found, "dead_letters_total", topic=MODELS, partition="0", reason="invalid_json") == 1
    del view.partitions[0]
    left = samples(collector)
    assert {dict(at).get("partition") for _, at in left} == {None}


def test_dead_letters_are_counted_by_partition_so_that_they_move_with_it() -> None:
    collector, view = scraped(config_of("m", "n"), {0: ["m"], 1: ["n"]})
    found = samples(collector)
    for partition in "01":
        at = {"topic": TOPIC, "partition": partition}
        assert value(found, "dead_letters_total", **at, reason="invalid_json") == 1
        assert value(found, "dead_letters_total", **at, reason="not_finite") == 0
    del view.partitions[0]
    left = {dict(at)["partition"]: n for (name, at), n in samples(collector).items() if name == "dead_letters_total"}
    assert left.keys() == {"1"}


def test_what_no_checkpoint_has_grows_old_until_one_has_it() -> None:
    collector, view = scraped(config_of("m", "n"), {0: ["m"], 1: ["n"]}, n=3)
    assert pending(collector) == {"0": 0.0, "1": 0.0}
    view.partitions[0].mark_pending()
    began = pending(collector)["0"]
    view.partitions[0].mark_pending()  # a later record makes the oldest no younger
    assert pending(collector)["0"] > began > 0
    assert pending(collector)["1"] == 0
    view.partitions[0].mark_stored()
    assert pending(collector) == {"0": 0.0, "1": 0.0}
    view.partitions[1].mark_pending()
    view.partitions[1] = PartitionView(view.partitions[1].partition)
    assert pending(collector)["1"] == 0, "another generation of it has not handled anything yet"


def pending(collector: AttributaryCollector) -> dict[str, float]:
    found = samples(collector).items()
    return {dict(at)["partition"]: n for (name, at), n in found if name == "checkpoint_pending_seconds"}


def test_a_worker_without_partitions_has_no_series_of_models() -> None:
    found = samples(AttributaryCollector(config_of("m"), WorkerView({})))
    assert {name for name, labels in found if "model_id" in dict(labels)} == set()
    assert value(found, "series_dropped_models") == 0


def test_without_change_explanation_there_are_no_series_of_it() -> None:
    config = config_of("m", change=None)
    found = samples(AttributaryCollector(config, filled(config, {0: ["m"]})))
    assert value(found, "model_info", model_id="m", version="v3", **BRIER, detector="none") == 1
    assert not [name for name, _ in found if "discrepancy" in name or "change" in name]


def test_features_beyond_the_limit_are_summed_as_other() -> None:
    collector, view = scraped(config_of("m", metrics={"max_features": 1}), {0: ["m"]}, flip_at=60)
    found = samples(collector)
    for name, explainer in view.partitions[0].partition.models["m"].explainers.items():
        of = {"model_id": "m", "explainer": name}
        first, second = sorted(explainer.importance.items(), key=lambda item: -item[1])
        shown = {dict(at)["feature"] for n, at in found if n == "feature_importance" and set(of.items()) <= set(at)}
        assert shown == {first[0], OTHER}
        assert value(found, "feature_importance", **of, feature=first[0]) == first[1]
        assert value(found, "feature_importance", **of, feature=OTHER) == second[1]
        shares = [value(found, "feature_importance_share_ratio", **of, feature=f) for f in (first[0], OTHER)]
        assert sum(shares) == pytest.approx(1)
        assert ("feature_importance_half_width", tuple(sorted({**of, "feature": OTHER}.items()))) not in found


def test_models_beyond_the_limit_are_counted() -> None:
    config = config_of("m", "n", "o", metrics={"max_models": 2})
    found = samples(AttributaryCollector(config, filled(config, {0: ["o", "n"], 1: ["m"]}, n=3)))
    assert {dict(labels)["model_id"] for name, labels in found if name == "model_loss"} == {"m", "n"}
    assert value(found, "series_dropped_models") == 1


def test_registering_does_not_read_the_worker() -> None:
    view = WorkerView({})
    with view.lock:
        CollectorRegistry().register(AttributaryCollector(config_of("m"), view))


def test_the_histogram_is_cumulative(worker: tuple[AttributaryCollector, WorkerView]) -> None:
    found = samples(worker[0])
    buckets = {
        float(dict(labels)["le"]): n
        for (name, labels), n in found.items()
        if name == "stage_duration_seconds_bucket" and dict(labels)["stage"] == "observation"
    }
    assert sorted(buckets) == [*OBSERVATION_BUCKETS_S, math.inf]
    assert (buckets[0.001], buckets[0.0025], buckets[math.inf]) == (0, 260, 260)
    assert value(found, "stage_duration_seconds_count", stage="observation") == 260
    assert value(found, "stage_duration_seconds_count", stage="checkpoint") == 1


def test_hostile_names_are_escaped_for_the_scrape() -> None:
    config = config_of("m")
    partition = Partition(TOPIC, 0, config, lambda _key: None)
    hostile = 'b"} 1\nfaked{x="y'
    for offset in range(3):
        partition.handle(Record(TOPIC, 0, offset, 0, b"m", encode_value({"x": {"a": offset, hostile: 1.0}, "y": True})))
    view = WorkerView({0: PartitionView(partition)})
    features = {dict(labels).get("feature") for _, labels in samples(AttributaryCollector(config, view))}
    assert features == {None, "a", hostile}
