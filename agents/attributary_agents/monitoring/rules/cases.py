"""Unit tests of the rules, for `promtool test rules`: what a case is, and the files that they are written into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .alerts import Alert
from .files import RULES_FILE, alerts, groups, to_yaml
from .options import RuleOptions

_HEAD = (
    "# Written by `attributary rules export --tests`. Run it with `attributary rules test`, or promtool test rules.\n"
)


@dataclass(frozen=True)
class Fires:
    """An alert that is expected: the labels of its series, and its text."""

    labels: dict[str, str]
    summary: str
    description: str
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Series, a sample each minute from 0 on, and what the rules make of them.

    Attributes
    ----------
    alerts
        By moment and name, without the prefix, the alerts that fire then; none: it does not fire.
    values
        By moment and expression, the values by their series.
    """

    title: str
    series: dict[str, str]
    alerts: dict[tuple[str, str], list[Fires]] = field(default_factory=dict)
    values: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)


def series(name: str, instance: str = "a", job: str = "attributary", **labels: str) -> str:
    """A series as a worker shows it.

    Examples
    --------
    >>> series("model_loss", model_id="credit")
    'attributary_model_loss{job="attributary", instance="a", model_id="credit"}'
    """
    return selector(f"attributary_{name}", job=job, instance=instance, **labels)


def selector(name: str, **labels: str) -> str:
    """A series by its name and labels.

    Examples
    --------
    >>> selector("up", job="x")
    'up{job="x"}'
    """
    inner = ", ".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inner}}}"


def cases_text(cases: Iterable[Case], options: RuleOptions, rules: str = f"../{RULES_FILE}") -> str:
    """A file for `promtool test rules`."""
    known = {alert.name: alert for alert in alerts(options)}
    order = [group["name"] for group in groups(options)]
    tests = [_test(case, known, options) for case in cases]
    return _HEAD + to_yaml(
        {"rule_files": [rules], "evaluation_interval": "1m", "group_eval_order": order, "tests": tests}
    )


def _test(case: Case, known: dict[str, Alert], options: RuleOptions) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": case.title,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
    }
    if case.alerts:
        test["alert_rule_test"] = [
            {
                "eval_time": moment,
                "alertname": known[name].full_name,
                "exp_alerts": [_expected(known[name], fires, options) for fires in found],
            }
            for (moment, name), found in case.alerts.items()
        ]
    if case.values:
        test["promql_expr_test"] = [
            {
                "eval_time": moment,
                "expr": expr,
                "exp_samples": [{"labels": labels, "value": value} for labels, value in found.items()],
            }
            for (moment, expr), found in case.values.items()
        ]
    return test


def _expected(alert: Alert, fires: Fires, options: RuleOptions) -> dict[str, Any]:
    model_id = fires.labels.get("model_id", "")
    texts = {"summary": fires.summary, "description": fires.description, **fires.annotations}
    return {
        "exp_labels": {**fires.labels, **alert.labels},
        "exp_annotations": {**texts, **alert.links(options, model_id)},
    }
