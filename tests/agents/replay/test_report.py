"""The report of a replay: well-formed, complete, and safe against what stands in the data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.replay.report import Rows, write_report
from attributary_agents.replay.report_data import MAX_POINTS
from tests.agents.replay.pages import LOSSES, Page, change, compared, importance

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a'b&c", "", "\u202eevil", "x" * 300]


@pytest.fixture
def report(tmp_path: Path) -> Any:
    def written(importances: list[dict[str, Any]], changes: list[dict[str, Any]], *more: Any) -> str:
        for name, events in (("importances", importances), ("changes", changes)):
            (tmp_path / name).write_text("".join(json.dumps(event) + "\n" for event in events))
        write_report(tmp_path / "report.html", tmp_path / "importances", tmp_path / "changes", *more)
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    return written


def points(html: str) -> list[int]:
    """The number of points of each line."""
    return [found.count(",") for found in re.findall(r'<polyline points="([^"]*)"', html)]


def charts(page: Page) -> list[str | None]:
    """What each chart is of."""
    return [found["aria-label"] for found in page.named("svg", **{"class": "chart"})]


def test_an_empty_replay_says_that_there_was_nothing(report: Any) -> None:
    page = Page(report([], []))
    assert "Nothing to show" in page.text
    assert "dead letters" in page.text
    assert charts(page) == []


def test_it_shows_importance_loss_discrepancy_and_changes(report: Any) -> None:
    events = [importance(t, {"age": 0.2, "salary": t / 1000}) for t in range(100, 600, 100)]
    page = Page(report(events, [change(300, ["age"]), change(450, ["salary"])]))

    assert charts(page) == ["Importance by PFI", "Loss", "Discrepancy"]
    for text in ("credit", "up to observation 500", "2 changes", "salary", "baseline", "threshold 0.3", "How to read"):
        assert text in page.text
    # Each chart has a line and a number for each change, and each number leads to a card.
    assert len(page.named("path", **{"class": "mark"})) == 3 * 2
    assert {found["href"] for found in page.named("a")} == {"#change-0-1", "#change-0-2"}
    assert {found["id"] for found in page.named("article")} == {"change-0-1", "change-0-2"}


def test_it_shows_quality_beside_the_loss(report: Any) -> None:
    """Shares in one chart, every other metric in one of its own; a metric that is never known in none."""

    def quality(t: int) -> dict[str, Any]:
        figures = {
            "accuracy": (0.8, 0.9 if t > 200 else None),
            "f1": (None, None),
            "mcc": (0.5, None),
            "mae": (3.5, 3.25),
        }
        return {name: {"value": value, "reference": reference} for name, (value, reference) in figures.items()}

    page = Page(report([importance(t, {"age": 0.2}, quality=quality(t)) for t in range(100, 600, 100)], []))
    assert charts(page) == ["Importance by PFI", "Loss", "Quality", "Quality: mae", "Discrepancy"]
    for text in ("accuracy 0.8 (0.9 over the reference)", "mcc 0.5", "mae 3.5 (3.25 over the reference)"):
        assert text in page.text
    lines = {found["data-name"] for found in page.named("g") if "data-name" in found}
    assert {"accuracy", "accuracy, reference", "mcc", "mae", "mae, reference"} <= lines
    assert "f1" not in lines
    assert "mcc, reference" not in lines


def test_the_sentence_of_every_change_is_there(report: Any) -> None:
    changes = [change(t, ["age", "salary"], significant=2) for t in range(60, 6000, 60)]
    page = Page(report([importance(6000, {"age": 1.0})], changes))
    for event in changes:
        assert event["sentence"] in page.text


def test_every_model_and_explainer_has_its_charts(report: Any) -> None:
    events = [
        importance(t, {"age": 0.2}, model_id=model_id, explainer=explainer)
        for t in (100, 200)
        for model_id in ("credit", "churn")
        for explainer in ("pfi", "sage")
    ]
    page = Page(report(events, []))
    assert charts(page) == ["Importance by PFI", "Importance by SAGE", "Loss", "Discrepancy"] * 2
    assert "0 changes" in page.text
    assert "threshold" not in page.text, "there was no change, and nothing has said what it is"


def test_what_became_of_the_rows_stands_above_all(report: Any) -> None:
    page = Page(report([importance(t, {"age": 0.2}) for t in (100, 200)], []))
    assert "rows:" not in page.text
    rows = Rows(3000, 2396, {"wrong_type": 600, "<b>": 4})
    page = Page(report([importance(t, {"age": 0.2}) for t in (100, 200)], [], rows, {"credit": 0.25, "other": 0.2}))
    assert "3 000 rows: 2 396 predicted and learnt, 604 refused (wrong_type 600, <b> 4)" in page.text
    assert "threshold 0.25" in page.text


def test_the_distance_from_itself_is_not_drawn(report: Any) -> None:
    events = [{**importance(t, {"age": 0.2}), "discrepancy": 0.0} for t in (100, 200)]
    assert charts(Page(report(events, []))) == ["Importance by PFI", "Loss"]


def test_what_is_large_at_the_end_is_shown_and_an_importance_beyond_all_loss_is_remarked(report: Any) -> None:
    """Eight features were large for long; a ninth is the largest at the end, and means nothing."""
    old = {f"feature{i}": 0.5 for i in range(8)} | {"late": 0.0, "small": 0.01}
    new = {f"feature{i}": 0.1 - 0.01 * i for i in range(8)} | {"late": 40.0, "small": 0.01}
    page = Page(report([*(importance(t, old) for t in range(100, 2000, 100)), importance(2000, new)], []))
    shown = [found["data-name"] for found in page.named("g") if "data-name" in found]
    assert "late" in shown
    assert "small" not in shown
    assert "2 not shown" in page.text
    assert "late: far more than a model without features loses." in page.text


def test_hostile_text_stays_text(report: Any) -> None:
    events = [importance(t, dict.fromkeys(HOSTILE, 0.1)) for t in (100, 200)]
    hostile = "<b>id</b> & \"more\" 'quotes'"
    events = [
        {**event, "model_id": hostile, "model_version": "</style>", "loss": "<i>", "loss_unit": "<b>"}
        for event in events
    ]
    changes = [change(150, HOSTILE, 3, model_id=hostile, detector={"name": "</p>", "params": {}, "signal": "<u>"})]
    html = report(events, changes)
    page = Page(html)

    assert len(page.named("script")) == 1
    assert page.named("img") == page.named("b", onerror="alert(2)") == []
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    for text in (HOSTILE[0], HOSTILE[2], hostile, "</style>", "<i>"):
        assert text in page.text
    assert "\u202e" not in html, "a direction mark could turn the words around it"
    assert HOSTILE[5] not in page.text, "long names are cut where they would cover a chart"


def test_nothing_is_asked_of_the_network(report: Any) -> None:
    html = report([importance(100, {"age": 1.0})], [change(60, ["age"])])
    page = Page(html)
    (policy,) = page.named("meta", **{"http-equiv": "Content-Security-Policy"})
    assert (policy["content"] or "").startswith("default-src 'none'; ")
    assert page.named("link") == page.named("img") == []
    assert "http:" not in html
    assert "https:" not in html
    assert all((found["href"] or "").startswith("#") for found in page.named("a"))


def test_long_series_are_thinned(report: Any, tmp_path: Path) -> None:
    n = 5000
    html = report([importance(t, {"age": 0.1, "salary": 0.2}) for t in range(1, n + 1)], [])
    assert len(points(html)) == 2 + 2 + 1
    assert all(MAX_POINTS // 2 <= count <= MAX_POINTS for count in points(html))
    assert len(html) < 200_000


def test_only_the_largest_features_are_shown_and_the_rest_is_counted(report: Any) -> None:
    features = {f"feature{i}": 1.0 / (i + 1) for i in range(30)}
    page = Page(report([importance(t, features) for t in (100, 200)], []))
    shown = [found["data-name"] for found in page.named("g") if "data-name" in found]
    assert shown[:8] == [f"feature{i}" for i in range(8)]
    assert "22 not shown" in page.text


def test_a_feature_keeps_its_colour_from_chart_to_chart(report: Any) -> None:
    first = {f"feature{i}": 1.0 / (i + 1) for i in range(12)}
    second = {f"feature{i}": float(i + 1) for i in range(12)}
    events = [importance(100, first), importance(100, second, explainer="sage")]
    page = Page(report(events, []))
    found = [(group["data-name"], group["class"]) for group in page.named("g") if "data-name" in group]
    pfi, sage = dict(found[:8]), dict(found[8:16])
    assert len(set(pfi.values())) == len(set(sage.values())) == 8
    both = set(pfi) & set(sage)
    assert both
    assert {name: pfi[name] for name in both} == {name: sage[name] for name in both}


def test_features_within_noise_are_collapsed(report: Any) -> None:
    page = Page(report([importance(100, {"f0": 1.0})], [change(90, [f"f{i}" for i in range(60)], significant=2)]))
    assert "58 features within noise" in page.text
    assert "and 18 more" in page.text
    bars = page.named("rect", **{"class": "after"})
    assert len(bars) == 2 + 40


def test_a_change_in_which_nothing_is_significant(report: Any) -> None:
    page = Page(report([importance(100, {"f0": 1.0})], [change(90, ["f0"], significant=0)]))
    assert "1 feature within noise" in page.text


def test_what_is_not_known_is_left_out(report: Any) -> None:
    events = [
        importance(100, {"age": 0.0}, model_loss=None, baseline_loss=None, discrepancy=None),
        importance(200, {"age": 0.0, "late": -1e-12}, model_loss=None, baseline_loss=None, discrepancy=None),
    ]
    events[0]["features"]["age"]["half_width"] = None
    event = change(150, ["age"])
    event["importances"]["pfi"]["features"]["age"] |= {"before": None, "before_std_error": None, "before_rank": None}
    page = Page(report(events, [event]))
    assert charts(page) == ["Importance by PFI", "Discrepancy"]
    assert "– → 0.3" in page.text


def test_a_card_says_what_raised_the_change_and_what_it_rests_on(report: Any) -> None:
    versions = {**LOSSES, "reference_then": None, "worsened": None}
    changes = [
        change(300, ["age"]),
        change(400, ["age"], route="discrepancy", detector=None, losses=None),
        change(
            500, ["age"], route="version", verdict=None, model_version_before="1", model_version="<2>", losses=versions
        ),
        change(600, ["age"], route="check", verdict="matured", change_id=None),
        change(700, ["age"], importances={"sage": compared(["age"], 0), "pfi": compared(["age"])}),
    ]
    page = Page(report([importance(800, {"age": 1.0})], changes))
    for text in (
        "Alarm of adwin on zero_one at 250; reference model of 50; examined on 50 observations. Loss on what had not "
        "been learnt, in brier loss: squared probability, at most 2: reference then 0.31 (0.29 to 0.33), reference now "
        "0.62 (0.58 to 0.66), model now 0.44 (0.4 to 0.48).",
        "Alarm of the discrepancy at 350; reference model of 50; examined on 50 observations.",
        "Version <2> took over from 1 at 450; both compared on the same 50 observations after. Loss on what had not "
        "been learnt, in brier loss: squared probability, at most 2: reference now 0.62",
        "Seen by a check at 550",
        "SAGE in zero_one loss: share of observations, at most 1:",
        "mean loss on the observations of each: 0.1, 0.2",
    ):
        assert text in page.text
    assert "5 changes" in page.text
    assert len(page.named("svg", **{"aria-label": "Significant"})) == 5
    assert len(page.named("svg", **{"aria-label": "Within noise"})) == 1


def test_alarms_are_counted_and_shifts_of_importance_are_told(report: Any) -> None:
    ends = {"event": "not_confirmed", "verdict": "equal", "sentence": "it was nothing"}
    shift = {"event": "importance_shift", "sentence": "credit relies more on <age>"}
    changes = [
        change(200, ["age"], event="alarm", sentence="credit may have changed"),
        change(250, ["age"], **ends),
        change(300, ["age"], event="alarm"),
        change(350, ["age"]),
        change(400, ["age"], **shift),
        change(500, ["age"], event="importance_shift_released", sentence="it relies on it as before"),
    ]
    page = Page(report([importance(800, {"age": 1.0})], changes))
    for text in ("1 change", "2 alarms, 1 not confirmed", "1 shift of importance", "credit relies more on <age>"):
        assert text in page.text
    assert "it was nothing" not in page.text
    assert {found["id"] for found in page.named("article")} == {"change-0-1"}


def of_loss(event: str, observation: int, **more: Any) -> dict[str, Any]:
    """An event of a shift of the loss that was told at 400."""
    return {
        "event": event,
        "model_id": "credit",
        "model_version": "1",
        "kind": "worse",
        "signal": "excess",
        "observation": observation,
        "detected_at": 400,
        "onset": {"observation": 380, "low": None, "high": 390},
        "model_loss": {"before": 0.35, "after": 0.52, "low": 0.12, "high": 0.22, "z": 6.5},
        "n_reference": 7808,
        "n_window": 128,
        "loss": "log_loss",
        "loss_unit": "nats",
        "loss_largest": 6.9,
        "sentence": f"{event} of <credit>",
        **more,
    }


def test_a_shift_of_the_loss_is_a_numbered_line_in_its_chart_and_a_card(report: Any) -> None:
    suspect = {"importance_before": 0.3, "importance_after": 0.1, "delta_std_error": 0.02, "significant": True}
    features = {"age": suspect, "salary": {**suspect, "significant": False}}
    changes = [
        of_loss("loss_shift", 400),
        change(450, ["age"]),
        of_loss("loss_shift_explained", 500, features=features),
        of_loss("loss_shift_released", 700),
        of_loss("loss_shift", 750),
    ]
    page = Page(report([importance(t, {"age": 1.0}) for t in (100, 800)], changes))
    assert {found["id"] for found in page.named("article")} == {"change-0-1", "loss-0-2", "loss-0-3"}
    for text in (
        "2 shifts of the loss",
        "loss_shift of <credit>",
        "Seen in its excess; 7\u202f808 observations before, 128 after. Mean log loss in nats: 0.35 → 0.52, 95 % "
        "interval of the difference 0.12 to 0.22.",
        "500: loss_shift_explained of <credit>",
        "0.3 → 0.1 (± 0.0392)",
        "700: loss_shift_released of <credit>",
    ):
        assert text in page.text
    assert len(page.named("svg", **{"aria-label": "Importance before and after"})) == 1
    assert sum(link.get("href") == "#loss-0-2" for link in page.named("a")) == 1, "in the chart of the loss alone"
    assert sum(link.get("href") == "#change-0-1" for link in page.named("a")) == 3


def test_changes_without_importances_are_shown(report: Any) -> None:
    page = Page(report([], [change(300, ["age"])]))
    assert "1 change" in page.text
    assert "credit changed at 300" in page.text


def test_numbers_of_any_size_fit(report: Any) -> None:
    for size in (1e-300, 1e-9, 1.0, 1e12, 1e300):
        Page(report([importance(t, {"age": size * t, "salary": -size}) for t in (100, 200)], []))


def test_one_early_extreme_is_cut_off_and_said_to_be(report: Any) -> None:
    events = [importance(t, {"age": 100.0 if t == 1 else 1.0 + 0.1 * (t % 3)}) for t in range(1, 50)]
    assert "cut off: age reaches 100" in Page(report(events, [])).text
