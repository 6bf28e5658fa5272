"""The rules in Prometheus' own tools: every alert fires and does not fire, and what is inhibited is."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest
from support.monitoring import Alertmanager, program, promtool
from support.waiting import wait_for

from attributary_agents.monitoring.metrics import registry
from attributary_agents.monitoring.rules import RULES_FILE, prometheus_rules
from tests.agents.monitoring.test_rules import ALERTS, severities
from tests.agents.monitoring.views import config_of, filled

ROOT = Path(__file__).resolve().parents[3]
ALERTMANAGER = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
CASES = ROOT / "deploy" / "prometheus" / "rules" / "tests"
pytestmark = pytest.mark.prometheus


def test_prometheus_takes_every_rule() -> None:
    checked = promtool("check", "rules", CASES.parent / RULES_FILE)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.long
def test_every_rule_does_as_its_cases_say() -> None:
    done = promtool("test", "rules", *sorted(CASES.glob("*.test.yml")))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == 4, "four files of cases"


THRESHOLDS = {
    "LabelsNotJoined": [("> 0.5", "> 1"), ("[1h]", "[2h]")],
    "PredictionMismatch": [("> 0.1\n", "> 0.05\n"), (">= 1000", ">= 2000")],
    "DeadLetters": [("> 0.01", "> 0.02"), ("[10m]", "[20m]")],
    "LagGrowing": [(">= 1000", ">= 2000")],
    "TransactionOpen": [("> 120", "> 240")],
    "CheckpointStale": [("> 600", "> 1200")],
    "ObservationsStopped": [("15m", "30m"), ("[1h]", "[2h]")],
    "VersionStuck": [("[10m]", "[20m]")],
}
"""By alert, thresholds and windows of its expression, and another value of each."""


def write_rules_and_cases(folder: Path, alert: str, before: str, after: str) -> Path:
    """Write the rules with another threshold of an alert, and its committed cases; return the file of the cases."""
    folder.mkdir()
    written = yaml.safe_load(prometheus_rules())["groups"]
    for group in written:
        group["rules"] = [rule for rule in group["rules"] if rule.get("alert", alert) == alert]
        for rule in group["rules"]:
            if "alert" in rule:
                assert before in rule["expr"]
                rule["expr"] = rule["expr"].replace(before, after)
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": written}))
    cases = []
    for case in (case for file in CASES.glob("*.test.yml") for case in yaml.safe_load(file.read_text())["tests"]):
        checks = [check for check in case.get("alert_rule_test", []) if check["alertname"] == alert]
        if checks:
            cases.append({**case, "alert_rule_test": checks, "promql_expr_test": []})
    order = [group["name"] for group in written]
    tests = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "group_eval_order": order, "tests": cases}
    (folder / "cases.test.yml").write_text(yaml.safe_dump(tests))
    return folder / "cases.test.yml"


@pytest.mark.long
def test_the_cases_fail_with_another_value_of_any_threshold(tmp_path: Path) -> None:
    changed = [(f"Attributary{name}", *values) for name, of_alert in THRESHOLDS.items() for values in of_alert]
    files = [write_rules_and_cases(tmp_path / str(n), *values) for n, values in enumerate(changed)]
    done = promtool("test", "rules", *files)
    assert [part.split()[0] for part in done.stdout.split("Unit Testing:") if "SUCCESS" in part] == []
    failed = done.stderr.split("  FAILED:\n")[1:]
    for said, (alert, *_) in zip(failed, changed, strict=True):
        assert f"alertname: {alert}," in said  # a case that fails, not a file that cannot be read


def test_the_exposition_is_lint_free() -> None:
    config = config_of("m", "n", explain={"budget": 0.5})
    text = generate_latest(registry(config, filled(config, {0: ["m"], 1: ["n"]}, n=200))).decode()
    checked = promtool("check", "metrics", text=text)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    worse = promtool("check", "metrics", text=text.replace("attributary_incidents_total", "attributary_incidents"))
    assert worse.returncode != 0, "so that there is something to see"


def test_the_example_of_alertmanager_is_taken_and_routes_what_there_is() -> None:
    checked = subprocess.run([program("amtool"), "check-config", ALERTMANAGER], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for name, alert in ALERTS.items():
        for severity in severities(alert):
            given = {**alert["labels"], "alertname": name, "severity": severity}
            labels = [f"{label}={value}" for label, value in given.items()]
            command = [program("amtool"), "config", "routes", "test", f"--config.file={ALERTMANAGER}", *labels]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "webhook"


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with Alertmanager(tmp_path_factory.mktemp("alertmanager"), ALERTMANAGER) as started:
        yield started


def tell(alertmanager: Alertmanager, job: str, *fired: tuple[str, dict[str, str], bool]) -> None:
    """Send alerts of one job: name, labels, and whether it is to be let through."""
    sent = [
        {"alertname": f"Attributary{name}", "job": job, **ALERTS[f"Attributary{name}"]["labels"], **labels}
        for name, labels, _ in fired
    ]
    body = json.dumps([{"labels": labels} for labels in sent]).encode()
    request = urllib.request.Request(f"{alertmanager.url}/api/v2/alerts", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).close()
    expected = {tuple(sorted(labels.items())): through for labels, (*_, through) in zip(sent, fired, strict=True)}

    def as_expected() -> bool:
        found = alertmanager.alerts(f'job="{job}"')
        through = {tuple(sorted(alert["labels"].items())): not alert["status"]["inhibitedBy"] for alert in found}
        return through == expected

    wait_for(f"{expected}", as_expected, 30)


CREDIT = {"model_id": "credit", "explainer": "pfi"}


def test_a_critical_fault_inhibits_what_it_brings_about(alertmanager: Alertmanager) -> None:
    topic = "attributary.observations.v1"
    tell(
        alertmanager,
        "fault",
        ("CheckpointStale", {"topic": topic, "partition": "3"}, True),
        ("LagGrowing", {"topic": topic, "partition": "3"}, False),
        ("LagGrowing", {"topic": topic, "partition": "4"}, True),
        ("ModelsRefused", {}, True),
        ("DeadLetters", {"topic": topic, "reason": "damaged_state"}, False),
        ("DeadLetters", {"topic": topic, "reason": "not_finite"}, True),
        ("SeriesDropped", {}, True),
        ("ObservationsStopped", {"model_id": "credit"}, True),
    )


def test_a_stuck_worker_explains_what_stands_still(alertmanager: Alertmanager) -> None:
    tell(
        alertmanager,
        "stuck",
        ("WorkerStuck", {"instance": "a"}, True),
        ("ObservationsStopped", {"model_id": "credit"}, False),
        ("ModelIncident", {"model_id": "credit", "severity": "critical"}, True),
    )


def test_a_broker_that_is_away_explains_what_stands_still(alertmanager: Alertmanager) -> None:
    place = {"topic": "attributary.observations.v1", "partition": "3"}
    tell(
        alertmanager,
        "away",
        ("BrokerAway", {"instance": "a"}, True),
        ("CheckpointStale", place, False),
        ("LagGrowing", place, False),
        ("TransactionOpen", place, False),
        ("ObservationsStopped", {"model_id": "credit"}, False),
        ("FiguresStale", CREDIT, True),
        ("WorkerStuck", {"instance": "b"}, True),
    )


def test_nothing_is_told_beside_that_no_worker_answers(tmp_path: Path) -> None:
    with Alertmanager(tmp_path, ALERTMANAGER) as alone:
        tell(
            alone,
            "all",
            ("WorkerDown", {"severity": "critical"}, True),
            ("WorkerDown", {"instance": "a", "severity": "warning"}, False),
            ("ModelIncident", {"model_id": "credit", "severity": "critical"}, False),
        )
