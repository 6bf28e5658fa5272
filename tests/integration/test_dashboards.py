"""Every query of every dashboard, asked of a real Prometheus that has scraped a real worker on Apache Kafka.

A model changes, another does not, records are bad, a new version takes over. The time range is what Prometheus
has seen; its scrape interval, a second, is what Grafana is told.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from support.kafka import produce
from support.monitoring import Prometheus, Series, every_second
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from attributary_agents.monitoring.dashboards import dashboards
from tests.grafana import Asked, Session, panels, transformed
from tests.integration.configs import created, observation
from tests.integration.versions import deploy

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.prometheus]
DASHBOARDS = {name: json.loads(text) for name, text in dashboards().items()}
CHANGED, STEADY = "credit", "fraud"
ODD = "c (x|y).*\\d$"
"""A feature whose name a regular expression must not take at its word."""
BEFORE_S = 3
"""Seconds before the last change whose importances are compared with those of now."""
ALERT = {"alert": "AttributaryTest", "expr": "attributary_model_info == 1", "labels": {"severity": "info"}}
RULES = {"groups": [{"name": "test", "rules": [ALERT]}]}


LATER = {
    "By how much the interval may be off",
    "By how much observational importance is off at least",
    "Shifted features",
    "Least change that can be told",
    "Shift of the loss",
}
"""Panels without data here: they need 5000 observations or a longer reference, a shift, and observational removal."""
HELD_UP = {("Checkpoints", "B"), ("Silence of the brokers", "B"), ("Records read", "E"), ("Observations", "F")}
"""The queries without data here: no transaction is open, none is ours, no broker is away, no model sharded."""


UNUSED = {
    "labels come in the observation, or never",
    "no labels by themselves in this time",
    "no predictions are logged",
    "no model is served elsewhere",
    "no source is mapped here",
    "no model is of MLflow's registry",
    "no template is configured",
    "no service has a monitor",
}
"""What panels say of what is not configured here: late labels, endpoints, sources, templates, services."""


def is_used(panel: dict[str, Any]) -> bool:
    return panel.get("fieldConfig", {}).get("defaults", {}).get("noValue") not in UNUSED


def named(value: bytes, model: str) -> bytes:
    return value.replace(b'"c"', json.dumps(ODD).encode()) if model == CHANGED else value


@pytest.fixture(scope="module")
def seen(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, float, float]]:
    """Prometheus, and the time range in which everything has happened."""
    folder = tmp_path_factory.mktemp("dashboards")
    raw, config = created(kafka_broker, models=(CHANGED, STEADY), partitions=2)
    odd = {"a": "number", "b": "number", ODD: "number"}
    quiet = {**raw["models"][STEADY]["change"], "detector": None, "threshold": 100.0}
    tree = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 50, "delta": 0.01}}
    with_trees = {**raw["models"][STEADY]["explainers"], "mdi": {}}
    raw["models"] = {
        CHANGED: {**raw["models"][CHANGED], "features": odd, "explain": {"budget": 0.9}},
        STEADY: {**raw["models"][STEADY], "model": tree, "explainers": with_trees, "change": quiet},
    }
    topic = config.kafka.topics.observations
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump(RULES))

    def send(values: list[bytes]) -> None:
        records = [(model.encode(), named(value, model), []) for value in values for model in (CHANGED, STEADY)]
        produce(kafka_broker.bootstrap, topic, records, partition=0)

    # One of the two has a partition without records.
    with WorkerProcess(raw, folder, "--workers", "2") as worker:
        settings = every_second(rules, *(f"127.0.0.1:{port}" for port in worker.ports))
        with Prometheus(folder, settings, arguments=["--enable-feature=exemplar-storage"]) as prometheus:
            began = time.time()

            def holds(expr: str) -> None:
                wait_for(expr, lambda: prometheus.query(expr), 90)

            def wait_scraped(seconds: int) -> None:
                """Wait until every scrape of so many seconds from now on has succeeded, the last one of them too."""
                since = time.time()
                at_all = f"min_over_time(up[{seconds}s]) == 1 and count_over_time(up[{seconds}s]) >= {seconds}"
                holds(f"count({at_all} and timestamp(up) > {since + seconds}) == 2")

            wait_for("the worker is ready", worker.is_ready, 90)
            # Prometheus scrapes nothing in its first seconds: it would never see what has happened until then.
            holds("sum(attributary_dead_letters_total) == 0")
            send([observation(i) for i in range(1000)])
            send([b"{poison", json.dumps({"x": {}}).encode()])
            holds("sum(attributary_model_observations_total) == 2000 and count(attributary_model_state_bytes) == 2")
            wait_scraped(BEFORE_S + 1)
            # Slowly: an incident is over soon, and a scrape has to see it.
            for first in range(0, 1500, 250):
                send([observation(i, flipped=True) for i in range(first, first + 250)])
                wait_scraped(2)
            holds("sum(attributary_model_observations_total) == 5000")
            holds(f'sum(attributary_incidents_total{{model_id="{CHANGED}"}}) == 1')
            deployed = "river.linear_model.LogisticRegression"
            deploy(worker, CHANGED, "--class", deployed, "--version", "2", "--partition", "0")
            holds('sum(attributary_records_consumed_total{topic=~".*models.*"}) == 1')
            wait_scraped(BEFORE_S + 1)
            send([observation(i, flipped=True) for i in range(600)])
            holds("sum(attributary_model_observations_total) == 6200")
            holds('attributary_model_info{version="2"}')
            wait_scraped(3)
            yield prometheus, began, time.time()


def told(answer: list[Series]) -> int:
    """How many points of it are numbers."""
    return sum(not math.isnan(value) for series in answer for _, value in series.points)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_query_of_every_panel_and_annotation_returns_data(
    name: str, seen: tuple[Prometheus, float, float]
) -> None:
    prometheus, began, ended = seen
    models = (CHANGED, STEADY) if name == "attributary-model.json" else ("",)
    points: dict[tuple[str, str], int] = {}
    for model in models:
        chosen = {"before": f"{BEFORE_S}s", **({"model_id": model} if model else {})}
        session = Session(prometheus, DASHBOARDS[name], began, ended, 1, chosen)
        for panel in panels(DASHBOARDS[name]):
            for one in session.ask(panel):
                at = panel["title"], one.ref
                points[at] = points.get(at, 0) + told(one.answer)
        for annotation, one in session.annotations():
            at = annotation["name"], "annotation"
            points[at] = points.get(at, 0) + sum(n > 0 for series in one.answer for _, n in series.points)
    assert points
    used = {panel["title"] for panel in panels(DASHBOARDS[name]) if is_used(panel)}
    assert len(used) >= 15
    without = {at for at, n in points.items() if not n and (at[0] in used or at[1] == "annotation")}
    assert without - HELD_UP == {at for at in points if at[0] in LATER}
    assert without & HELD_UP == points.keys() & HELD_UP


def asked(session: Session, title: str) -> list[Asked]:
    (panel,) = (panel for panel in panels(session.dashboard) if panel["title"] == title)
    return session.ask(panel)


def value(session: Session, title: str) -> float:
    ((series,),) = (one.answer for one in asked(session, title))
    return series.value


def by(label: str, answer: list[Series]) -> dict[str, float]:
    return {series.labels[label]: series.value for series in answer}


def drawn(answer: list[Series]) -> set[tuple[str, float]]:
    return {(series.labels["feature"], when) for series in answer for when, _ in series.points}


def opened(name: str, seen: tuple[Prometheus, float, float], **chosen: str) -> Session:
    prometheus, began, ended = seen
    return Session(
        prometheus, DASHBOARDS[f"attributary-{name}.json"], began, ended, 1, {"before": f"{BEFORE_S}s", **chosen}
    )


def test_variables_offer_what_there_is(seen: tuple[Prometheus, float, float]) -> None:
    session = opened("model", seen)
    assert session.options("job") == ["attributary"]
    assert session.options("model_id") == [CHANGED, STEADY]
    assert session.options("explainer") == ["pfi", "sage"]
    assert session.options("feature") == ["a", "b", ODD]
    (change,) = session.options("change")
    prometheus, began, ended = seen
    (when,) = prometheus.query(f'attributary_incident_since_timestamp_seconds{{model_id="{CHANGED}"}}')
    assert float(change) == pytest.approx(when.value, abs=0.002)
    assert began < float(change) < ended
    instances = opened("operations", seen).options("instance")
    assert [instance.startswith("127.0.0.1:") for instance in instances] == [True, True]
    # Where nothing has changed, the moment stands in: a query needs some time.
    assert float(opened("model", seen, model_id=STEADY).options("change")[0]) == pytest.approx(ended, abs=2)


def test_the_fleet_shows_what_has_happened(seen: tuple[Prometheus, float, float]) -> None:
    session = opened("fleet", seen)
    assert value(session, "Models") == 2
    assert value(session, "Dead letters") == 4
    assert value(session, "Alerts firing") == 2
    (reasons,) = asked(session, "Dead letters by reason")
    assert {s.labels["reason"]: max(n for _, n in s.points) > 0 for s in reasons.answer} == {
        "invalid_json": True,
        "missing_label": True,
        "none": False,
    }
    version, rate, loss, baseline, ratio = (one.answer for one in asked(session, "All models")[:5])
    assert {series.labels["model_id"]: series.labels["version"] for series in version} == {CHANGED: "2", STEADY: "1"}
    assert by("model_id", rate).keys() == {CHANGED, STEADY}
    for model, found in by("model_id", ratio).items():
        assert found == pytest.approx(by("model_id", loss)[model] / by("model_id", baseline)[model])
    marks = [(colour, title) for _, colour, title in session.marks()]
    assert ("red", f"{CHANGED}: changed") in marks
    assert ("blue", f"{CHANGED}: version 2") in marks
    assert not [title for _, title in marks if STEADY in title]


def test_the_model_shows_what_has_changed(seen: tuple[Prometheus, float, float]) -> None:
    session = opened("model", seen)
    before, now = (by("feature", one.answer) for one in asked(session, "Before the last incident, and now"))
    assert before.keys() == now.keys() == {"a", "b", ODD}
    _, _, difference, band = (by("feature", one.answer) for one in asked(session, "What has changed"))
    assert difference == pytest.approx({feature: now[feature] - before[feature] for feature in now})
    prometheus, then = seen[0], float(str(session.values["change"])) - BEFORE_S
    of = f'{{model_id="{CHANGED}", explainer="pfi"}}'
    assert before == by("feature", prometheus.query(f"attributary_feature_importance{of}", then))
    assert now == by("feature", prometheus.query(f"attributary_feature_importance{of}", session.end))
    half_width, earlier_half_width = (
        by("feature", prometheus.query(f"attributary_feature_importance_half_width{of}", at))
        for at in (session.end, then)
    )
    assert band == pytest.approx({name: math.hypot(half_width[name], earlier_half_width[name]) for name in now})
    of_a = session.only({"feature": "a"})
    middle, upper, lower = (one.answer[0].value for one in asked(of_a, "$feature"))
    assert (middle, upper, lower) == pytest.approx((now["a"], now["a"] + half_width["a"], now["a"] - half_width["a"]))
    (rank,) = asked(session, "Rank")
    clear = f"attributary_feature_importance{of} > on (feature) attributary_feature_importance_half_width{of}"
    assert drawn(rank.answer) == drawn(prometheus.query_range(clear, session.start, session.end, session.step_s))
    first = {series.labels["feature"] for series in rank.answer for _, place in series.points if place == 1}
    assert {"a", "b"} <= first, "a was the first until the stream changed, then b"
    observed = asked(session, "Observations")[0].answer[0]
    total, first_s = f'attributary_model_observations_total{{model_id="{CHANGED}"}}', observed.points[0][0]
    earlier, counted = (prometheus.query(total, at)[0].value for at in (first_s - session.step_s, session.end))
    assert sum(n for _, n in observed.points) * session.step_s == counted - earlier


def test_a_chosen_feature_is_escaped(seen: tuple[Prometheus, float, float]) -> None:
    session = opened("model", seen, feature=ODD)
    (importance,) = asked(session, "Importance")
    assert [series.labels["feature"] for series in importance.answer] == [ODD]
    both = opened("model", seen).only({"feature": [ODD, "a"]})
    assert [series.labels["feature"] for series in asked(both, "Importance")[0].answer] == ["a", ODD]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_legends_name_labels_that_the_answers_have(name: str, seen: tuple[Prometheus, float, float]) -> None:
    session = opened(name.removeprefix("attributary-").removesuffix(".json"), seen)
    for panel in panels(session.dashboard):
        # A panel that repeats has one value of its variable at a time.
        for one in (session.only({"feature": "a"}) if "repeat" in panel else session).ask(panel):
            labels = set(re.findall(r"\{\{(\w+)\}\}", one.legend))
            if panel["title"] in LATER or (panel["title"], one.ref) in HELD_UP or not is_used(panel):
                continue
            assert labels <= {label for series in one.answer for label in series.labels}, panel["title"]
            if not labels and one.legend != "__auto" and panel["type"] == "timeseries":
                assert len(one.answer) <= 1, f"{panel['title']}: several series with one name"


def test_tables_have_the_columns_that_their_queries_are_named_after(seen: tuple[Prometheus, float, float]) -> None:
    def table(name: str, title: str) -> tuple[list[str], list[list[Any]]]:
        session = opened(name, seen)
        (panel,) = (panel for panel in panels(session.dashboard) if panel["title"] == title)
        columns, rows = transformed(panel, session.ask(panel))
        styled = [one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"]]
        assert set(styled) <= set(columns)
        return columns, sorted(rows)

    columns, rows = table("fleet", "All models")
    assert ", ".join(columns) == (
        "model_id, detector, version, obs / s, loss, baseline loss, loss / baseline, shift, NDCG, discrepancy, "
        "threshold, n, incidents, shifted, stale, last incident, last observation, state"
    )
    assert [row[:3] for row in rows] == [[CHANGED, "adwin", "2"], [STEADY, "none", "1"]]
    # The importances of the new version have not settled: there is no shift of them, and no NDCG.
    assert all(isinstance(value, float) for value in (*rows[0][3:7], *rows[0][9:13], *rows[1][3:13]))
    (confirmed,) = seen[0].query(f'sum(attributary_incidents_total{{model_id="{CHANGED}"}})')
    assert [row[12] for row in rows] == [confirmed.value, 0]
    columns, rows = table("fleet", "What is open")
    assert columns == ["headline", "model_id", "severity", "what"]
    assert [row[1] for row in rows] == [CHANGED]
    assert CHANGED in rows[0][0]
    columns, rows = table("fleet", "Alerts that fire")
    assert columns == ["alertname", "model_id", "severity"]
    assert [row[1] for row in rows] == [CHANGED, STEADY]
    columns, rows = table("model", "Importance now")
    assert columns == ["feature", "importance", "±", "share"]
    assert [row[0] for row in rows] == ["a", "b", ODD]
    assert sum(row[3] for row in rows) == pytest.approx(1)
    assert table("model", "What has changed")[0] == ["feature", "before", "now", "difference", "±"]
    assert table("model", "Before the last incident, and now")[0] == ["feature", "before", "now"]
