"""The page as one file, opened from a disk: it shows what a replay has published, and asks nobody for anything."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from attributary_agents.config.reading import parse_config
from attributary_agents.serve.page import single_file
from attributary_topics import ChangeLosses, DetectorSpec, LossDifference, LossEstimate
from tests.agents.replay.pages import importance, incident, made_page
from tests.agents.serve.incidents import compared, explanation, feature
from tests.agents.stand_ins import FACTORY
from tests.browser.conftest import shown
from tests.browser.looks import WITHIN_MS
from tests.browser.stand_in import StandIn
from tests.browser.stand_in.whole import whole

pytestmark = [pytest.mark.browser, pytest.mark.long]

SCORES = ChangeLosses(
    "score", "unit of the score", None, None, LossEstimate(0.62, 0.58, 0.66, 50), LossEstimate(0.44, 0.4, 0.48, 25),
    None, LossDifference(0.18, 0.14, 0.22),
)  # fmt: skip
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a'b&c", "", "\u202eevil", "x" * 300]


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
        self, importances: list[Any], incidents: list[Any], *reasons: str, path: str = "/", **model: Any
    ) -> Page:
        """Open the page of a replay that published these events."""
        config = parse_config({"models": {"credit": {"factory": FACTORY, **model}}}, "a test")
        made_page(self.path, config, importances, incidents, reasons)
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
    for incident_id, view in list(data["incidents"].items())[:3]:
        page = files.at(f"/incidents/{incident_id}")
        expect(page.locator("h1")).to_have_text(view["row"]["headline"])
    pair = data["comparisons"][0]
    page = files.at(f"/compare?a={pair['a']}&b={pair['b']}".replace("#", "%23"))
    expect(page.locator("#view")).to_contain_text(pair["answer"]["features"][0]["feature"])


def test_a_replay_is_drawn_along_its_observations_with_marks_that_lead_to_incidents(files: Files) -> None:
    told = [incident(300, ["age"], life="over"), incident(450, ["salary"])]
    page = files.replayed(series(), told, path="/models/credit")
    view = page.locator("#view")
    for text in ("Importance", "Loss and baseline", "baseline", "Discrepancy", "salary", "Credit is worse at 450"):
        expect(view).to_contain_text(text)
    expect(page.locator("#head")).not_to_contain_text("24 h")
    expect(page.locator("#head")).not_to_contain_text("observations")
    assert [one.get_attribute("href") for one in view.locator(".flag").all()] == [
        "#/incidents/credit%3A300",
        "#/incidents/credit%3A450",
    ]
    page.get_by_role("link", name="see the incident").click()
    expect(page.locator("h1")).to_have_text("Credit is worse at 450")
    page.get_by_role("link", name="Compare before and after").click()
    expect(page.locator("#view")).to_contain_text("salary")
    expect(page.locator("#view")).not_to_contain_text("not in the file")


def test_what_a_detector_gives_is_shown_as_a_score_and_not_as_a_loss(files: Files, seen: Callable[[str], str]) -> None:
    score = {"loss": "neg_score", "loss_unit": "unit of the score", "loss_largest": None}
    files.replayed(
        series(baseline_loss=None, mode="anomaly", **score),
        [incident(300, ["age"], mode="anomaly", effects=[], explanation=explanation(losses=SCORES))],
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
    files.at("/incidents/credit%3A300").get_by_text("Compared with the model before").click()
    expect(files.page.locator("#view")).to_contain_text("Mean score with its 95 % interval")
    expect(files.page.locator("#view")).to_contain_text("An anomaly detector")


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


def test_an_incident_says_what_it_rests_on(files: Files, seen: Callable[[str], str]) -> None:
    names = [f"f{i}" for i in range(60)]
    both = {"sage": compared(names, 0), "pfi": compared(names, 2)}
    files.replayed(
        series(), [incident(300, ["age"], explanation=explanation(names, importances=both)), incident(450, ["age"])]
    )
    files.at("/incidents/credit%3A300").get_by_text("Compared with the model before").click()
    text = " ".join(files.page.locator("#view").inner_text().split())
    for part in (
        "adwin on zero_one",
        "0.31 ± 0.02",
        "0.62 ± 0.04",
        "0.44 ± 0.04",
        "PFI before → after",
        "SAGE",
        "0.4 > 0.25",
    ):
        assert part in text
    assert "within noise (58)" in text
    assert "Since observation 250" in text
    assert "For 240 observations" in text
    assert "Credit is worse at 450" in seen("/models/credit")


def test_a_feature_without_an_importance_shows_its_values_alone(files: Files, seen: Callable[[str], str]) -> None:
    files.replayed(series(), [incident(300, {"age": feature(None, "is 10 times what it was")})])  # type: ignore[arg-type]
    text = seen("/incidents/credit%3A300")
    assert "Values of age" in text
    assert "It is 10 times what it was." in text
    assert "Importance before" not in text


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
    of = {name: feature(0.1, "<b>\u202eon") for name in HOSTILE}
    told = explanation(HOSTILE, 3, detector=DetectorSpec("</p>", {}, "<u>"))
    files.replayed(events, [incident(150, of, headline="<b>\u202eon", sentence="<u>", explanation=told)])  # type: ignore[arg-type]
    for path in ("/", "/models/credit", "/incidents/credit%3A150", "/compare?a=credit@%2392&b=credit@%23150"):
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
