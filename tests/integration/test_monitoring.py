"""docker-compose.yml's pieces as processes: a drift becomes one alert; a rebalance neither a gap nor a double count.

Kafka, the topics, two workers, the page, the producer, Prometheus and Alertmanager run with the commands, the settings
and the files of docker-compose.yml and .env, at the demo's own rate and with its own scrape interval.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from support.compose import ROOT, Compose, Stack
from support.kafka import read_all
from support.monitoring import Series
from support.waiting import wait_for

from attributary_agents.demo.brokers import BrokerMissingError

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.prometheus, pytest.mark.timeout(900)]
WORKERS = ("worker-1", "worker-2")
DRIFTING, STEADY = "credit", "loans"
PATIENCE_S = 400.0
"""How long is waited for what a busy machine is slow to do."""
OBSERVATIONS, CHANGES = "attributary.observations.v1", "attributary.changes.v1"
INCIDENTS = "attributary.incidents.v1"
RECORDED = "model:attributary_model_observations_total:max"
RATE = "model:attributary_model_observations:rate5m"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    running = Stack(tmp_path_factory.mktemp("stack"), Compose())
    began = time.monotonic()
    try:
        try:
            running.start_kafka()
        except BrokerMissingError as error:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
        running.start_monitoring()
        for worker in WORKERS:
            running.run(worker)
        running.run("page")
        wait_for("both workers are ready", lambda: all(map(running.is_ready, WORKERS)), PATIENCE_S)
        running.run("producer")
        print(f"\nKafka, topics, Prometheus, Alertmanager and both workers up after {time.monotonic() - began:.0f} s")
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def alert(stack: Stack) -> dict[str, Any]:
    """The alert of the first drift, as Alertmanager has it."""
    began = time.monotonic()
    # 3000 observations at 100/s, then some 1090 until the incident is confirmed, then a scrape and an evaluation.
    found = wait_for(
        "an alert of an incident", lambda: stack.alertmanager.alerts('area="incident"'), PATIENCE_S, every_s=0.5
    )
    print(f"\nthe alert is in Alertmanager {time.monotonic() - began:.0f} s after the producer began")
    return dict(found[0])


def test_the_drift_becomes_an_alert_with_its_model_and_labels(stack: Stack, alert: dict[str, Any]) -> None:
    labels = {name: alert["labels"][name] for name in ("alertname", "model_id", "area", "severity", "job")}
    assert labels == {
        "alertname": "AttributaryModelIncident",
        "model_id": DRIFTING,
        "area": "incident",
        "severity": "warning",
        "job": "attributary",
    }
    assert {"instance", "pod", "partition", "what"}.isdisjoint(alert["labels"]), "an alert must not move with its model"
    assert alert["status"]["state"] == "active"
    assert alert["receivers"] == [{"name": "webhook"}]


def test_the_incident_is_the_drift_s_and_the_alert_has_its_headline_and_links(
    stack: Stack, alert: dict[str, Any]
) -> None:
    drift = int(stack.compose.env["FIRST_DRIFT"])
    assert f"credit: drift at observation {drift}, from rule 1 to 2" in stack.log("producer")
    told = [json.loads(record.value) for record in read_all(stack.kafka.bootstrap, INCIDENTS)]
    assert {incident["model_id"] for incident in told} == {DRIFTING}
    suspected, confirmed = told[:2]
    assert [incident["life"] for incident in (suspected, confirmed)] == ["suspected", "confirmed"]
    assert suspected["id"] == confirmed["id"]
    assert drift < suspected["observation"] <= drift + 200
    # The window that is examined from then on, and 40 slices of the explanation.
    assert confirmed["observation"] == suspected["observation"] + confirmed["explanation"]["window"] + 40
    assert confirmed["since"]["low"] <= drift + 1 <= confirmed["since"]["high"]
    texts = alert["annotations"]
    assert texts["summary"] == f"{confirmed['headline']}. {confirmed['action']}"
    began, _, details = texts["description"].partition(" UTC. ")
    assert f"{texts['summary']} {details}" == confirmed["sentence"]
    assert began[: len("Began 2026-01-01")] == f"Began {confirmed['since']['time'][:10]}"
    assert (ROOT / texts["runbook_url"]).is_file()
    page, _, incident_id = texts["page_url"].rpartition("/")
    assert page == f"http://localhost:{stack.compose.env['PAGE_PORT']}/incidents"
    assert unquote(incident_id) == confirmed["id"]
    # As docs/compose.md promises it, to the digit: the same stream gives the same incident.
    docs = " ".join((ROOT / "docs" / "compose.md").read_text().split())
    assert confirmed["sentence"] in docs
    print(f"\n{confirmed['sentence']}")


def test_the_alert_is_resolved_when_the_incident_is_over(stack: Stack, alert: dict[str, Any]) -> None:
    def over() -> bool:
        told = [json.loads(record.value) for record in read_all(stack.kafka.bootstrap, INCIDENTS)]
        return any(incident["life"] == "over" for incident in told)

    wait_for("the end of the incident", over, PATIENCE_S, every_s=0.5)
    wait_for("the end of the alert", lambda: not stack.alertmanager.alerts('area="incident"'), PATIENCE_S, every_s=0.5)
    fired = stack.prometheus.samples('ALERTS{alertname="AttributaryModelIncident", alertstate="firing"}', 600)
    assert [(series.labels["model_id"], series.labels["severity"]) for series in fired] == [(DRIFTING, "warning")]


def test_the_page_has_the_incident_as_the_topic_has_it(stack: Stack, alert: dict[str, Any]) -> None:
    (told, *_) = [
        json.loads(record.value)
        for record in read_all(stack.kafka.bootstrap, "attributary.incidents.v1")
        if record.key == DRIFTING.encode()
    ]

    def shown() -> dict[str, int]:
        address = f"http://127.0.0.1:{stack.page_port}/api/v1/models/{DRIFTING}/incidents"
        with urllib.request.urlopen(address, timeout=10) as answer:
            return {row["id"]: row["revision"] for row in json.loads(answer.read())["incidents"]}

    rows = wait_for("the incident on the page", shown, PATIENCE_S)
    assert rows[told["id"]] >= told["revision"]


def test_the_stream_without_drift_raises_no_alert_of_its_own(stack: Stack, alert: dict[str, Any]) -> None:
    assert stack.prometheus.query(f'{RECORDED}{{model_id="{STEADY}"}}')[0].value > 0
    assert stack.alertmanager.alerts(f'model_id="{STEADY}"', 'area=~"incident|quality"') == []


def test_every_rule_is_evaluated_without_a_fault(stack: Stack, alert: dict[str, Any]) -> None:
    faults = {rule["name"]: rule["lastError"] for rule in stack.prometheus.rules() if rule["health"] != "ok"}
    assert faults == {}
    files = list(stack.compose.on_host("prometheus", "/etc/prometheus/rules").glob("*.yml"))
    wanted = [rule for path in files for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]
    assert len(stack.prometheus.rules()) == len(wanted) > 0
    assert {(target["labels"]["job"], target["health"]) for target in stack.prometheus.targets()} == {
        ("attributary", "up"),
        ("page", "up"),
        ("prometheus", "up"),
        ("alertmanager", "up"),
    }


def test_a_rebalance_makes_no_gap_and_counts_nothing_twice(stack: Stack, alert: dict[str, Any]) -> None:
    scrape_s = float(yaml.safe_load(stack.prometheus.config.read_text())["global"]["scrape_interval"].rstrip("s"))
    both = {DRIFTING, STEADY}
    began = time.time()

    def owned(*workers: str) -> set[str]:
        return {model for worker in workers for model in stack.series(worker, "model_observations_total")}

    def away_until(done: Callable[[], bool]) -> float:
        """Wait; return the longest time in which a model was on no worker, as their /metrics say."""
        longest, since, deadline = 0.0, None, time.monotonic() + PATIENCE_S
        while since is not None or not done():
            now = time.monotonic()
            assert now < deadline, stack.log("worker-1") + stack.log("worker-2")
            if owned(*WORKERS) == both:
                since = None
            else:
                since = since or now
                longest = max(longest, now - since)
            time.sleep(0.1)
        return longest

    def scraped_since(at: float, n: int) -> bool:
        series = stack.prometheus.samples(RECORDED, time.time() - at)
        return {one.labels["model_id"] for one in series if len(one.points) >= n} == both

    stack.terminate("worker-1")
    away = [away_until(lambda: owned("worker-2") == both)]
    assert stack.wait("worker-1") == 0, stack.log("worker-1")
    moved = time.time()
    wait_for("it was scraped again", lambda: scraped_since(moved, 2), PATIENCE_S, every_s=0.5)
    stack.run("worker-1")
    away.append(away_until(lambda: len(owned("worker-1")) == len(owned("worker-2")) == 1))
    moved = time.time()
    wait_for("both were scraped again", lambda: scraped_since(moved, 2), PATIENCE_S, every_s=0.5)

    # No more observations: the workers come to the end, and Prometheus to what they say there.
    assert stack.stop("producer") == 0
    sent = times_sent(stack)
    at_end = {model: float(len(times)) for model, times in sent.items()}

    def recorded_now() -> dict[str, float]:
        return {one.labels["model_id"]: one.value for one in stack.prometheus.query(RECORDED)}

    wait_for("the recorded series are at the end", lambda: recorded_now() == at_end, PATIENCE_S, every_s=0.5)

    # A busy machine is late with all scrapes, also with those that find no model: that is no gap of the rebalance.
    scrapes = [
        [at for at, _ in series.points]
        for series in stack.prometheus.samples('up{job="attributary"}', time.time() - began + 2 * scrape_s)
    ]
    assert len(scrapes) == len(WORKERS)
    late_s = max(scrape_s, *(later - earlier for times in scrapes for earlier, later in pairwise(times)))
    for series in stack.prometheus.samples(RECORDED, time.time() - began + 2 * scrape_s):
        model, times = series.labels["model_id"], [at for at, _ in series.points]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        took = " and ".join(f"{move:.1f} s" for move in away)
        print(f"\n{model}: longest gap {max(gaps):.0f} s; scrapes up to {late_s:.1f} s apart; on no worker for {took}")
        # The time in which nobody has the model, two scrapes, and the evaluation of the rule.
        assert max(gaps) <= 3 * late_s + max(away)
        assert counts_nothing_twice(series, sent[model]) == []
        true_rate = (series.value - series.points[0][1]) / (times[-1] - times[0])
        (rate,) = stack.prometheus.query(f'{RATE}{{model_id="{model}"}}', at=times[-1])
        print(f"{model}: {rate.value:.0f} observations/s by the rule, {true_rate:.0f} by the topic")
        assert rate.value == pytest.approx(true_rate, rel=0.5), "counted twice it would be twice as much"


def test_what_falls_or_runs_ahead_is_seen() -> None:
    times = [1000, 2000, 3000]
    assert counts_nothing_twice(Series({}, [(1.0, 1.0), (2.5, 2.0), (3.0, 3.0), (4.0, 3.0)]), times) == []
    assert counts_nothing_twice(Series({}, [(1.0, 1.0), (2.5, 3.0)]), times) == [
        "says 3.0 at 2.5, when 2 had been sent"
    ]
    assert counts_nothing_twice(Series({}, [(3.0, 3.0), (4.0, 2.0)]), times) == ["falls from 3.0 to 2.0 at 4.0"]


def counts_nothing_twice(series: Series, times_ms: list[int]) -> list[str]:
    """Where the series falls, or says more than had been sent by then."""
    faults = []
    before = 0.0
    for at, value in series.points:
        if value < before:
            faults.append(f"falls from {before} to {value} at {at}")
        if value > bisect_right(times_ms, at * 1000 + 1):
            faults.append(f"says {value} at {at}, when {bisect_right(times_ms, at * 1000 + 1)} had been sent")
        before = value
    return faults


def times_sent(stack: Stack) -> dict[str, list[int]]:
    """Model id to the times of its observations in milliseconds."""
    times: dict[str, list[int]] = {}
    for record in read_all(stack.kafka.bootstrap, OBSERVATIONS):
        times.setdefault(record.key.decode(), []).append(record.timestamp)
    return {model: sorted(found) for model, found in times.items()}
