"""What a monitor says of a stream is what a worker says of it: the same bytes, but for the record that is not there."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from river import anomaly, forest, linear_model, naive_bayes, preprocessing, tree
from river.datasets import synth

from attributary_agents.config.reading import parse_config
from attributary_agents.models.join import arrive
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version, configured_version
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_agents.worker.view import PartitionView, WorkerView
from attributary_explainers import ExplainerError, Monitor, dump_model, load_model
from attributary_explainers.monitor.catalogue import OF_MODELS
from attributary_explainers.monitor.incident_events import arrived_incidents
from attributary_explainers.monitor.outbox import record_of
from attributary_explainers.monitor.settings import PublishRule
from attributary_topics import LateLabel, Observation, Source, Topics, encode_json

TREE = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 50}}
FOREST = {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}
LINEAR = [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LinearRegression"}]
PUBLISH = {"every": 100, "min_observations": 50, "material_shift": 0.1, "reference_after": 300}
CHANGE = {"window": 100, "importances": ["pfi", "sage"]}
EXPLAINERS = {"pfi": {"n_samples": 2}, "sage": {"n_samples": 2, "reservoir": "geometric", "reservoir_size": 50}}


def credit(n: int) -> list[tuple[dict[str, Any], Any]]:
    """Agrawal's credit data, whose rule is another one in the second half."""
    half = n // 2
    return [
        *synth.Agrawal(classification_function=0, seed=3).take(half),
        *synth.Agrawal(classification_function=1, seed=3).take(n - half),
    ]


def prices(n: int) -> list[tuple[dict[str, Any], Any]]:
    """Friedman's data, whose coefficients are others in the second half."""
    stream = synth.FriedmanDrift(drift_type="gra", position=(n // 2, n // 2 + 1), transition_window=1, seed=3)
    return [({f"x{number}": value for number, value in x.items()}, y) for x, y in stream.take(n)]


def worker_of(model: Any, **settings: Any) -> tuple[Any, Partition]:
    config = parse_config({"models": {"credit": {"model": model, "publish": PUBLISH, **settings}}})
    return config, Partition(config.kafka.topics.observations, 0, config, load=lambda _key: None)


Sent = list[tuple[str, bytes, bytes, dict[str, bytes]]]


def of_worker(config: Any, partition: Partition, data: list[tuple[dict[str, Any], Any]]) -> Sent:
    sent = []
    for n, (x, y) in enumerate(data):
        value = encode_json({"x": x, "y": y})
        for one in partition.handle(Record(partition.topic, 0, n, 1000 * n, b"credit", value)):
            sent.append((one.topic, one.key, one.value, dict(one.headers)))
    return sent


PLACE = re.compile(rb"credit:[\w.]+:0:(\d+)")


def renamed(text: bytes) -> bytes:
    """The ids as if there were no records: they count observations, which begin with 1."""
    return PLACE.sub(lambda found: b"credit:1:%d:%d" % (int(found[1]) + 1, 1000 * int(found[1])), text)


def without_record(sent: Sent) -> Sent:
    """The same as if there were no records, and no source is named."""
    found = []
    for topic, key, value, headers in sent:
        event = json.loads(renamed(value))
        assert event["source"]["partition"] == 0
        del event["source"]
        changed = {"ce_id": renamed(headers["ce_id"]), "ce_source": b"/attributary/monitor"}
        found.append((topic, key, encode_json(event), {**headers, **changed}))
    return found


def of_monitor(monitor: Monitor, data: list[tuple[dict[str, Any], Any]]) -> Sent:
    sent: Sent = []
    monitor.publish_to(lambda topic, key, value, headers: sent.append((topic, key, value, dict(headers))))
    for n, (x, y) in enumerate(data):
        monitor.observe("credit", x, y, time_ms=1000 * n)
    monitor.flush()
    return sent


def collector_of(config: Any, partition: Partition) -> AttributaryCollector:
    return AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))


def scraped(collector: Any) -> list[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode().splitlines()


def series(collector: Any) -> list[str]:
    """All series of models, as they are scraped, with ids as if there were no records."""
    names = tuple(f"attributary_{name}" for name in OF_MODELS)
    return [
        renamed(line.encode()).decode()
        for line in scraped(collector)
        if line.partition("{")[0].startswith(names) and not line.startswith("#")
    ]


def test_events_and_metrics_are_those_of_a_worker() -> None:
    data = credit(1600)
    config, partition = worker_of(TREE, explainers=EXPLAINERS, change=CHANGE, alpha=0.01)
    expected = without_record(of_worker(config, partition, data))
    with Monitor(in_background=False).add(
        "credit",
        tree.HoeffdingTreeClassifier(grace_period=50),
        learn=True,
        alpha=0.01,
        explainers=EXPLAINERS,
        change=CHANGE,
        publish=PublishRule(**PUBLISH),
    ) as monitor:
        found = of_monitor(monitor, data)
        kinds = {json.loads(value).get("kind", json.loads(value).get("event")) for _, _, value, _ in found}
        assert len(found) > 30
        assert len(kinds) > 1, "importances alone: the stream has to have a change"
        assert found == expected
        assert series(monitor.collector) == series(
            AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))
        )


