"""The test support for Prometheus and Alertmanager: an alert arrives, a wrong query fails, what is missing is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support import monitoring
from support.monitoring import (
    Alertmanager,
    MonitoringError,
    MonitoringMissingError,
    Prometheus,
    promtool,
    require_programs,
)
from support.waiting import wait_for

ALERT = {"alert": "Always", "expr": 'one:sum{job!="x"} > 0', "labels": {"model_id": "m"}}
RULES = {"groups": [{"name": "always", "rules": [{"record": "one:sum", "expr": "vector(1)"}, ALERT]}]}


@pytest.mark.long
@pytest.mark.prometheus
def test_a_rule_is_evaluated_recorded_and_its_alert_arrives(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(yaml.safe_dump(RULES))
    assert promtool("check", "rules", rules).returncode == 0
    with Alertmanager(tmp_path) as alertmanager:
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]},
        }
        with Prometheus(tmp_path, config) as prometheus:
            (alert,) = wait_for("the alert arrives", lambda: alertmanager.alerts('alertname="Always"'), 60)
            assert alert["labels"]["model_id"] == "m"
            assert {rule["name"]: rule["health"] for rule in prometheus.rules()} == {"one:sum": "ok", "Always": "ok"}
            assert [found["state"] for found in prometheus.alerts()] == ["firing"]
            (series,) = wait_for("a sample is there", lambda: prometheus.samples("one:sum", 60), 60)
            ((at, value), *_) = series.points
            assert value == prometheus.query("one:sum", at)[0].value == 1.0
            assert prometheus.query("scalar(one:sum) + 1", at)[0].value == 2.0
            assert prometheus.query_range("one:sum * 2", at, at, 1)[0].points == [(at, 2.0)]
            assert prometheus.query("two:sum") == []
            with pytest.raises(MonitoringError, match="parse error"):
                prometheus.query("sum(")
    assert not alertmanager._is_ready()
    assert not prometheus._is_ready()


@pytest.mark.prometheus
def test_a_configuration_that_is_wrong_is_told_with_the_log(tmp_path: Path) -> None:
    with pytest.raises(MonitoringError, match="field nonsense not found"):
        Prometheus(tmp_path, {"nonsense": 1}).start()


def test_what_is_missing_is_named_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring.shutil, "which", lambda name: None if "alert" in name else name)
    with pytest.raises(MonitoringMissingError, match=r"alertmanager is not installed: .* prometheus-alertmanager"):
        require_programs()
