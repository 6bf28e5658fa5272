"""Export of the packaged recording and alerting rules for Prometheus."""

from __future__ import annotations

from importlib.resources import files
from textwrap import indent

RULES_FILE = "attributary.rules.yml"
KUBERNETES_FILE = "prometheusrule.yaml"
PAGE_BASE, RUNBOOK_BASE, DASHBOARD_BASE = "http://localhost:6080", "docs/runbooks", "http://localhost:3000"
"""Links of the alerts in the package begin so."""

_RULE = """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: attributary
  labels:
    app.kubernetes.io/name: attributary
spec:
"""


def prometheus_rules(
    page_base: str = PAGE_BASE, runbook_base: str = RUNBOOK_BASE, dashboard_base: str = DASHBOARD_BASE
) -> str:
    """Return the text of the rule file, with links that begin so."""
    text = (files(__package__) / "prometheus" / RULES_FILE).read_text(encoding="utf-8")
    for before, now in ((PAGE_BASE, page_base), (RUNBOOK_BASE, runbook_base), (DASHBOARD_BASE, dashboard_base)):
        text = text.replace(f"_url: {before}/", f"_url: {now.rstrip('/')}/")
    return text


def kubernetes_rule(rules: str) -> str:
    """Return the rules as a PrometheusRule of the Prometheus Operator."""
    return _RULE + indent(rules, "  ")