@pytest.mark.parametrize("max_models", [1, 2])
def test_series_are_limited_as_a_worker_limits_them(max_models: int) -> None:
    limits = {"max_features": 2, "max_models": max_models, "max_series": 30}
    models = {name: {"model": TREE, "change": None, "publish": PUBLISH} for name in ("credit", "loans", "mortgages")}
    config = parse_config({"models": models, "metrics": limits})
    partition = Partition(config.kafka.topics.observations, 0, config, load=lambda _key: None)
    worker = AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))
    monitor = Monitor(in_background=False, limits=limits)
    for name in models:
        monitor.add(name, tree.HoeffdingTreeClassifier(grace_period=50), learn=True, change=None)
    for n, (x, y) in enumerate(credit(120)):
        value = encode_json({"x": x, "y": y})
        for number, name in enumerate(models):
            monitor.observe(name, x, y, time_ms=1000 * n)
            partition.handle(Record(partition.topic, 0, 3 * n + number, 1000 * n, name.encode(), value))
        if n % 40 == 39:  # which features are shown depends on those that were
            found = series(monitor.collector)
            assert found == series(worker)
    assert sum(line.startswith("attributary_feature_importance{") for line in found) == 3 * max_models
    assert sum('feature="__other__"' in line for line in found) == 2 * max_models
    dropped = f"attributary_series_dropped_models {3 - max_models}.0"
    for collector in (worker, monitor.collector):
        assert dropped in scraped(collector)


def test_the_background_changes_nothing_while_nothing_is_passed_over() -> None:
    data = credit(600)

    def run(**how: Any) -> Sent:
        model = tree.HoeffdingTreeClassifier(grace_period=50)
        with Monitor(**how).add("credit", model, learn=True, change=CHANGE, publish=PublishRule(**PUBLISH)) as monitor:
            return of_monitor(monitor, data)

    assert run(max_waiting=10_000) == run(in_background=False)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "make", "data"),
    [
        (FOREST, lambda: forest.ARFClassifier(n_models=3, seed=1), credit),
        (LINEAR, lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(), prices),
    ],
    ids=["forest", "linear"],
)
@pytest.mark.parametrize("learn", [True, False])
def test_longer_streams_of_other_models_with_all_defaults(spec: Any, make: Any, data: Any, learn: bool) -> None:
    rows = data(3000)
    config, partition = worker_of(spec, learn=learn, explainers={"pfi": {}, "sage": {}})
    expected = without_record(of_worker(config, partition, rows))
    with Monitor(in_background=False).add(
        "credit", make(), learn=learn, explainers=("pfi", "sage"), publish=PublishRule(**PUBLISH)
    ) as monitor:
        assert of_monitor(monitor, rows) == expected
        assert series(monitor.collector) == series(
            AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))
        )


def late_state(model: Any) -> ModelState:
    late = {
        "sources": {"s": {"topic": "s", "id": "id"}},
        "labels": {"l": {"topic": "l", "id": "id", "y": "y", "ttl": "1h"}},
    }
    config = parse_config({**late, "models": {"credit": {"model": model, "publish": PUBLISH, "change": CHANGE}}})
    model_config = config.models["credit"]
    return new_state("credit", model_config, configured_version(model_config))


def test_labels_that_come_later_are_scored_by_what_was_answered_then() -> None:
    data = credit(600)
    lag, topics = 25, Topics("attributary")
    state, expected = late_state(TREE), []
    model = tree.HoeffdingTreeClassifier(grace_period=50)
    monitor = Monitor(in_background=False).add(
        "credit", model, learn=True, change=CHANGE, publish=PublishRule(**PUBLISH), label_ttl_s=3600
    )
    sent: list[bytes] = []
    monitor.publish_to(lambda _topic, _key, value, _headers: sent.append(value))
    for n, (x, _y) in enumerate(data):
        monitor.predict("credit", x, id=n, time_ms=1000 * n)
        arrive(state, Observation("credit", x, None, id=str(n), time_ms=1000 * n), 1000 * n)
        assert arrived_incidents(state, x, Source(topics.observations, 0, n), 1000 * n, 0) == []
        if n < lag:
            continue
        label, at = data[n - lag][1], 1000 * n + 1
        monitor.label("credit", n - lag, label, time_ms=at)
        ready = arrive(state, LateLabel("credit", str(n - lag), label, at), at)
        assert ready is not None
        observation, kept = ready
        events = prequential(state, observation, Source(topics.observations, 0, n - lag), at, kept=kept, is_new=False)
        for one in events:
            value = record_of(one, topics, "", one.source, at, 0)[2]
            event = json.loads(PLACE.sub(lambda found: _late_place(int(found[1]), lag), value))
            del event["source"]
            expected.append(encode_json(event))
    assert len(sent) > 5
    assert sent == expected
    assert json.loads(sent[-1])["n_waiting"] == lag


def _late_place(offset: int, lag: int) -> bytes:
    return b"credit:1:%d:%d" % (offset + 1, 1000 * (offset + lag) + 1)


