"""The Grafana dashboards: that the files are current, what stands in them, and that Grafana can read it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.monitoring.dashboards import dashboards, provisioning
from attributary_agents.monitoring.metrics import EXPORTED
from tests.grafana import panels

ROOT = Path(__file__).resolve().parents[3]
PACKAGED = ROOT / "agents" / "attributary_agents" / "monitoring" / "grafana"
BOARDS: dict[str, dict[str, Any]] = {name: json.loads(text) for name, text in dashboards().items()}
OF_GRAFANA = {"__interval", "__interval_ms", "__range", "__rate_interval", "__url_time_range", "__value"}
OF_PROMETHEUS = {
    "up": (),
    "process_resident_memory_bytes": (),
    "process_cpu_seconds_total": (),
    "process_start_time_seconds": (),
    "ALERTS": ("alertname", "alertstate", "severity", "model_id"),
}
each = pytest.mark.parametrize("board", BOARDS.values(), ids=[name.removesuffix(".json") for name in BOARDS])


def catalogued(name: str) -> tuple[str, tuple[str, ...]]:
    """Return help text and labels of a metric, with or without the prefix; a histogram also by its parts."""
    short = name.removeprefix("attributary_")
    if short in EXPORTED:
        return EXPORTED[short]
    text, labels = EXPORTED[re.sub("_(bucket|sum|count)$", "", short)]
    return text, (*labels, "le") if short.endswith("_bucket") else labels


def queries(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Where it stands, and the query."""
    for panel in panels(board):
        for target in panel.get("targets", []):
            yield f"{panel['title']} {target['refId']}", target["expr"]
    for annotation in board["annotations"].get("list", []):
        yield annotation["name"], annotation["expr"]
        yield annotation["name"], annotation["target"]["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"(?:label_values\((.*), \w+\)|query_result\((.*)\))", variable["query"])
            assert asked is not None, variable["query"]
            yield variable["name"], asked[1] or asked[2]


def parsed(expr: str) -> promql_parser.Expr:
    """The query with every variable filled in; times as times, a moment as a number."""
    filled = expr.replace("$__interval_ms", "60000").replace("$change", "1700000000.5")
    filled = re.sub(r"\$(__interval|__range|__rate_interval|before)\b", "1m", filled)
    return promql_parser.parse(re.sub(r"\$\w+", "x", filled))


def test_the_command_copies_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["dashboards", "export", "--out", str(tmp_path / "a")])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [str(tmp_path / "a" / "dashboards" / name) for name in BOARDS]
    assert {path.name: path.read_text() for path in (tmp_path / "a" / "dashboards").iterdir()} == dashboards()
    assert not (tmp_path / "a" / "provisioning").exists()
    done = CliRunner().invoke(cli, ["dashboards", "export", "--out", str(tmp_path / "b"), "--provisioning"])
    written = [path for path in (tmp_path / "b").rglob("*") if path.is_file()]
    assert sorted(done.stdout.splitlines()) == sorted(map(str, written))
    assert {str(path.relative_to(PACKAGED)) for path in PACKAGED.rglob("*") if path.is_file()} == {
        str(path.relative_to(tmp_path / "b")) for path in written
    }
    for path in written:
        assert path.read_text() == (PACKAGED / path.relative_to(tmp_path / "b")).read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(cli, ["dashboards", "export", "--out", str(tmp_path / "file")])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr


def test_uids_are_stable() -> None:
    assert {name: board["uid"] for name, board in BOARDS.items()} == {
        "attributary-fleet.json": "attributary-fleet",
        "attributary-model.json": "attributary-model",
        "attributary-operations.json": "attributary-operations",
    }
    assert len({board["title"] for board in BOARDS.values()}) == 3


@each
def test_panels_do_not_overlap_and_each_has_an_id_of_its_own(board: dict[str, Any]) -> None:
    assert max(Counter(panel["id"] for panel in board["panels"]).values()) == 1
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] >= 0
        assert at["x"] + at["w"] <= 24, panel["title"]
    for one, other in combinations(board["panels"], 2):
        a, b = one["gridPos"], other["gridPos"]
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or above, (one["title"], other["title"])


@each
def test_a_panel_says_what_it_shows_in_which_unit_and_what_it_means_that_there_is_nothing(
    board: dict[str, Any],
) -> None:
    titles = Counter(panel["title"] for panel in panels(board))
    assert max(titles.values()) == 1
    for panel in panels(board):
        assert panel["title"]
        if panel["type"] == "text":
            assert panel["options"]["content"]
            continue
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["description"], panel["title"]
        assert defaults["unit"], panel["title"]
        assert defaults["noValue"], panel["title"]
        steps = [step["value"] for step in defaults["thresholds"]["steps"]]
        assert steps[0] is None
        assert steps[1:] == sorted(steps[1:])
        assert panel["targets"], panel["title"]
        assert [target["refId"] for target in panel["targets"]] == [*"ABCDEFGHIJKLMNOPQRS"][: len(panel["targets"])]
        for metric in {name for t in panel["targets"] for name in re.findall(r"\battributary_\w+", t["expr"])}:
            assert f"`{metric}`: {catalogued(metric)[0]}" in panel["description"]


