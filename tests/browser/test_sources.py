"""Shows that a single file answers as the server does, and what the server is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from attributary_agents.serve.answers import Figures, Series

from .blank import blank_page, run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with blank_page(browser) as page:
        yield page


def _series(n: int = 100, features: int = 3) -> dict[str, Any]:
    """A series whose event number i has observation 10 i, an importance of i, and a band of 1 around it."""
    times = [1_000_000 + 60_000 * i for i in range(n)]

    def feature(k: int) -> dict[str, Any]:
        values = [float(i + k) for i in range(n)]
        return {
            "feature": f"f{k}",
            "importance": values,
            "low": [None if i < 5 else one - 1 for i, one in enumerate(values)],
            "high": [None if i < 5 else one + 1 for i, one in enumerate(values)],
            "share": [0.2] * n,
            "rank": [k + 1] * n,
            "latest": values[-1],
            "latest_half_width": 1.0,
            "latest_share": 0.2,
            "latest_rank": k + 1,
            "moved": n - 1.0,
        }

    rising = [float(i) for i in range(n)]
    figures: dict[str, Any] = dict.fromkeys(Figures.model_fields, rising)
    mark = {
        "kind": "incident",
        "time_ms": times[20],
        "observation": 200,
        "end_ms": times[50],
        "end_observation": 500,
        "text": "worse",
        "standing": "over",
        "incident_id": "i",
    }
    whole = {
        "model_id": "bank",
        "explainer": "pfi",
        "removal": "marginal",
        "by": "observation",
        "n_events": n,
        "time_ms": times,
        "loss": {"name": "squared", "unit": "counts²", "largest": None, "text": "squared loss: counts²"},
        "observation": [10 * i for i in range(n)],
        "features": [feature(k) for k in range(features)],
        "others": {"n": 0, "share": 0.0},
        "figures": {**figures, "quality": {"r2": [0.5] * n}, "quality_reference": {}},
        "marks": [mark],
        "low": -1.0,
        "high": 100.0,
        "nearest_ms": None,
        "nearest_observation": None,
    }
    return Series.model_validate(whole).model_dump(mode="json")


def _slice(page: Page, series: dict[str, Any], **asked: Any) -> Series:
    return Series.model_validate(run(page, "file.js", "return m.slice(...given)", [series, asked]))


def test_a_file_gives_the_part_of_a_series_that_is_asked_for(page: Page) -> None:
    part = _slice(page, _series(), by="observation", **{"from": 200, "to": 400})
    assert part.observation == list(range(200, 401, 10))
    assert part.time_ms == [1_000_000 + 60_000 * i for i in range(20, 41)]
    assert part.n_events == 21
    assert [one.text for one in part.marks] == ["worse"]
    first = part.features[0]
    assert first.importance == [float(i) for i in range(20, 41)]
    assert (first.latest, first.latest_half_width, first.moved) == (40.0, 1.0, 20.0)
    assert part.figures.shift == first.importance
    assert part.figures.quality == {"r2": [0.5] * 21}
    # A robust range of the bands of all three: lower edges from 19, upper ones to 43.
    assert part.low == pytest.approx(19.6, abs=0.5)
    assert part.high == pytest.approx(42.5, abs=0.5)


def test_a_file_thins_a_series_as_the_server_does(page: Page) -> None:
    part = _slice(page, _series(), by="time", points=10)
    assert len(part.time_ms) == 10
    assert part.observation == [90 + 100 * i for i in range(10)]
    first = part.features[0]
    assert first.importance == [4.5 + 10 * i for i in range(10)], "the mean of ten each"
    assert first.low[0] == 4.0, "the least lower edge of those that are known"
    assert first.high == [10.0 + 10 * i for i in range(10)]
    assert part.n_events == 100
    assert [one.text for one in part.marks] == ["worse"]


def test_a_file_gives_the_most_important_features_and_those_that_are_named(page: Page) -> None:
    assert [one.feature for one in _slice(page, _series(features=5), top=2).features] == ["f0", "f1"]
    part = _slice(page, _series(features=12), top=1, features=["f3"])
    assert [one.feature for one in part.features] == ["f0", "f3"]
    assert part.others.n == 10
    assert part.others.share == pytest.approx(0.6)
    assert len(_slice(page, _series(features=12)).features) == 10


def test_a_file_says_where_the_nearest_event_is_of_a_window_without_events(page: Page) -> None:
    part = _slice(page, _series(), by="observation", **{"from": 5000, "to": 6000})
    assert (part.time_ms, part.n_events) == ([], 0)
    assert part.nearest_observation == 990
    assert part.marks == []
    inside = _slice(page, _series(), by="observation", **{"from": 400, "to": 450})
    assert [one.text for one in inside.marks] == ["worse"], "it has begun before, and goes on"
    assert _slice(page, _series(), by="observation", **{"from": 991, "to": 992}).nearest_observation == 990
    assert len(_slice(page, _series(), by="time", window="1h").time_ms) == 61


def test_a_file_answers_as_the_server_does(page: Page) -> None:
    row = {"model_id": "bank", "template": None}
    data = {
        "health": {"build": "1"},
        "fleet": {"now_ms": 5, "models": [row, {"model_id": "store-1", "template": "store-*"}]},
        "models": {
            "bank": {"view": {"row": row}, "series": {"pfi": _series(60)}, "incidents": {"incidents": [], "n": 0}}
        },
        "incidents": {},
        "comparisons": [{"a": "bank@#1", "b": "bank", "answer": {"a": {"explainer": "pfi"}}}],
    }
    body = """
      const source = m.fileSource(given);
      const failed = async (promise) => promise.then(() => null, ({ status, suggestion }) => [status, suggestion]);
      return {
        now: source.now(),
        all: (await source.fleet({})).n_found,
        found: (await source.fleet({ q: "STORE-*" })).models.map((one) => one.model_id),
        part: (await source.fleet({ q: "an" })).n_found,
        series: (await source.series("bank", { explainer: "pfi" })).observation.length,
        compared: (await source.compare("bank@#1", "bank")).a.explainer,
        gone: await failed(source.model("bnak")),
        never: await failed(source.model("zzzzzz")),
        uncompared: await failed(source.compare("x", "y")),
      };"""
    assert run(page, "file.js", body, data) == {
        "now": 5,
        "all": 2,
        "found": ["store-1"],
        "part": 1,
        "series": 60,
        "compared": "pfi",
        "gone": [404, "bank"],
        "never": [404, None],
        "uncompared": [404, None],
    }


def test_what_the_server_is_asked_for(page: Page) -> None:
    body = """
      const asked = [];
      const ask = async (address) => { asked.push(address); return new Response('{"now_ms": 1}'); };
      const source = m.restSource("/shown", ask);
      await source.fleet({ window: "24h", q: "", offset: 0, limit: 50 });
      await source.fleet({ window: "all", q: "a b", offset: 50, limit: 50 });
      await source.model("a/b", { window: "1h" });
      await source.series("bank", { explainer: "pfi", from: 5, by: "time", points: 600, features: ["x", "y&z"] });
      await source.incident("bank:topic:0:1:2");
      await source.compare("bank@#5", "bank@2026-11-01T10:00", null);
      return asked;"""
    assert run(page, "source.js", body) == [
        "/shown/api/v1/models?window=24h&limit=50",
        "/shown/api/v1/models?window=all&q=a+b&offset=50&limit=50",
        "/shown/api/v1/models/a%2Fb?window=1h",
        "/shown/api/v1/models/bank/importances?explainer=pfi&from=5&by=time&points=600&features=x&features=y%26z",
        "/shown/api/v1/incidents/bank%3Atopic%3A0%3A1%3A2",
        "/shown/api/v1/compare?a=bank%40%235&b=bank%402026-11-01T10%3A00",
    ]


def test_a_failed_answer_is_told_as_a_problem(page: Page) -> None:
    body = """
      const answers = [
        async () => new Response('{"title": "Not found", "detail": "no model", "suggestion": "bank"}', { status: 404 }),
        async () => new Response("<html>bad gateway</html>", { status: 502 }),
        async () => { throw new TypeError("refused"); },
      ];
      const told = ({ status, title, suggestion }) => [status, title, suggestion];
      return Promise.all(answers.map((ask) => m.restSource("", ask).health().catch(told)));"""
    assert run(page, "source.js", body) == [
        [404, "Not found", "bank"],
        [502, "What came is no answer of Attributary", None],
        [0, "The server does not answer", None],
    ]
