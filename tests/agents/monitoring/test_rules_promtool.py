"""The rules in Prometheus' own tools: every alert fires and does not fire, and what is inhibited is."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client import generate_latest
from support.monitoring import Alertmanager, program, promtool, wait_for

from attributary_agents.cli.main import cli
from attributary_agents.monitoring.rules.files import alerts, prometheus_text
from attributary_agents.monitoring.rules.options import RuleOptions, Thresholds
from attributary_agents.monitoring.rules.unit_tests import run_promtool
from attributary_agents.monitoring.web import registry
from tests.agents.monitoring.views import config_of, filled

ROOT = Path(__file__).resolve().parents[3]
ALERTMANAGER = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
pytestmark = pytest.mark.prometheus


def test_every_rule_does_as_its_cases_say() -> None:
    result = CliRunner().invoke(cli, ["rules", "test"])
    assert result.exit_code == 0, result.output
    assert result.output.count("SUCCESS") == 6, "the rules and five files of cases"


def test_a_rule_that_does_otherwise_is_told() -> None:
    good, said = run_promtool(RuleOptions(Thresholds(share_shift=0.5)), ["importance"])
    assert not good
    assert "AttributaryShareShifted" in said


def test_without_promtool_the_user_is_told_how_to_get_it() -> None:
    result = CliRunner().invoke(cli, ["rules", "test", "--promtool", "no-such-promtool"])
    assert "no-such-promtool is not installed" in str(result.exception)


def test_other_options_give_rules_that_prometheus_takes(tmp_path: Path) -> None:
    options = RuleOptions(Thresholds(baseline_margin=0.1, compare_with="1d"), job=r'a"b\.c|d', dashboard_base="")
    file = tmp_path / "rules.yml"
    file.write_text(prometheus_text(options))
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_exposition_is_lint_free() -> None:
    config = config_of("m", "n", explain={"budget": 0.5})
    text = generate_latest(registry(config, filled(config, {0: ["m"], 1: ["n"]}, n=200))).decode()
    checked = promtool("check", "metrics", text=text)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    worse = promtool("check", "metrics", text=text.replace("attributary_model_changes_total", "attributary_changes"))
    assert worse.returncode != 0, "so that there is something to see"


def test_the_example_of_alertmanager_is_taken_and_routes_what_there_is() -> None:
    checked = subprocess.run([program("amtool"), "check-config", ALERTMANAGER], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for alert in alerts(RuleOptions()):
        labels = [f"{name}={value}" for name, value in {**alert.labels, "alertname": alert.full_name}.items()]
        command = [program("amtool"), "config", "routes", "test", f"--config.file={ALERTMANAGER}", *labels]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "webhook"


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with Alertmanager(tmp_path_factory.mktemp("alertmanager"), ALERTMANAGER) as started:
        yield started


def tell(alertmanager: Alertmanager, job: str, *fired: tuple[str, dict[str, str], bool]) -> None:
    """Send alerts of one job: name, labels, and whether it is to be let through."""
    known = {alert.name: alert for alert in alerts(RuleOptions())}
    sent = [
        {"alertname": known[name].full_name, "job": job, **known[name].labels, **labels} for name, labels, _ in fired
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


CREDIT, CHURN = {"model_id": "credit", "explainer": "pfi"}, {"model_id": "churn", "explainer": "pfi"}


def test_a_change_inhibits_what_it_explains_of_the_same_model(alertmanager: Alertmanager) -> None:
    tell(
        alertmanager,
        "change",
        ("ChangeDetected", {"model_id": "credit", "route": "detector"}, True),
        ("ShareShifted", CREDIT, False),
        ("FeatureSurged", {**CREDIT, "feature": "age"}, False),
        ("WorseThanBaseline", {"model_id": "credit"}, True),
        ("ShareShifted", CHURN, True),
    )


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
        ("ShareShifted", CREDIT, True),
    )


def test_nothing_is_told_beside_that_no_worker_answers(tmp_path: Path) -> None:
    with Alertmanager(tmp_path, ALERTMANAGER) as alone:
        tell(
            alone,
            "all",
            ("Down", {}, True),
            ("WorkerDown", {"instance": "a"}, False),
            ("ChangeDetected", CREDIT, False),
        )
