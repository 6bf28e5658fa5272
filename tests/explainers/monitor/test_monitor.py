"""A monitor of a service: what it keeps, what it counts, and what it lets nobody hear of."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import zlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prometheus_client import CollectorRegistry
from river import anomaly, forest, linear_model, naive_bayes, tree
from river.datasets import synth
from sklearn.linear_model import LogisticRegression

from attributary_explainers import IncrementalPFI, InvalidParameterError, ModelError, Monitor, SnapshotError
from attributary_explainers.monitor.series_limits import Limits
from attributary_explainers.monitor.settings import PublishRule
from attributary_topics import decode_json

OFTEN = PublishRule(every=50, min_observations=20)


def credit(n: int) -> list[tuple[dict[str, Any], Any]]:
    half = n // 2
    return [
        *synth.Agrawal(classification_function=0, seed=3).take(half),
        *synth.Agrawal(classification_function=1, seed=3).take(n - half),
    ]


def value_of(monitor: Monitor, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(monitor.collector)
    return registry.get_sample_value(f"attributary_{name}", labels)


def events_into(monitor: Monitor) -> list[tuple[Any, ...]]:
    sent: list[tuple[Any, ...]] = []
    monitor.publish_to(lambda *record: sent.append(record))
    return sent


def learning(**settings: Any) -> Monitor:
    model = tree.HoeffdingTreeClassifier(grace_period=50)
    settings = {"learn": True, "publish": OFTEN, "change": {"window": 100}, **settings}
    return Monitor(in_background=False).add("credit", model, **settings)


def test_what_it_says_of_a_model_is_what_the_explainer_alone_says() -> None:
    data = credit(300)
    model = naive_bayes.GaussianNB()
    for x, y in data:
        model.learn_one({name: x[name] for name in ("salary", "age", "loan")}, y)
    alone = IncrementalPFI(model, seed=zlib.crc32(b"42/credit/pfi"))
    with Monitor(in_background=False).add("credit", model, change=None, watch_loss=False) as monitor:
        for x, y in data:
            row = {name: x[name] for name in ("salary", "age", "loan")}
            monitor.observe("credit", row, y)
            alone.explain_one(row, y)
        assert monitor.importances("credit") == {"pfi": alone.importance}


def test_it_says_since_when_the_loss_is_guarded_also_of_another_version() -> None:
    data = credit(700)
    model = naive_bayes.GaussianNB()
    for x, y in data[:100]:
        model.learn_one(x, y)
    monitor = Monitor({"credit": model}, in_background=False)
    monitor.add("other", model, watch_loss=False)
    for x, y in data[:300]:
        monitor.observe("credit", x, y)
    guard = monitor.guard("credit")
    assert guard is not None
    assert (guard.since, guard.waits_for) == (256, None)
    assert monitor.guard("other") is None
    monitor.replace("credit", model, "2")
    guard = monitor.guard("credit")
    assert guard is not None
    assert guard.sentence() == "not judged yet: 0 labelled observations of 256"
    for x, y in data[300:]:
        monitor.observe("credit", x, y)
    guard = monitor.guard("credit")
    assert guard is not None
    assert guard.since == 556


def test_it_answers_as_the_model_does() -> None:
    data = credit(200)
    monitor, twin = learning(), tree.HoeffdingTreeClassifier(grace_period=50)
    assert monitor.predict("credit", data[0][0]) is None
    assert monitor.predict_proba("credit", data[0][0]) == {}
    for x, y in data:
        monitor.observe("credit", x, y)
        twin.learn_one(x, y)
    for x, _ in data[:20]:
        assert monitor.predict("credit", x) == twin.predict_one(x)
        assert monitor.predict_proba("credit", x) == twin.predict_proba_one(x)


def test_an_estimator_of_scikit_learn_is_asked_with_a_row_of_a_frame() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    labels = (frame["a"] + 0.2 * frame["b"] > 0).astype(int)
    estimator = LogisticRegression().fit(frame, labels)
    monitor = Monitor({"m": estimator}, in_background=False)
    for n in range(200):
        row = frame.iloc[n]
        assert monitor.predict("m", row) == estimator.predict(frame.iloc[[n]])[0]
        monitor.label("m", row, int(labels[n]))
    importance = monitor.importances("m")["pfi"]
    assert max(importance, key=importance.__getitem__) == "a"


def test_probabilities_of_a_regressor_are_refused_by_name() -> None:
    monitor = Monitor({"m": linear_model.LinearRegression()}, in_background=False)
    with pytest.raises(ModelError, match="call predict"):
        monitor.predict_proba("m", {"a": 1.0})


def test_one_that_is_restored_goes_on_to_the_last_bit() -> None:
    data = credit(900)
    settings = {"explainers": ("pfi", "sage"), "alpha": 0.01}
    whole = learning(**settings)
    expected = events_into(whole)
    cut = {at: learning(**settings) for at in (1, 599)}
    found = {at: events_into(one) for at, one in cut.items()}
    for n, (x, _y) in enumerate(data):
        for monitor in (whole, *cut.values()):
            monitor.predict("credit", x, id=n, time_ms=n)
            if n >= 10:
                monitor.label("credit", n - 10, data[n - 10][1], time_ms=n)
        if n in cut:
            cut[n] = learning(**settings).restore(pickle.loads(pickle.dumps(cut[n].snapshot())))
            cut[n].publish_to(lambda *record, sent=found[n]: sent.append(record))
    assert len(expected) > 30
    for at, restored in cut.items():
        assert found[at] == expected, at
        assert restored.importances("credit") == whole.importances("credit")
        for name in ("model_loss", "model_observations_total", "observations_waiting", "model_discrepancy"):
            value = value_of(restored, name, model_id="credit")
            assert value is not None
            assert value == value_of(whole, name, model_id="credit")


@pytest.mark.long
def test_a_forest_that_learns_is_restored_with_all_of_its_explainers() -> None:
    data = credit(2400)

    def made() -> Monitor:
        model = forest.ARFClassifier(n_models=3, seed=1)
        return Monitor(in_background=False).add("credit", model, learn=True, explainers=("pfi", "sage"), publish=OFTEN)

    whole, first, second = made(), made(), made()
    expected, found = events_into(whole), events_into(first)
    for n, (x, y) in enumerate(data):
        whole.observe("credit", x, y, time_ms=n)
        first.observe("credit", x, y, time_ms=n)
        if n in (600, 1300, 1800):  # in the middle of the examination of a change, too
            other = made() if n != 600 else second
            other.restore(pickle.loads(pickle.dumps(first.snapshot())))
            first = other
            first.publish_to(lambda *record: found.append(record))
    assert any(topic.endswith("incidents.v1") for topic, *_ in expected)
    assert found == expected


def test_what_waits_is_in_the_snapshot() -> None:
    data = credit(40)
    model = naive_bayes.GaussianNB()
    for x, y in data:
        model.learn_one({"salary": x["salary"]}, y)
    monitor = Monitor({"m": model})
    monitor._intake.background.close()  # nobody takes what waits
    for x, y in data:
        monitor.observe("m", {"salary": x["salary"]}, y)
    other = Monitor({"m": model}, in_background=False).restore(monitor.snapshot())
    other.flush()
    assert value_of(other, "model_observations_total", model_id="m") == 40
    assert value_of(monitor, "monitor_waiting_observations", model_id="m") == 40


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"version": "2"}, "version '1', not of '2'"),
        ({"learn": False}, "learn=True"),
        ({"change": None}, "another `change`"),
        ({"explainers": ("sage",)}, "another `explainers`"),
        ({"alpha": 0.5}, r"model credit: the snapshot is of `pfi` .*alpha .* here.*: add the model"),
        ({"seed": 7}, r"model credit: the snapshot is of `watch_loss` .*seed .* here.*: add the model"),
    ],
)
def test_a_snapshot_of_other_settings_is_refused(settings: dict[str, Any], said: str) -> None:
    snapshot = learning().snapshot()
    monitor = learning(**settings)
    before = monitor._models["credit"]
    with pytest.raises(SnapshotError, match=said):
        monitor.restore(snapshot)
    assert monitor._models["credit"] is before


def test_a_snapshot_of_other_models_is_refused() -> None:
    with pytest.raises(SnapshotError, match="add the same"):
        Monitor().restore(learning().snapshot())
    with pytest.raises(SnapshotError, match="format"):
        Monitor().restore({})
    with pytest.raises(SnapshotError, match=r"got format 1 with format: begin without it"):
        Monitor().restore({"format": 1})
    with pytest.raises(SnapshotError, match=r"got bytes; of bytes, give pickle\.loads"):
        Monitor().restore(pickle.dumps(Monitor().snapshot()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "settings", "said"),
    [
        (anomaly.HalfSpaceTrees(), {"learn": True, "change": {}}, "an anomaly detector that learns"),
        (anomaly.HalfSpaceTrees(), {"change": {"detector": "adwin"}}, "no `detector` with mode='anomaly'"),
        (naive_bayes.GaussianNB(), {"mode": "unlabelled", "change": {"detector": "adwin"}}, "mode='unlabelled'"),
    ],
)
def test_what_reads_a_loss_is_refused_where_there_is_none(model: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameterError, match=said):
        Monitor().add("m", model, **settings)


def test_every_event_says_that_the_model_is_an_anomaly_detector_that_of_a_new_version_too() -> None:
    first, second = (lambda x: x["a"]), (lambda x: 2.0 * x["a"] + x["b"])
    monitor = Monitor(in_background=False)
    sent = events_into(monitor)
    monitor.add("m", first, mode="anomaly", loss="neg_score", change={"window": 50}, publish=OFTEN)
    for n in range(300):
        if n == 120:
            monitor.replace("m", second, "2")
        monitor.observe("m", {"a": n % 7, "b": n % 5})
    events = [decode_json(value) for _, _, value, _ in sent]
    incidents = [event for event in events if event.get("event") == "incident"]
    assert {event["what"] for event in incidents} == {"version"}
    assert [event["life"] for event in incidents] == ["suspected", "confirmed", "over"]
    assert {event["mode"] for event in events} == {"anomaly"}
    pfi = incidents[1]["explanation"]["importances"]["pfi"]
    assert pfi["loss"] == "neg_score"
    assert pfi["after_loss"] < pfi["before_loss"] < 0.0, "its mean score is higher"
    assert incidents[1]["explanation"]["losses"] is None


class Touchy:
    """Fails where it is told to, by a feature."""

    def __init__(self) -> None:
        self.n = 0

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if x["how"] == "raise":
            raise ValueError(f"secret {x}")
        p = float("nan") if x["how"] == "nan" else 0.5 + 0.4 * x["a"]
        return {True: p, False: 1 - p}

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        self.n += 1


def touchy(**how: Any) -> Monitor:
    return Monitor(**how).add("m", Touchy(), learn=True, change=None, explainers=("pfi",), watch_loss=False)


@pytest.mark.parametrize("in_background", [True, False])
def test_a_model_that_fails_is_counted_and_told_and_nothing_is_raised(in_background: bool, caplog: Any) -> None:
    caplog.set_level(logging.WARNING, logger="attributary_explainers.monitor")
    monitor = touchy(in_background=in_background)
    for n in range(20):
        monitor.observe("m", {"a": n % 2, "how": "well"}, bool(n % 2))
    for _ in range(3):
        monitor.observe("m", {"a": 1, "how": "raise"}, True)
    for _ in range(2):
        monitor.observe("m", {"a": 1, "how": "nan"}, True)
    monitor.observe("m", {"a": 1, "how": "well"}, None)
    monitor.close()
    assert value_of(monitor, "monitor_failures_total", model_id="m", reason="model_failed") == 3
    assert value_of(monitor, "monitor_failures_total", model_id="m", reason="prediction_not_finite") == 2
    assert value_of(monitor, "model_observations_total", model_id="m") in (20, 21)
    assert monitor.model("m").n == value_of(monitor, "model_observations_total", model_id="m")
    said = [
        record.getMessage() for record in caplog.records if record.name.startswith("attributary_explainers.monitor")
    ]
    assert sum("ValueError" in line for line in said) == 1
    assert not any("secret" in line for line in said)


def test_what_a_model_raises_is_raised_where_that_is_wanted() -> None:
    monitor = touchy(in_background=False, on_error="raise")
    with pytest.raises(ValueError, match="secret"):
        monitor.observe("m", {"a": 1, "how": "raise"}, True)
    later = touchy(on_error="raise")
    later.observe("m", {"a": 1, "how": "raise"}, True)
    with pytest.raises(ValueError, match="secret"):
        later.close()
    later.flush()


def test_an_answer_that_the_model_cannot_give_is_raised_and_counted() -> None:
    monitor = touchy(in_background=False)
    with pytest.raises(ValueError, match="secret"):
        monitor.predict("m", {"a": 1, "how": "raise"})
    assert value_of(monitor, "monitor_failures_total", model_id="m", reason="model_failed") == 1


def test_a_publisher_that_fails_is_counted_and_the_others_go_on(caplog: Any) -> None:
    data = credit(300)
    monitor, sent = learning(), []

    def publish(*record: Any) -> None:
        sent.append(record)
        if len(sent) % 2:
            raise ConnectionError("away")

    monitor.publish_to(publish)
    for x, y in data:
        monitor.observe("credit", x, y)
    failed = value_of(monitor, "monitor_events_total", model_id="credit", outcome="failed")
    published = value_of(monitor, "monitor_events_total", model_id="credit", outcome="published")
    assert (failed, published) == ((len(sent) + 1) // 2, len(sent) // 2)
    assert sum("not published" in record.getMessage() for record in caplog.records) == 1


def test_labels_early_twice_and_late_are_counted_as_a_worker_counts_them() -> None:
    data = credit(5)
    monitor = learning(label_ttl_s=10)
    monitor.label("credit", "early", data[0][1], time_ms=0)
    monitor.predict("credit", data[0][0], id="early", time_ms=1)
    monitor.predict("credit", data[1][0], id=1, time_ms=2)
    monitor.label("credit", 1, data[1][1], time_ms=3)
    monitor.label("credit", 1, data[1][1], time_ms=4)
    monitor.predict("credit", data[1][0], id=1, time_ms=4)
    monitor.predict("credit", data[2][0], id=2, time_ms=5)
    monitor.label("credit", 2, data[2][1], time_ms=20_000)

    def labels(outcome: str) -> float | None:
        return value_of(monitor, "labels_total", model_id="credit", outcome=outcome)

    assert [labels(one) for one in ("joined", "duplicate", "late")] == [2, 1, 1]
    assert value_of(monitor, "observations_expired_total", model_id="credit", reason="ttl") == 1
    assert value_of(monitor, "monitor_failures_total", model_id="credit", reason="duplicate_id") == 1
    assert value_of(monitor, "model_observations_total", model_id="credit") == 2


def test_series_are_limited() -> None:
    monitor = Monitor(in_background=False, limits=Limits(max_models=1, max_features=2))
    for name in ("a", "b"):
        monitor.add(name, tree.HoeffdingTreeClassifier(), learn=True, change=None)
        for x, y in credit(20):
            monitor.observe(name, x, y)
    registry = CollectorRegistry()
    registry.register(monitor.collector)
    samples = [one for family in registry.collect() for one in family.samples]
    of_features = {one.labels["feature"] for one in samples if one.name == "attributary_feature_importance"}
    assert {one.labels["model_id"] for one in samples if "model_id" in one.labels} == {"a"}
    assert len(of_features) == 3
    assert "__other__" in of_features
    assert registry.get_sample_value("attributary_series_dropped_models") == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda monitor: monitor.observe("credti", {}, 1), "did you mean 'credit'"),
        (lambda monitor: monitor.add("credit", naive_bayes.GaussianNB()), "model_id"),
        (lambda monitor: monitor.add("b", naive_bayes.GaussianNB(), explainers=("shap",)), "explainers"),
        (lambda monitor: monitor.add("b", naive_bayes.GaussianNB(), alpha=2), "alpha"),
        (lambda monitor: monitor.add("b", naive_bayes.GaussianNB(), change={"window": 1}), "change.window"),
        (lambda monitor: Monitor(on_error="ignore"), "on_error"),
    ],
)
def test_what_is_wrong_is_said_at_once(call: Any, said: str) -> None:
    with pytest.raises(InvalidParameterError, match=said):
        call(learning())


@pytest.mark.long
def test_explainers_alone_do_not_bring_the_wire_format_along() -> None:
    code = """
