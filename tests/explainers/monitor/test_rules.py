"""The shipped rules fire on what a service with a monitor exports."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from river import tree
from support.monitoring import promtool

from attributary_agents.monitoring.rules.files import RULES_FILE
from attributary_explainers import Monitor
from tests.explainers.monitor.test_monitor import credit

RULES = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "rules" / RULES_FILE
pytestmark = [pytest.mark.long, pytest.mark.prometheus]

PER_MINUTE = 50
QUIET_MINUTES = 30


def test_the_rule_of_changes_fires_on_a_monitor(tmp_path: Path) -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=50)
    monitor = Monitor(in_background=False).add("credit", model, learn=True, change={"window": 100})
    registry = CollectorRegistry()
    registry.register(monitor.collector)
    series: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    data, n_minutes, found = credit(4000), 0, (0, "", "")
    for n, (x, y) in enumerate(data, start=1):
        monitor.observe("credit", x, y, time_ms=n * 60_000 // PER_MINUTE)
        if n % PER_MINUTE:
            continue
        for family in registry.collect():
            for one in family.samples:
                if not one.name.endswith("_created"):
                    values = series[one.name, tuple(sorted(one.labels.items()))]
                    values += ["_"] * (n_minutes - len(values)) + [repr(one.value)]
                is_change = one.name == "attributary_model_changes_total" and one.labels["verdict"] != "matured"
                if is_change and one.value and not found[0]:
                    found = n_minutes, one.labels["route"], one.labels["verdict"]
        n_minutes += 1
    at, route, verdict = found
    assert at > QUIET_MINUTES, "the stream has to have its change in the second half"
    case = {
        "name": "a change in a service",
        "interval": "1m",
        "input_series": [
            {"series": f"{name}{_matched(labels)}", "values": " ".join(values)}
            for (name, labels), values in series.items()
        ],
        "alert_rule_test": [
            {"eval_time": f"{at - 1}m", "alertname": "AttributaryChangeDetected", "exp_alerts": []},
            {"eval_time": f"{at}m", "alertname": "AttributaryChangeDetected", "exp_alerts": [_alert(route, verdict)]},
        ],
    }
    groups = [group["name"] for group in yaml.safe_load(RULES.read_text())["groups"]]  # else promtool takes any order
    tests = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "group_eval_order": groups, "tests": [case]}
    (tmp_path / "service.test.yml").write_text(yaml.safe_dump(tests))
    done = promtool("test", "rules", tmp_path / "service.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def _matched(labels: tuple[tuple[str, str], ...]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in (("job", "bank"), ("instance", "a"), *labels)) + "}"


def _alert(route: str, verdict: str) -> dict[str, Any]:
    committed = yaml.safe_load((RULES.parent / "tests" / "change.test.yml").read_text())
    firing = next(one for one in committed["tests"][0]["alert_rule_test"] if one["exp_alerts"])["exp_alerts"][0]
    said = yaml.safe_dump(firing)
    said = said.replace("route: detector", f"route: {route}").replace("raised by: detector", f"raised by: {route}")
    said = said.replace("verdict: followed", f"verdict: {verdict}").replace("job: attributary", "job: bank")
    alert: dict[str, Any] = yaml.safe_load(said)
    return alert
