"""Quality from a configuration's text and records' bytes: events against scikit-learn, metrics, state, refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from sklearn import metrics as sklearn

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError
from attributary_agents.models.swap import swap
from attributary_agents.models.trial import check_models
from attributary_agents.models.versions import Version
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_agents.worker.view import PartitionView, WorkerView
from attributary_explainers import InvalidParameterError
from attributary_topics import Source, encode_json
from tests.agents.monitoring.views import samples
from tests.agents.replay.pages import data_of
from tests.agents.stand_ins import (
    CONTRARY_FACTORY,
    FACTORY,
    TOPIC,
    CountingClassifier,
    contrary_classifier,
    observations,
)

ALPHA = 0.05
REFERENCE = 40  # 2 / alpha


def config_of(text: str) -> Config:
    return parse_config(yaml.safe_load(text))


CLASSIFIER = f"""
models:
  m:
    factory: {FACTORY}
    alpha: {ALPHA}
    learn: LEARN
    change: null
    explainers: {{pfi: {{n_samples: 1}}}}
    publish: {{every: 1}}
"""

REGRESSOR = f"""
models:
  m:
    model: {{class: river.linear_model.LinearRegression}}
    alpha: {ALPHA}
    change: null
    explainers: {{pfi: {{n_samples: 1}}}}
    publish: {{every: 1}}