import sys
import attributary_explainers
assert not {"attributary_topics", "prometheus_client", "orjson"} & sys.modules.keys()
assert attributary_explainers.Monitor.__module__ == "attributary_explainers.monitor.service.monitor"
assert not {"aiokafka", "faust", "pydantic", "attributary_agents"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_event_that_cannot_be_written_is_counted_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor, sent = learning(publish=PublishRule(every=10)), []
    monitor.publish_to(lambda *record: sent.append(record))
    data = credit(300)
    for x, y in data[:250]:
        monitor.observe("credit", x, y)
    known = len(sent)
    monkeypatch.setattr("attributary_explainers.monitor.service.intake.record_of", _refuse)
    for x, y in data[250:]:
        monitor.observe("credit", x, y)
    assert len(sent) == known
    assert value_of(monitor, "model_observations_total", model_id="credit") == 300
    assert value_of(monitor, "monitor_failures_total", model_id="credit", reason="model_failed") == 0
    assert value_of(monitor, "monitor_events_total", model_id="credit", outcome="failed") >= 5


def _refuse(*_: Any) -> Any:
    raise ValueError("no number")


def test_metrics_of_rare_classes_are_figures_as_all_others_are() -> None:
    names = ["pr_auc", "precision_at_5%", "recall_at_0.9"]

    def made() -> Monitor:
        return Monitor(in_background=False).add(
            "m", lambda x: {True: x["a"], False: 1.0 - x["a"]}, loss="brier", change=None, quality=names, alpha=0.02
        )

    monitor = made()
    for n in range(200):
        monitor.observe("m", {"a": (n % 20) / 20}, n % 20 > 17)
    found = {name: value_of(monitor, "model_quality", model_id="m", metric=name) for name in names}
    assert found == pytest.approx({"pr_auc": 1.0, "precision_at_5%": 1.0, "recall_at_0.9": 1.0})
    again = made().restore(monitor.snapshot())
    for each in (monitor, again):
        for n in range(30):
            each.observe("m", {"a": (n % 20) / 20}, n % 3 == 0)
    assert [value_of(again, "model_quality", model_id="m", metric=name) for name in names] == [
        value_of(monitor, "model_quality", model_id="m", metric=name) for name in names
    ]
    assert value_of(again, "model_quality", model_id="m", metric="pr_auc") < 0.9