@each
def test_everything_asks_the_data_source_that_is_chosen(board: dict[str, Any]) -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert board["templating"]["list"][0]["name"] == "datasource"
    assert board["templating"]["list"][0]["query"] == "prometheus"
    asking = [*panels(board), *board["annotations"].get("list", [])]
    asking += [target for panel in panels(board) for target in panel.get("targets", [])]
    asking += [variable for variable in board["templating"]["list"] if variable["type"] == "query"]
    for one in asking:
        if one.get("type") != "text":
            assert one["datasource"] == source


@each
def test_variables_are_defined_and_in_the_order_in_which_they_need_each_other(board: dict[str, Any]) -> None:
    known = {"datasource"}
    for variable in board["templating"]["list"]:
        used = {a or b for a, b in re.findall(r"\$\{(\w+)|\$(\w+)", variable["query"])}
        assert used <= known, variable["name"]
        known.add(variable["name"])
        if variable["type"] == "query":
            assert variable["refresh"] == 2, "else models that appear later are not seen"
    for place, text in [*queries(board), *texts(board)]:
        used = {(a or b) for a, b in re.findall(r"\$\{(\w+)|\$(\w+)", text)}
        assert used <= known | OF_GRAFANA, place


def texts(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for panel in panels(board):
        yield (
            panel["title"],
            " ".join((panel["title"], panel.get("description", ""), str(panel["options"].get("content")))),
        )
        for override in panel.get("fieldConfig", {}).get("overrides", []):
            yield panel["title"], json.dumps(override["properties"])


@each
def test_a_variable_of_several_values_is_matched_as_a_regular_expression(board: dict[str, Any]) -> None:
    multi = {variable["name"]: variable["multi"] for variable in board["templating"]["list"]}
    for place, expr in queries(board):
        for label, operator, name in re.findall(r'(\w+)(=~|!~|!=|=)"\$(\w+)"', expr):
            assert operator == ("=~" if multi[name] else "="), (place, label)


@each
def test_every_query_parses_and_names_only_what_there_is(board: dict[str, Any]) -> None:
    for place, expr in queries(board):
        found: list[Any] = []
        promql_parser.walk(parsed(expr), pre_visit=lambda node, found=found: found.append(node))
        selectors = [node for node in found if isinstance(node, promql_parser.VectorSelector)]
        assert selectors or "vector(" in expr, place
        known: set[str] = set()
        for selector in selectors:
            assert isinstance(selector.name, str), place
            labels = OF_PROMETHEUS.get(selector.name)
            if labels is None:
                assert selector.name.startswith("attributary_"), (place, selector.name)
                labels = catalogued(selector.name)[1]
            known |= {*labels, "job", "instance"}
            for matcher in selector.matchers.matchers:
                assert matcher.name in {*labels, "job", "instance"}, (place, str(matcher))
        for aggregate in (node for node in found if isinstance(node, promql_parser.AggregateExpr)):
            if aggregate.modifier is not None:
                assert aggregate.modifier.type == promql_parser.AggModifierType.By, place
                assert set(aggregate.modifier.labels) <= known, (place, aggregate.modifier.labels)


@each
def test_series_of_a_model_are_aggregated_over_the_workers_that_have_had_it(board: dict[str, Any]) -> None:
    """`max by (the labels of the catalogue)`: whatever else a target has goes, and a model that moves stays one."""
    of_worker = {name for name, (_, labels) in EXPORTED.items() if labels in ((), ("stage",), ("template",))}
    for variable in board["templating"]["list"]:
        assert variable["type"] != "query" or "rate(" not in variable["query"]
    for place, expr in queries(board):
        if place in {variable["name"] for variable in board["templating"]["list"]} - {"change"}:
            continue
        for name in re.findall(r"\battributary_(\w+)", expr):
            if re.sub("_(bucket|sum|count)$", "", name) in of_worker:
                continue
            labels = ", ".join(catalogued(name)[1])
            # Of the process, or the lowest or the highest in a time; else what `latest` makes.
            summed = rf"sum by \({labels}\) \(rate\(attributary_{name}\b"
            lowest = rf"min by \({labels}\) \(min_over_time\(attributary_{name}\b"
            whole = rf"max by \({labels}\) \((?:max_over_time\()?attributary_{name}\b"
            n = sum(len(re.findall(pattern, expr)) for pattern in (summed, lowest, whole))
            assert n == len(re.findall(rf"\battributary_{name}\b", expr)), (place, name)


def test_counters_of_the_checkpoint_have_no_rate() -> None:
    """They go on after a restart, a little lower: `rate` would take the whole for an increase."""
    of_process = {"stage_duration_seconds", "worker_stalls_total", "model_evaluations_total", "transactions_total"}
    of_process |= {"model_loads_total", "model_evictions_total", "template_observations_total", "source_records_total"}
    of_process |= {"endpoint_requests_total", "endpoint_duration_seconds"}
    for board in BOARDS.values():
        for place, expr in queries(board):
            for name in re.findall(r"(?:rate|increase)\((\w+)\{", expr):
                short = re.sub("_(bucket|sum|count)$", "", name.removeprefix("attributary_"))
                assert short in of_process or name.startswith("process_"), (place, name)


def test_every_metric_is_on_a_dashboard() -> None:
    shown = {
        name for board in BOARDS.values() for _, e in queries(board) for name in re.findall(r"attributary_(\w+)", e)
    }
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in shown} == set(EXPORTED)