"""


def handled(partition: Partition, values: list[bytes], begin: int = 0) -> list[dict[str, Any]]:
    """The importance events that follow from these records."""
    sent = []
    for i, value in enumerate(values, start=begin):
        sent += partition.handle(Record(TOPIC, 0, i, i, b"m", value))
    events = [json.loads(outgoing.value or b"") for outgoing in sent]
    assert all("explainer" in event for event in events)
    return events


def values(n: int, **more: Any) -> list[bytes]:
    return [encode_json({"x": one.x, "y": one.y}) for one in observations(n, **more)]


@pytest.mark.parametrize("learn", [True, False])
def test_events_have_the_metrics_of_scikit_learn_before_the_model_learns_and_over_the_reference(learn: bool) -> None:
    config = config_of(CLASSIFIER.replace("LEARN", str(learn).lower()) + "    quality: [accuracy, auc, f1, macro_f1]\n")
    twin, y, p = CountingClassifier(), [], []
    for observation in observations(150, flip_at=75):
        p.append(twin.predict_proba_one(observation.x)[True])
        y.append(bool(observation.y))
        if learn:
            twin.learn_one(observation.x, bool(observation.y))
    labels, scores, truth = np.array(p) > 0.5, np.array(p), np.array(y)
    begin = REFERENCE if learn else 0
    first = slice(begin, begin + REFERENCE)

    def written_out(metric: Any, predicted: np.ndarray, where: slice, weight: np.ndarray, **more: Any) -> Any:
        return pytest.approx(metric(truth[where], predicted[where], sample_weight=weight, **more), abs=1e-9)

    events = handled(Partition(TOPIC, 0, config, lambda _key: None), values(150, flip_at=75))
    assert len(events) >= 148
    for event in events:
        n = event["observation"]
        assert list(event["quality"]) == ["accuracy", "roc_auc", "f1", "macro_f1"]
        found = {name: figure["value"] for name, figure in event["quality"].items()}
        weight, now = (1 - ALPHA) ** np.arange(n)[::-1], slice(n)
        assert found["accuracy"] == written_out(sklearn.accuracy_score, labels, now, weight)
        if n > 20:  # until then, one of the two may not have been seen
            assert found["f1"] == written_out(sklearn.f1_score, labels, now, weight)
            assert found["macro_f1"] == written_out(sklearn.f1_score, labels, now, weight, average="macro")
            auc = sklearn.roc_auc_score(truth[now], scores[now], sample_weight=weight)
            assert found["roc_auc"] == pytest.approx(auc, abs=0.02)  # by bins of the probability
        reference = event["quality"]["accuracy"]["reference"]
        if n < begin + REFERENCE:
            assert reference is None
        else:
            assert reference == pytest.approx(sklearn.accuracy_score(truth[first], labels[first]), abs=1e-9)


def test_a_regressor_has_mae_and_r2_by_default() -> None:
    partition = Partition(TOPIC, 0, config_of(REGRESSOR), lambda _key: None)
    targets = [2.0 * one.x["a"] - one.x["b"] for one in observations(100)]
    records = [encode_json({"x": one.x, "y": y}) for one, y in zip(observations(100), targets, strict=True)]
    last = handled(partition, records)[-1]
    state = partition.models["m"]
    assert list(last["quality"]) == ["mae", "r2"]
    assert last["quality"]["r2"]["value"] > 0.5
    assert 0.0 < last["quality"]["mae"]["value"] < last["quality"]["mae"]["reference"], "it has learnt since"
    assert state.quality is not None
    assert state.quality.n_observations == 100


@pytest.mark.parametrize("unlike", ["y: 1e300", "y: true"])
def test_targets_that_no_mean_takes_do_not_stop_the_worker(unlike: str) -> None:
    partition = Partition(TOPIC, 0, config_of(REGRESSOR), lambda _key: None)
    strange = encode_json({"x": {"a": 1.0, "b": 1.0}, **yaml.safe_load(unlike)})
    for i, value in enumerate([strange, *(encode_json({"x": o.x, "y": o.x["a"]}) for o in observations(60))]):
        partition.handle(Record(TOPIC, 0, i, i, b"m", value))
    quality = partition.models["m"].quality
    assert quality is not None
    assert all(value is not None and np.isfinite(value) for value in quality.value.values())


def test_an_empty_list_switches_it_off() -> None:
    partition = Partition(
        TOPIC, 0, config_of(CLASSIFIER.replace("LEARN", "true") + "    quality: []\n"), lambda _: None
    )
    assert handled(partition, values(3))[-1]["quality"] == {}
    assert partition.models["m"].quality is None
    view = WorkerView({0: PartitionView(partition)})
    found = samples(AttributaryCollector(partition.config, view))
    assert not any(name.startswith("model_quality") for name, _ in found)


def test_prometheus_reads_the_figures_of_the_state() -> None:
    config = config_of(CLASSIFIER.replace("LEARN", "false"))
    partition = Partition(TOPIC, 0, config, lambda _key: None)
    handled(partition, values(REFERENCE - 1))
    collector = AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))
    assert not any(name == "model_quality_reference" for name, _ in samples(collector)), "it is not complete"
    handled(partition, values(1, seed=2), REFERENCE - 1)
    quality = partition.models["m"].quality
    assert quality is not None
    found = samples(collector)
    for name in ("accuracy", "roc_auc"):
        of = (("metric", name), ("model_id", "m"))
        assert found["model_quality", of] == quality.value[name] is not None
        assert found["model_quality_reference", of] == quality.reference[name] is not None


RARE = ["pr_auc", "precision_at_10%", "recall_at_0.9"]


@pytest.mark.parametrize("more", ["", f"    quality: [accuracy, {', '.join(RARE)}]\n"])
def test_a_state_that_is_stored_and_read_goes_on_to_the_bit(more: str) -> None:
    config = config_of(CLASSIFIER.replace("LEARN", "true") + more)
    whole, parts = (Partition(TOPIC, 0, config, lambda _key: None) for _ in range(2))
    events = handled(whole, values(120))
    again = handled(parts, values(120)[:50])
    blob = encode_state(parts.models["m"])
    rest = Partition(TOPIC, 0, config, {b"m": blob}.get)
    assert again + handled(rest, values(120)[50:], 50) == events
    assert rest.models["m"].quality is not None
    assert whole.models["m"].quality is not None
    assert rest.models["m"].quality.snapshot() == whole.models["m"].quality.snapshot()


@pytest.mark.parametrize("changed", ["quality: [f1]", "alpha: 0.1", "learn: false", "quality: []"])
def test_with_another_list_another_alpha_or_without_learning_it_begins_anew(changed: str) -> None:
    text = CLASSIFIER.replace("LEARN", "true")
    partition = Partition(TOPIC, 0, config_of(text), lambda _key: None)
    handled(partition, values(90))
    blob = encode_state(partition.models["m"])
    data = yaml.safe_load(text)
    data["models"]["m"] |= yaml.safe_load(changed)
    quality = decode_state("m", parse_config(data).models["m"], blob).quality
    assert quality is None if changed == "quality: []" else quality is not None and quality.n_observations == 0
    kept = decode_state("m", config_of(text).models["m"], blob).quality
    assert kept is not None
    assert kept.n_observations == 90


def test_a_new_version_begins_with_its_own_and_with_a_new_reference() -> None:
    partition = Partition(TOPIC, 0, config_of(CLASSIFIER.replace("LEARN", "false")), lambda _key: None)
    handled(partition, values(REFERENCE))
    state = partition.models["m"]
    assert state.quality is not None
    assert state.quality.reference["accuracy"] is not None
    new = Version("2", {"factory": CONTRARY_FACTORY}, contrary_classifier(), 7)
    swapped, _ = swap(state, new, Source(TOPIC, 0, REFERENCE))
    assert swapped.quality is not None
    assert swapped.quality.n_observations == 0
    assert swapped.quality.reference == {"accuracy": None, "roc_auc": None}


def test_a_new_version_of_a_kind_that_a_metric_does_not_fit_is_refused_and_the_old_one_goes_on() -> None:
    text = CLASSIFIER.replace("LEARN", "true") + "    quality: [f1]\n"
    partition = Partition(TOPIC, 0, config_of(text), lambda _key: None)
    handled(partition, values(5))
    from river.linear_model import LinearRegression

    new = Version("2", {"model": {"class": "river.linear_model.LinearRegression"}}, LinearRegression(), 7)
    with pytest.raises(InvalidParameterError, match="f1 is not"):
        swap(partition.models["m"], new, Source(TOPIC, 0, 5))
    assert handled(partition, values(1), 5)[0]["model_version"] == "1"


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("[acuracy]", r"models\.m\.quality: .*did you mean 'accuracy'\?"),
        (
            "[mae]",
            r"models\.m: quality must be .* for a model that predicts classes \(accuracy, .*mae is not",
        ),
    ],
)
def test_a_metric_that_is_unknown_or_does_not_fit_is_refused_at_the_start(setting: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy):
        check_models(config_of(CLASSIFIER.replace("LEARN", "true") + f"    quality: {setting}\n"))


@pytest.mark.parametrize(("quality", "said"), [("[accuracy, f1, auc]", 1), ("[accuracy, macro_f1]", 0), ("null", 0)])
def test_the_log_says_once_that_a_metric_of_two_labels_has_no_value(
    quality: str, said: int, caplog: pytest.LogCaptureFixture
) -> None:
    partition = Partition(
        TOPIC, 0, config_of(CLASSIFIER.replace("LEARN", "false") + f"    quality: {quality}\n"), lambda _key: None
    )
    handled(partition, [encode_json({"x": o.x, "y": i % 3}) for i, o in enumerate(observations(2 * REFERENCE))])
    found = [record.getMessage() for record in caplog.records if "had no value" in record.getMessage()]
    assert len(found) == said
    if found:
        assert "model m: f1, roc_auc had no value over the first 40 observations" in found[0]
        assert "models.m.quality" in found[0]
        assert "macro_f1" in found[0]


def test_the_replay_of_a_file_writes_it_beside_the_loss(tmp_path: Any) -> None:
    text = CLASSIFIER.replace("LEARN", "false") + f"    quality: [accuracy, roc_auc, {', '.join(RARE)}]\n"
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "rows.csv").write_text(
        "a,b,y\n" + "".join(f"{o.x['a']},{o.x['b']},{int(o.y)}\n" for o in observations(60))
    )
    arguments = ["replay", str(tmp_path / "rows.csv"), "-c", str(tmp_path / "config.yaml"), "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    (shown,) = data_of((tmp_path / "report.html").read_text(encoding="utf-8"))["models"].values()
    for series in shown["series"].values():
        figures = series["figures"]
        assert None not in (figures["model_loss"][-1], figures["quality"]["accuracy"][-1])
        assert figures["quality_reference"]["accuracy"][-1] is not None
        assert all(figures["quality"][name][-1] is not None for name in RARE)
    prom = (tmp_path / "metrics.prom").read_text()
    assert 'attributary_model_quality{metric="accuracy",model_id="m"}' in prom
    assert 'attributary_model_quality_reference{metric="roc_auc",model_id="m"}' in prom
    assert all(f'attributary_model_quality{{metric="{name}",model_id="m"}}' in prom for name in RARE)
