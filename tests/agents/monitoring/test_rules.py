"""The rules without Prometheus: every name in them exists, every alert is complete, the copies are current."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.config.settings import Config
from attributary_agents.errors import AttributaryError
from attributary_agents.monitoring.metrics import EXPORTED
from attributary_agents.monitoring.rules import KUBERNETES_FILE, RULES_FILE, kubernetes_rule, prometheus_rules

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "rules"
CASE_FILES = sorted((RULES / "tests").glob("*.test.yml"))
GROUPS: list[Any] = yaml.safe_load(prometheus_rules())["groups"]
RULES_OF = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES_OF if "alert" in rule}
RECORDINGS = [rule for rule in RULES_OF if "record" in rule]
TARGET = {"job", "instance", "pod"}
"""Labels of every series, which Prometheus adds."""


@cache
def cases() -> list[Any]:
    """By case what promtool checks of the alerts: the moment, the alert, and how often it fires then."""
    read = [yaml.safe_load(file.read_text()) for file in CASE_FILES]
    return [case.get("alert_rule_test", []) for of_file in read for case in of_file["tests"]]


def parts(node: Any) -> list[Any]:
    """The expressions directly within an expression."""
    named = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "vector_selector")]
    return [part for part in [*named, *getattr(node, "args", [])] if part is not None]


def series_of(node: Any) -> list[tuple[str, set[str]]]:
    """The name of every series in an expression, with the labels that are matched."""
    if isinstance(node, promql_parser.VectorSelector):
        return [(node.name, {matcher.name for matcher in node.matchers.matchers})]
    return [found for part in parts(node) for found in series_of(part)]


def labels_said(node: Any) -> set[str]:
    """The labels that aggregations and matchings of an expression name."""
    found: set[str] = set()
    if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
        found |= set(node.modifier.labels)
    if isinstance(node, promql_parser.BinaryExpr) and node.modifier:
        found |= set(re.findall(r"\w+", re.sub(r"\w+ \(", "(", str(node.modifier)))) - {"bool"}
    return found.union(*map(labels_said, parts(node)))


def known_series() -> dict[str, set[str]]:
    """Everything that a rule may name, with its labels."""
    known = {f"attributary_{name}": {*labels} | TARGET for name, (_, labels) in EXPORTED.items()}
    known["up"] = TARGET
    for recording in RECORDINGS:
        (name,) = {name for name, _ in series_of(promql_parser.parse(recording["expr"]))}
        known[recording["record"]] = known[name] - {"instance", "pod"}
    return known


EXPRESSIONS = [rule["expr"] for rule in RULES_OF]


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_every_series_and_label_in_an_expression_exists(expr: str) -> None:
    known = known_series()
    parsed = promql_parser.parse(expr)
    found = series_of(parsed)
    assert found
    for name, matched in found:
        assert name in known, f"{name} is neither in the catalogue nor recorded"
        assert matched <= known[name], f"{name} has no label {matched - known[name]}"
    assert labels_said(parsed) <= set.union(*(known[name] for name, _ in found))


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_every_query_in_a_text_names_what_exists(alert: Any) -> None:
    known = known_series()
    text = " ".join(alert["annotations"].values())
    queries = re.findall(r'with printf "([^"]+)" ([^|]+) \| query', text)
    assert len(queries) == text.count("| query }}")
    for query, values in queries:
        labels = re.findall(r"\$labels\.(\w+)", values)
        assert query.count("%q") == len(labels)
        assert re.findall(r"(\w+)=%q", query) == labels
        for name, matched in series_of(promql_parser.parse(query.replace("%q", '"x"'))):
            assert matched <= known[name]


def test_every_recorded_series_is_read_and_no_name_is_given_twice() -> None:
    names = [recording["record"] for recording in RECORDINGS]
    assert len(names) == len(set(names))
    read = {name for alert in ALERTS.values() for name, _ in series_of(promql_parser.parse(alert["expr"]))}
    texts = [text for alert in ALERTS.values() for text in alert["annotations"].values()]
    asked = {name for text in texts for name in re.findall(r"[\w]+:attributary_\w+:\w+", text)}
    from_each_other = {name for r in RECORDINGS for name, _ in series_of(promql_parser.parse(r["expr"]))}
    rates = {name for name in names if name.endswith(":rate5m")}
    assert asked <= set(names)
    assert set(names) - rates == (read | asked | from_each_other) & set(names)


def test_no_rule_takes_a_counter_that_goes_back_for_one_that_was_restarted() -> None:
    for expr in EXPRESSIONS:
        assert not re.search(r"\b(i?rate|increase|resets)\(", expr), expr


def severities(alert: Any) -> set[str]:
    """Its own, or those that its expression gives: of the alert about incidents, all."""
    if severity := alert["labels"].get("severity"):
        return {severity}
    return set(re.findall(r'"severity", "(\w+)"', alert["expr"])) or {"critical", "warning", "info"}


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_every_alert_is_complete(alert: Any) -> None:
    rule = alert
    assert re.fullmatch(r"\d+[smh]", rule["for"])
    assert severities(alert) <= {"info", "warning", "critical"}
    assert ("severity" in rule["labels"]) == (len(severities(alert)) == 1)
    assert rule["labels"]["area"] in {"incident", "quality", "operations"}
    for name in ("summary", "description", "runbook_url", "dashboard_url"):
        assert rule["annotations"][name].strip()
    assert len(re.sub(r"\{\{.*?\}\}", "", rule["annotations"]["summary"])) < 80


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_every_alert_has_a_case_that_fires_and_one_that_does_not(alert: Any) -> None:
    checks = [[bool(check["exp_alerts"]) for check in case if check["alertname"] == alert["alert"]] for case in cases()]
    fires = [fired for fired in checks if fired]
    assert any(map(any, fires))
    # Not merely "not yet": somewhere it does not fire at all.
    assert any(not any(fired) for fired in fires)


def test_the_cases_know_no_other_alert() -> None:
    assert {check["alertname"] for case in cases() for check in case} == set(ALERTS)


@pytest.mark.parametrize("file", CASE_FILES, ids=lambda file: file.stem)
def test_the_cases_are_of_the_exported_rules_in_their_order(file: Path) -> None:
    read = yaml.safe_load(file.read_text())
    assert [(file.parent / rules).resolve() for rules in read["rule_files"]] == [RULES / RULES_FILE]
    assert read["group_eval_order"] == [group["name"] for group in GROUPS]
    for check in (check for test in read["tests"] for check in test.get("alert_rule_test", [])):
        for expected in check["exp_alerts"]:
            assert ALERTS[check["alertname"]]["labels"].items() <= expected["exp_labels"].items()
            assert expected["exp_labels"]["severity"] in severities(ALERTS[check["alertname"]])


def test_what_is_committed_is_current() -> None:
    """UPDATE: attributary rules export --out deploy/prometheus/rules; --format kubernetes --out deploy/kubernetes."""
    assert (RULES / RULES_FILE).read_text() == prometheus_rules()
    assert (DEPLOY / "kubernetes" / KUBERNETES_FILE).read_text() == kubernetes_rule(prometheus_rules())
    found = {str(path.relative_to(RULES)) for path in RULES.rglob("*.yml")}
    assert found == {RULES_FILE, *(f"tests/{file.name}" for file in CASE_FILES)}


def test_the_prometheusrule_has_the_same_groups() -> None:
    resource = yaml.safe_load(kubernetes_rule(prometheus_rules()))
    assert (resource["apiVersion"], resource["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", resource["metadata"]["name"])
    assert resource["spec"] == yaml.safe_load(prometheus_rules())
    allowed = {"alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"}
    for group in resource["spec"]["groups"]:
        assert group.keys() == {"name", "rules"}
        for rule in group["rules"]:
            assert rule.keys() <= allowed
            values = [*rule.get("labels", {}).values(), *rule.get("annotations", {}).values()]
            assert all(isinstance(value, str) for value in values)
            assert ("alert" in rule) != ("record" in rule)


def export(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["rules", "export", *arguments])


def test_export_prints_or_writes(tmp_path: Path) -> None:
    assert export().stdout == prometheus_rules()
    assert export("--out", str(tmp_path)).exit_code == 0
    assert (tmp_path / RULES_FILE).read_text() == prometheus_rules()
    assert [path.name for path in tmp_path.iterdir()] == [RULES_FILE]
    assert export("--format", "kubernetes", "--out", str(tmp_path / "k8s")).exit_code == 0
    assert (tmp_path / "k8s" / KUBERNETES_FILE).read_text() == kubernetes_rule(prometheus_rules())


def test_links_begin_as_asked() -> None:
    bases = ("--runbook-base", "https://wiki.example/runbooks/", "--dashboard-base", "https://grafana.example")
    printed = export(*bases, "--page-base", "https://models.example/").stdout
    (links,) = (
        rule["annotations"]
        for group in yaml.safe_load(printed)["groups"]
        for rule in group["rules"]
        if rule.get("alert") == "AttributaryModelIncident"
    )
    assert links["runbook_url"] == "https://wiki.example/runbooks/AttributaryModelIncident.md"
    assert links["dashboard_url"].startswith("https://grafana.example/d/attributary-model?var-model_id=")
    assert re.fullmatch(r"https://models\.example/\{\{ with .*incidents/\{\{ .* \}\}\{\{ end \}\}", links["page_url"])
    assert "localhost" not in printed
    assert {name for name, alert in ALERTS.items() if "page_url" in alert["annotations"]} == {
        "AttributaryModelIncident"
    }


def test_an_export_says_which_links_nobody_has_set() -> None:
    assert export().stderr.splitlines() == [
        "no --page-base: alerts link to http://localhost:6080",
        "no --runbook-base: alerts link to docs/runbooks",
    ]
    assert export("--page-base", "https://models.example", "--runbook-base", "https://wiki.example").stderr == ""


def test_export_refuses_a_folder_that_cannot_be_written() -> None:
    assert isinstance(export("--out", __file__).exception, AttributaryError)


RUNBOOKS = ROOT / "docs" / "runbooks"


def test_every_alert_has_a_runbook_and_there_are_no_others() -> None:
    for name, alert in ALERTS.items():
        page = ROOT / alert["annotations"]["runbook_url"]
        title, *_ = page.read_text().splitlines()
        assert title == f"# {name}"
        assert re.findall(r"^## (.*)", page.read_text(), flags=re.MULTILINE) == ["Look at", "Do"]
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(ALERTS)


def test_the_table_of_alerts_is_that_of_the_rules() -> None:
    text = (ROOT / "docs" / "alerts.md").read_text()
    rows = re.findall(
        r"^\| \[`(\w+)`\]\(runbooks/(\w+)\.md\) \| (\w+) \| ([\w, ]+) \| (\w+) \| .+ \|$", text, flags=re.MULTILINE
    )
    assert [(*row[:3], {*row[3].split(", ")}, row[4]) for row in rows] == [
        (name, name, a["labels"]["area"], severities(a), a["for"]) for name, a in ALERTS.items()
    ]


@pytest.mark.parametrize(
    "page", [ROOT / "docs" / "alerts.md", *sorted(RUNBOOKS.glob("*.md"))], ids=lambda page: page.stem
)
def test_links_and_names_in_the_pages_are_right(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).is_file(), link
    for link, anchor in re.findall(r"\]\(([^)#:]+)#([^)]*)\)", text):
        heads = re.findall(r"^#+ (.*)", (page.parent / link).read_text(), flags=re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
    for name in re.findall(r"\b(?<!:)attributary_[a-z_]+", text):
        assert name.removeprefix("attributary_") in EXPORTED, name
    for first, second in re.findall(r"`attributary ([a-z]+)(?: ([a-z]+))?", text):
        command: Any = cli.commands[first]
        assert not hasattr(command, "commands") or second in command.commands, (first, second)
    config = set(
        re.findall(r"`((?:change|publish|explain|watchdog|web|kafka|metrics|state|checkpoint)\.[a-z_]+)", text)
    )
    schema = str(Config.model_json_schema())
    for name in config:
        assert f"'{name.split('.')[1]}'" in schema, name