def _place(offset: int) -> bytes:
    return b"credit:1:%d:%d" % (offset + 1, offset)


def test_a_new_version_is_told_and_explained_as_a_worker_does() -> None:
    data, at, topics = credit(500), 333, Topics("attributary")
    old, new = tree.HoeffdingTreeClassifier(grace_period=50), tree.HoeffdingTreeClassifier(grace_period=20)
    for x, y in synth.Agrawal(classification_function=2, seed=9).take(400):
        new.learn_one(x, y)
    spec = {"model": TREE, "publish": PUBLISH, "change": CHANGE, "explainers": {"pfi": {}, "sage": {}}}
    config = parse_config({"models": {"credit": spec}}).models["credit"]
    state = new_state("credit", config, configured_version(config))
    monitor = Monitor(in_background=False).add(
        "credit", old, learn=True, change=CHANGE, explainers=("pfi", "sage"), publish=PublishRule(**PUBLISH)
    )
    sent: list[bytes] = []
    monitor.publish_to(lambda _topic, _key, value, _headers: sent.append(value))
    expected: list[Any] = []
    for n, (x, y) in enumerate(data):
        source = Source(topics.observations, 0, n)
        if n == at:
            copy = load_model(dump_model(new))
            state, told = swap(state, Version("2", {}, copy), source)
            expected += [record_of(one, topics, "", source, 0, 0)[2] for one in told]
            monitor.replace("credit", new, "2", time_ms=1000 * n)
        events = prequential(state, Observation("credit", x, y), source, 1000 * n)
        expected += [record_of(one, topics, "", source, 0, 0)[2] for one in events]
        monitor.observe("credit", x, y, time_ms=1000 * n)

    def place(found: re.Match[bytes]) -> bytes:
        n = int(found[1])
        return b"credit:%d:%d:%d" % (2 if n >= at else 1, n if n == at else n + 1, 1000 * n)

    for number, value in enumerate(expected):
        event = json.loads(PLACE.sub(place, value))
        del event["source"]
        expected[number] = encode_json(event)
    said = [json.loads(value) for value in sent]
    lives = [one["life"] for one in said if one.get("what") == "version"]
    assert lives[:2] == ["suspected", "confirmed"], "that it took over, and what came of it"
    assert sent == expected
    registry = CollectorRegistry()
    registry.register(monitor.collector)
    of_versions = {"model_id": "credit", "outcome": "explained"}
    assert registry.get_sample_value("attributary_model_versions_total", of_versions) == 1


def test_a_version_that_cannot_be_explained_leaves_the_one_before() -> None:
    data = credit(100)
    monitor = Monitor(in_background=False).add("credit", tree.HoeffdingTreeClassifier(), learn=True)
    for x, y in data:
        monitor.observe("credit", x, y)
    before = monitor.importances("credit")
    with pytest.raises(ExplainerError):
        monitor.replace("credit", object(), "2")
    with pytest.raises(ExplainerError, match="version"):
        monitor.replace("credit", tree.HoeffdingTreeClassifier(), "1")
    assert monitor.importances("credit") == before
    monitor.observe("credit", *data[0])


@pytest.mark.parametrize(
    ("mode", "spec", "make", "learn"),
    [
        ("anomaly", {"class": "river.anomaly.HalfSpaceTrees", "params": {"seed": 1}}, anomaly.HalfSpaceTrees, True),
        ("unlabelled", {"class": "river.naive_bayes.GaussianNB"}, None, False),
    ],
)
def test_models_without_labels_are_watched_as_a_worker_does(mode: str, spec: Any, make: Any, learn: bool) -> None:
    data = [({name: value / 1e5 for name, value in x.items() if name in ("salary", "loan")}, y) for x, y in credit(500)]
    model = naive_bayes.GaussianNB()
    for x, y in data:
        model.learn_one(x, y)
    model = model if make is None else make(seed=1)
    settings = {"mode": mode, "learn": learn, **({} if mode == "anomaly" else {"change": {"window": 100}})}
    config = parse_config({"models": {"credit": {"model": spec, "publish": PUBLISH, **settings}}}).models["credit"]
    state = new_state("credit", config, Version("1", {}, load_model(dump_model(model))))
    monitor = Monitor(in_background=False, on_error="raise").add(
        "credit", model, publish=PublishRule(**PUBLISH), **settings
    )
    sent: list[bytes] = []
    expected: list[bytes] = []
    monitor.publish_to(lambda _topic, _key, value, _headers: sent.append(value))
    for n, (x, _y) in enumerate(data):
        monitor.observe("credit", x, time_ms=n)
        ready = arrive(state, Observation("credit", x, None), n)
        assert ready is not None
        for one in prequential(state, ready[0], Source("t", 0, n), n):
            event = json.loads(PLACE.sub(lambda found: _place(int(found[1])), encode_json(one)))
            del event["source"]
            expected.append(encode_json(event))
    assert len(sent) > 4
    assert sent == expected
    assert json.loads(sent[-1])["mode"] == mode
