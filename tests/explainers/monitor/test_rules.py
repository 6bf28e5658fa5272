"""The shipped rules fire on what a service with a monitor exports."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from prometheus_client import CollectorRegistry
from river import tree
from support.monitoring import promtool

from attributary_agents.monitoring.rules import RULES_FILE
from attributary_explainers import Monitor
from tests.explainers.monitor.test_monitor import credit

RULES = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "rules" / RULES_FILE
pytestmark = [pytest.mark.long, pytest.mark.prometheus]

PER_MINUTE = 50
QUIET_MINUTES = 30


def test_the_rule_of_incidents_fires_on_a_monitor(tmp_path: Path) -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=50)
    monitor = Monitor(in_background=False).add("credit", model, learn=True, change={"window": 100})
    registry = CollectorRegistry()
    registry.register(monitor.collector)
    series: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    data, n_minutes, told = credit(4000), 0, dict[str, dict[str, str]]()
    found, since = 0, 0.0
    for n, (x, y) in enumerate(data, start=1):
        monitor.observe("credit", x, y, time_ms=n * 60_000 // PER_MINUTE)
        if n % PER_MINUTE:
            continue
        for family in registry.collect():
            for one in family.samples:
                if not one.name.endswith("_created"):
                    values = series[one.name, tuple(sorted(one.labels.items()))]
                    values += ["_"] * (n_minutes - len(values)) + [repr(one.value)]
                if one.name.startswith("attributary_incident_") and found in (0, n_minutes):
                    found, told[one.name.rpartition("_")[2]] = n_minutes, one.labels
                    since = one.value if one.name.endswith("_since_timestamp_seconds") else since
        n_minutes += 1
    assert found > QUIET_MINUTES, "the stream has to have its change in the second half"
    case = {
        "name": "an incident in a service",
        "interval": "1m",
        "input_series": [
            {"series": f"{name}{_matched(labels)}", "values": " ".join(values)}
            for (name, labels), values in series.items()
        ],
        "alert_rule_test": [
            {"eval_time": f"{found - 1}m", "alertname": "AttributaryModelIncident", "exp_alerts": []},
            {
                "eval_time": f"{found}m",
                "alertname": "AttributaryModelIncident",
                "exp_alerts": [_alert(told["open"], told["info"], since)],
            },
        ],
    }
    groups = [group["name"] for group in yaml.safe_load(RULES.read_text())["groups"]]  # else promtool takes any order
    tests = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "group_eval_order": groups, "tests": [case]}
    (tmp_path / "service.test.yml").write_text(yaml.safe_dump(tests))
    done = promtool("test", "rules", tmp_path / "service.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def _matched(labels: tuple[tuple[str, str], ...]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in (("job", "bank"), ("instance", "a"), *labels)) + "}"


def _alert(opened: dict[str, str], info: dict[str, str], since: float) -> dict[str, Any]:
    committed = yaml.safe_load((RULES.parent / "tests" / "incident.test.yml").read_text())
    firing = next(one for one in committed["tests"][0]["alert_rule_test"] if one["exp_alerts"])["exp_alerts"][0]
    alert: dict[str, Any] = {name: dict(values) for name, values in firing.items()}
    alert["exp_labels"] |= {"job": "bank", "severity": opened["severity"]}
    texts = alert["exp_annotations"]
    texts["summary"] = f"{info['headline']}. {info['action']}"
    moment = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
    texts["description"] = f"Began {moment} +0000 UTC. {info['details']}"
    texts["page_url"] = f"http://localhost:6080/incidents/{quote(info['id'], safe='')}"
    return alert