def test_links_lead_to_the_dashboard_of_a_model_and_keep_time_and_source() -> None:
    links = re.findall(r'"url": "([^"]+)"', json.dumps(BOARDS["attributary-fleet.json"]["panels"]))
    assert len(links) == 3
    for link in links:
        assert link == (
            "/d/attributary-model?${__url_time_range}&var-datasource=${datasource}&var-model_id=${__value.raw}"
        )
    for board in BOARDS.values():
        (link,) = board["links"]
        assert (link["type"], link["tags"], link["keepTime"]) == ("dashboards", ["attributary"], True)
        assert board["tags"] == ["attributary"]


def test_alerts_lead_to_dashboards_and_variables_that_exist() -> None:
    boards = {board["uid"]: board for board in BOARDS.values()}
    urls = re.findall(
        r"/d/([\w-]+)(?:\?var-(\w+)=)?", (ROOT / "deploy/prometheus/rules/attributary.rules.yml").read_text()
    )
    assert {uid for uid, _ in urls} <= boards.keys()
    assert urls
    for uid, variable in urls:
        assert variable in ("", *(known["name"] for known in boards[uid]["templating"]["list"])), (uid, variable)


def test_incidents_are_marked_while_they_are_open() -> None:
    for name in ("attributary-fleet.json", "attributary-model.json"):
        incidents, versions = BOARDS[name]["annotations"]["list"]
        assert re.fullmatch(
            r"max by \(model_id, what, severity\) \(attributary_incident_open\{[^}]*\}\)", incidents["expr"]
        )
        assert incidents["useValueForTime"] is versions["useValueForTime"] is False


def test_the_band_is_filled_between_its_two_lines() -> None:
    (panel,) = (panel for panel in panels(BOARDS["attributary-model.json"]) if panel["title"] == "$feature")
    names = [target["legendFormat"] for target in panel["targets"]]
    own = {one["matcher"]["options"]: {p["id"]: p["value"] for p in one["properties"]} for one in overrides(panel)}
    assert own.keys() <= set(names)
    assert own["upper"]["custom.fillBelowTo"] == "lower"
    assert own["upper"]["custom.lineWidth"] == own["lower"]["custom.lineWidth"] == 0
    assert (panel["repeat"], panel["maxPerRow"]) == ("feature", 4)


@each
def test_what_is_set_for_one_series_or_column_names_one_that_there_is(board: dict[str, Any]) -> None:
    for panel in panels(board):
        names = {target["legendFormat"] for target in panel.get("targets", [])} | {"model_id"}
        assert {one["matcher"]["options"] for one in overrides(panel)} <= names, panel["title"]


def overrides(panel: dict[str, Any]) -> list[dict[str, Any]]:
    return list(panel.get("fieldConfig", {}).get("overrides", []))


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    (source,) = yaml.safe_load(provisioning()["provisioning/datasources/attributary.yaml"])["datasources"]
    assert (source["type"], source["isDefault"], source["url"]) == ("prometheus", True, "${PROMETHEUS_URL}")
    scraping = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())["global"]
    assert source["jsonData"]["timeInterval"] == scraping["scrape_interval"]
    (provider,) = yaml.safe_load(provisioning()["provisioning/dashboards/attributary.yaml"])["providers"]
    assert (provider["type"], provider["options"]["path"]) == ("file", "/etc/grafana/dashboards")


def test_the_page_shows_every_dashboard_and_every_picture() -> None:
    page = (ROOT / "docs" / "dashboards.md").read_text()
    for board in BOARDS.values():
        assert f"| `{board['uid']}` |" in page
    pictures = {path.name: path.stat().st_size for path in (ROOT / "docs/images/dashboards").iterdir()}
    assert re.findall(r"\]\(images/dashboards/([\w.-]+)\)", page) == sorted(pictures)
    assert max(pictures.values()) < 200_000
    labels = {v["label"] for board in BOARDS.values() for v in board["templating"]["list"] if v.get("hide") != 2}
    assert set(re.findall(r"^\| ([\w ]+) \| (?:all|fleet|model|operations)", page, flags=re.MULTILINE)) == labels
