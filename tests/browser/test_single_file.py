"""The page as one file, opened from a disk: it shows what a replay has published, and asks nobody for anything."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from attributary_agents.config.reading import parse_config
from attributary_agents.serve.single_file import single_file
from tests.agents.replay.pages import LOSSES, change, compared, importance, made_page, of_loss, suspect
from tests.agents.stand_ins import FACTORY
from tests.browser.conftest import shown
from tests.browser.looks import WITHIN_MS
from tests.browser.stand_in import StandIn
from tests.browser.stand_in.whole import whole

pytestmark = [pytest.mark.browser, pytest.mark.long]

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a'b&c", "", "\u202eevil", "x" * 300]
IDS = "credit:attributary.observations.v1:0"


class Files:
    """Writes and opens files; keeps what they complain of, and what they ask for."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self._context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        self._context.set_default_timeout(WITHIN_MS)
        self.path = folder / "report.html"
        self.problems: list[str] = []
        self.page = self._context.new_page()
        self.page.on("console", lambda said: self.problems.append(f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if request.url.split("#")[0] != self.path.as_uri() and not request.url.startswith(("data:", "blob:")):
            self.problems.append(f"asked: {request.url}")

    def replayed(
        self, importances: list[Any], changes: list[Any], *reasons: str, path: str = "/", **model: Any
    ) -> Page:
        """Open the page of a replay that published these events."""
        config = parse_config({"models": {"credit": {"factory": FACTORY, **model}}}, "a test")
        made_page(self.path, config, importances, changes, reasons)
        return self.at(path)

    def at(self, path: str) -> Page:
        """Open a view of the file that was written."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.path.as_uri()}#{path}")
        shown(self.page)
        return self.page

    def close(self) -> None:
        self._context.close()


@pytest.fixture
def files(browser: Browser, tmp_path: Path) -> Iterator[Files]:
    made = Files(browser, tmp_path)
    yield made
    made.close()
    assert made.problems == []


@pytest.fixture
def seen(files: Files) -> Callable[[str], str]:
    """What a view shows as text, its spaces as plain ones."""

    def text(path: str) -> str:
        page = files.at(path)
        page.wait_for_load_state("networkidle")
        found = page.locator("#view").inner_text()
        return " ".join(found.split())

    return text


def series(n: int = 40, **more: Any) -> list[dict[str, Any]]:
    return [importance(t, {"age": 0.2, "salary": t / 1000}, **more) for t in range(100, 100 + 10 * n, 10)]


def test_what_a_server_answers_is_shown_from_a_file_view_by_view(
    files: Files, own_server: Callable[..., StandIn]
) -> None:
    data = whole(own_server().answers)
    files.path.write_text(single_file(data), encoding="utf-8")
    page = files.at("/")
    for model_id in data["models"]:
        expect(page.locator("#view")).to_contain_text(model_id)
    expect(page.locator("#head")).to_contain_text("file")
    page = files.at("/models/bank")
    expect(page.locator("h1")).to_contain_text("bank")
    assert page.locator(".plot canvas").count() >= 2
    for change_id, view in list(data["changes"].items())[:3]:
        page = files.at(f"/changes/{change_id}")
        expect(page.locator("#view")).to_contain_text(view["row"]["sentence"].split(":")[0].split("(")[0].strip())
    pair = data["comparisons"][0]
    page = files.at(f"/compare?a={pair['a']}&b={pair['b']}".replace("#", "%23"))
    expect(page.locator("#view")).to_contain_text(pair["answer"]["features"][0]["feature"])


def test_a_replay_is_drawn_along_its_observations_with_marks_that_lead_to_changes(files: Files) -> None:
    page = files.replayed(series(), [change(300, ["age"]), change(450, ["salary"])], path="/models/credit")
    view = page.locator("#view")
    for text in ("Importance", "Loss and baseline", "baseline", "Discrepancy", "salary", "credit changed at 450"):
        expect(view).to_contain_text(text)
    expect(page.locator("#head")).not_to_contain_text("24 h")
    expect(page.locator("#head")).not_to_contain_text("observations")
    marks = view.locator(f'a[href*="{IDS.replace(":", "%3A")}"], a[href*="{IDS}"]')
    assert {one.get_attribute("href") for one in marks.all()} >= {
        f"#/changes/{IDS}:{at}:{n}".replace(":", "%3A") for n, at in enumerate((300, 450))
    }
    page.get_by_role("link", name="see the change").click()
    expect(page.locator("h1")).to_contain_text("credit changed at 450")
    page.go_back()
    page.get_by_role("link", name="compare with now").click()
    expect(page.locator("#view")).to_contain_text("salary")
    expect(page.locator("#view")).not_to_contain_text("not in the file")


def test_what_a_detector_gives_is_shown_as_a_score_and_not_as_a_loss(files: Files, seen: Callable[[str], str]) -> None:
    score = {"loss": "neg_score", "loss_unit": "unit of the score", "loss_largest": None}
    versions = {**LOSSES, **score, "loss": "score", "reference_then": None, "worsened": None}
    said = {"route": "version", "verdict": None, "detector": None, "model_version": "2", "mode": "anomaly"}
    files.replayed(
        series(baseline_loss=None, mode="anomaly", **score),
        [change(300, ["age"], **said, losses=None), change(400, ["age"], losses=versions, verdict="degraded")],
        mode="anomaly",
    )
    text = seen("/models/credit")
    for part in (
        "Mean score",
        "what is there raises the score",
        "spreads of the score",
        "positive where a feature raises",
    ):
        assert part in text
    assert "Loss" not in text
    fleet = seen("/")
    assert "mean score" in fleet
    told = seen(f"/changes/{IDS}:400:1")
    for part in ("scores higher", "Mean scores it rests on", "scores lower than it by"):
        assert part in told
    assert "loses" not in told
    assert "degraded" not in told.partition("The event as the topic has it")[0]


def test_a_file_of_one_model_opens_with_it_and_its_name_leads_to_the_fleet(files: Files) -> None:
    files.replayed(series(), [])
    files.page.goto("about:blank")
    files.page.goto(files.path.as_uri())
    shown(files.page)
    expect(files.page.locator("h1")).to_contain_text("credit")
    expect(files.page.locator("#view")).to_contain_text("Loss and baseline")
    files.page.locator("#head a.brand").click()
    expect(files.page.locator("h1")).to_contain_text("Nothing is wrong")


def test_quality_is_drawn_beside_the_loss_each_metric_on_its_scale(files: Files, seen: Callable[[str], str]) -> None:
    figures = {"accuracy": (0.8, 0.9), "f1": (None, None), "mcc": (0.5, None), "mae": (3.5, 3.25)}
    quality = {name: {"value": value, "reference": reference} for name, (value, reference) in figures.items()}
    files.replayed(series(quality=quality), [])
    text = seen("/models/credit")
    for part in ("Quality Table", "Quality: mae", "accuracy, reference", "mcc", "mae, reference"):
        assert part in text
    assert "f1" not in text
    assert "mcc, reference" not in text


def test_the_distance_from_itself_is_not_drawn(files: Files, seen: Callable[[str], str]) -> None:
    files.replayed(series(discrepancy=0.0), [])
    text = seen("/models/credit")
    assert "Loss and baseline" in text
    assert "Discrepancy" not in text


def test_an_empty_replay_says_when_a_model_publishes(files: Files, seen: Callable[[str], str]) -> None:
    files.replayed([], [], publish={"every": 321})
    assert "is still learning" in seen("/")
    assert "No importance of 'credit' has been published yet." in seen("/models/credit")
    assert "It publishes every 321 observations." in seen("/models/credit")


def test_refused_rows_stand_there_by_reason_and_where_each_is(files: Files, seen: Callable[[str], str]) -> None:
    files.replayed(series(), [], *["wrong_type"] * 600, *["missing_label"] * 4)
    assert "604 dead letters" in seen("/")
    text = seen("/models/credit")
    assert "604 records could not be used; dead-letters.jsonl, beside this file, has each" in text
    assert "wrong_type decode 600 missing_label decode 4" in text


def test_an_importance_beyond_all_loss_is_remarked(files: Files, seen: Callable[[str], str]) -> None:
    files.replayed([*series(), importance(900, {"age": 0.2, "clock": 40.0})], [])
    assert "clock (pfi): far more than a model without features loses." in seen("/models/credit")


def test_a_change_says_what_raised_it_and_what_it_rests_on(files: Files, seen: Callable[[str], str]) -> None:
    versions = {**LOSSES, "reference_then": None, "worsened": None}
    changes = [
        change(300, ["age"]),
        change(400, ["age"], route="discrepancy", detector=None, losses=None),
        change(
            450, ["age"], route="version", verdict=None, model_version_before="1", model_version="<2>", losses=versions
        ),
        change(480, [f"f{i}" for i in range(60)], significant=2),
        change(490, ["age"], significant=0),
    ]
    files.replayed(series(), changes)
    first = seen(f"/changes/{IDS}:300:0")
    for part in ("adwin on zero_one", "Followed", "0.31 ± 0.02", "0.62 ± 0.04", "0.44 ± 0.04", "PFI before → after"):
        assert part.lower() in first.lower()
    assert "Raised by its distance from its reference" in seen(f"/changes/{IDS}:400:1")
    assert "<2>" in seen(f"/changes/{IDS}:450:2")
    assert "within noise (58)" in seen(f"/changes/{IDS}:480:3")
    assert "within noise (1)" in seen(f"/changes/{IDS}:490:4")
    text = seen("/models/credit")
    assert [event["sentence"] for event in changes if " ".join(event["sentence"].split()) not in text] == []


def test_both_methods_of_a_change_are_shown(files: Files, seen: Callable[[str], str]) -> None:
    files.replayed(
        series(), [change(300, ["age"], importances={"sage": compared(["age"], 0), "pfi": compared(["age"])})]
    )
    text = seen(f"/changes/{IDS}:300:0")
    assert "SAGE" in text
    assert "PFI" in text


def test_a_shift_of_the_loss_says_how_far_and_where_to_look_first(files: Files, seen: Callable[[str], str]) -> None:
    first = f"{IDS}:400:0"
    features = {"age": suspect(), "salary": suspect(significant=False)}
    files.replayed(
        series(),
        [
            of_loss("loss_shift", 400, None),
            of_loss("loss_shift_explained", 450, first, features=features),
            of_loss("loss_shift_released", 480, first),
        ],
    )
    text = seen(f"/changes/{first}")
    for part in ("loss_shift of <credit>", "0.35", "0.52", "+0.12 to +0.22", "7 808 before, 128 after"):
        assert part in text
    assert "loss_shift_explained of <credit>" in text, "what belongs to it is named"
    assert "loss_shift_released of <credit>" in text
    text = seen(f"/changes/{IDS}:450:1")
    for part in ("Where to look first", "1 of 2 features stand out", "look here", "0.3 → 0.1"):
        assert part in text


def test_a_feature_keeps_its_colour_from_explainer_to_explainer(files: Files) -> None:
    first = {f"feature{i}": 1.0 / (i + 1) for i in range(6)}
    second = {f"feature{i}": float(i + 1) for i in range(6)}
    events = [importance(t, first) for t in (100, 200)] + [importance(t, second, explainer="sage") for t in (100, 200)]
    files.replayed(events, [])

    page = files.at("/models/credit")

    def colours() -> dict[str, str]:
        rows = page.locator("#view table tr:has(.swatch)")
        expect(rows).to_have_count(6)
        return {
            row.inner_text().split()[0]: row.locator(".swatch").evaluate("one => getComputedStyle(one).borderTopColor")
            for row in rows.all()
        }

    pfi = colours()
    assert len(set(pfi.values())) == 6
    assert list(pfi) == list(first)
    page.get_by_label("by").select_option("sage")
    expect(page.locator("#view table tr:has(.swatch)").first).to_contain_text("feature5")
    assert colours() == pfi


def test_hostile_names_are_text_and_turn_nothing(files: Files) -> None:
    names = dict.fromkeys(HOSTILE, 0.1)
    events = [importance(t, names, model_version="</style>", loss="<i>", loss_unit="<b>unit\u202e") for t in (100, 200)]
    changed = change(150, HOSTILE, 3, detector={"name": "</p>", "params": {}, "signal": "<u>"}, sentence="<b>\u202eon")
    files.replayed(events, [changed])
    for path in ("/", "/models/credit", f"/changes/{IDS}:150:0", "/compare?a=credit@%23149&b=credit@now"):
        page = files.at(path)
        page.wait_for_load_state("networkidle")
        assert page.locator("img, #view script, #view b > b, #view i > i, #view u").count() == 0
        text = page.locator("body").inner_text()
        assert all(unicodedata.category(one)[0] != "C" or one in "\n\t" for one in text), path
        names_of = "[...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
        assert not [name for name in page.evaluate(names_of) if name.startswith("on")]
    page = files.at("/models/credit")
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[2], "</style>", "<b>unit"):
        expect(page.locator("#view")).to_contain_text(text)


def test_one_extreme_value_does_not_flatten_the_rest_and_is_said(files: Files) -> None:
    events = [importance(t, {"age": 100.0 if t == 1 else 1.0 + 0.1 * (t % 3)}) for t in range(1, 200)]
    page = files.replayed(events, [], path="/models/credit")
    low, high = page.evaluate(
        "() => { const data = JSON.parse(document.getElementById('data').textContent);"
        " const one = data.models.credit.series.pfi; return [one.low, one.high]; }"
    )
    assert high - low < 4.0
    page.get_by_role("button", name="Table").first.click()
    expect(page.get_by_role("table").filter(has_text="100").first).to_be_visible()
