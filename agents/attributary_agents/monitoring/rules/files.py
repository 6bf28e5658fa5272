"""Collects all rules, and writes them as files."""

from __future__ import annotations

from typing import Any

import yaml

from .alerts import Alert
from .incident import incident_alerts
from .operations import operations_alerts
from .options import RuleOptions
from .quality import quality_alerts
from .recorded import recordings

RULES_FILE = "attributary.rules.yml"
KUBERNETES_FILE = "prometheusrule.yaml"

_HEAD = (
    "# Written by `attributary rules export`; needs Prometheus 2.42 or later. What the alerts mean: docs/alerts.md\n"
)


def alerts(options: RuleOptions) -> list[Alert]:
    """Return every alert, area by area."""
    return [*incident_alerts(), *quality_alerts(options.thresholds), *operations_alerts(options)]


def groups(options: RuleOptions) -> list[dict[str, Any]]:
    """Return the group of recording rules, then a group of alerts for each area."""
    found: dict[str, list[dict[str, object]]] = {}
    for alert in alerts(options):
        found.setdefault(alert.area, []).append(alert.rule(options))
    recorded = {
        "name": "attributary-recorded",
        "rules": [recording.rule() for recording in recordings(options.worker_labels)],
    }
    return [recorded, *({"name": f"attributary-{area}", "rules": rules} for area, rules in found.items())]


def prometheus_text(options: RuleOptions) -> str:
    """Return the text of a rule file."""
    return _HEAD + to_yaml({"groups": groups(options)})


def kubernetes_text(options: RuleOptions) -> str:
    """Return the text of a PrometheusRule for the Prometheus Operator, with the same rules."""
    return _HEAD + to_yaml(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": "attributary", "labels": {"app.kubernetes.io/name": "attributary"}},
            "spec": {"groups": groups(options)},
        }
    )


def to_yaml(data: Any) -> str:
    """Return YAML in the order given, with text of several lines as blocks."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated parts out: not everything that reads rules knows anchors."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
