"""Shows that the modules of the page say what the code of the server says: numbers, addresses, slices of a series."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from attributary_agents.serve.answers import ModelRow
from attributary_explainers.wording import show_count, show_estimate, show_number

from .blank import STATIC, blank_page, run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with blank_page(browser) as page:
        yield page


def _values() -> list[float]:
    draws = random.Random(7)
    drawn = [draws.choice((-1, 1)) * draws.uniform(1, 10) * 10 ** draws.randint(-9, 17) for _ in range(1500)]
    short = [draws.randint(-9999, 9999) / 10 ** draws.randint(0, 6) for _ in range(500)]
    halves = [k + 0.5 for k in (0, 1, 2, 998, 999, 1000, 1001, 12_344, 12_345)] + [
        0.125,
        0.375,
        1.125,
        10.25,
        10.75,
        100.5,
    ]
    edges = [0.0, 1.0, 0.1, 0.0001, 0.00009999, 0.000099995, 999.4, 999.5, 999_499.0, 999_500.0, 999_999.0, 1e6, 1.02e6]
    return [*drawn, *short, *halves, *(-one for one in halves), *edges, 9.995e11, 1e12, 9.99e14, 1e15, 5e-324, 1.7e308]


def test_numbers_are_those_of_sentences(page: Page) -> None:
    values = _values()
    assert run(page, "format.js", "return given.map((v) => m.number(v))", values) == [
        show_number(one) for one in values
    ]
    signed = run(page, "format.js", "return given.map((v) => m.number(v, { signed: true }))", values)
    assert signed == [show_number(one, signed=True) for one in values]
    odd = run(page, "format.js", "return [null, undefined, NaN, Infinity, -Infinity].map((v) => m.number(v))")
    assert odd == [show_number(one) for one in (None, None, math.nan, math.inf, -math.inf)]


def test_estimates_are_those_of_sentences(page: Page) -> None:
    draws = random.Random(11)
    values = _values()
    pairs = [[one, abs(one) * 10 ** draws.uniform(-5, 2)] for one in values if abs(one) < 1e300]
    pairs += [[0.12345, 0.0341], [5065.3, 1234.0], [5.64e9, 1e9], [3.1e-7, 4e-8], [0.0, 0.5], [2.5, 1.0], [3.5, 1.0]]
    pairs += [[0.25, 0.2], [0.35, 0.2], [1250.0, 100.0], [1.0, 0.095], [1.0, 0.0995], [12.0, 0.0], [12.0, -1.0]]
    pairs += [[-0.02, 0.5], [-4e10, 2e11]]
    assert run(page, "format.js", "return given.map(([v, w]) => m.estimate(v, w))", pairs) == [
        show_estimate(value, half_width) for value, half_width in pairs
    ]
    assert run(page, "format.js", "return [m.estimate(1.5, null), m.estimate(null, 1)]") == ["1.5", "unknown"]


def test_counts_and_shares(page: Page) -> None:
    counts = [0, 7, 999, 1000, 12_034, 1_020_000]
    assert run(page, "format.js", "return given.map(m.count)", counts) == [show_count(one) for one in counts]
    shares = [0.0, 0.0004, 0.021, 0.02, 0.0995, 0.1, 0.456, 1.0, -0.05, None]
    expected = ["0 %", "< 0.1 %", "2.1 %", "2 %", "10 %", "10 %", "46 %", "100 %", "-5 %", "unknown"]
    assert run(page, "format.js", "return given.map(m.percent)", shares) == expected


def test_moments_and_how_long_ago_they_were(page: Page) -> None:
    now = 1_795_600_000_000  # 25 November 2026, 10:26:40 in Vienna
    behind = [0, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000, 30 * 86_400_000, -5000]
    said = run(page, "format.js", "return given[1].map((ms) => m.ago(given[0] - ms, given[0]))", [now, behind])
    assert said == [
        "now",
        "now",
        "1 s ago",
        "59 s ago",
        "1 min ago",
        "59 min ago",
        "1 h ago",
        "1 d ago",
        "30 d ago",
        "now",
    ]
    body = """
      const [now] = given;
      const days = [m.time(now - 864e5, { now }), m.time(now - 4e10, { now })];
      return [m.time(now, { now }), m.time(now, { now, seconds: true }), ...days, m.time(null)];"""
    assert run(page, "format.js", body, [now]) == [
        "10:46",
        "10:46:40",
        "24 Nov, 10:46",
        "19 Aug 2025, 12:40",
        "unknown",
    ]


def test_a_long_name_loses_its_middle_alone(page: Page) -> None:
    assert run(
        page, "format.js", 'return [m.middle("short", 10), m.middle("abcdefghijk", 10), m.middle("😀".repeat(12), 5)]'
    ) == [
        "short",
        "abcde…hijk",
        "😀😀…😀😀",
    ]


def test_a_squared_loss_is_shown_by_its_root(page: Page) -> None:
    losses = [
        [38.44, {"name": "squared", "unit": "unit of the target, squared"}],
        [38.44, {"name": "mine", "unit": "counts²"}],
        [9.0, {"name": "mine", "unit": "(km/h)²"}],
        [0.31, {"name": "cross_entropy", "unit": "nats"}],
        [0.2, {"name": "brier", "unit": "squared probability"}],
        [None, {"name": "squared", "unit": "unit of the target, squared"}],
    ]
    assert run(page, "format.js", "return given.map(([v, loss]) => m.lossOf(v, loss).text)", losses) == [
        "√loss 6.2 unit of the target",
        "√loss 6.2 counts",
        "√loss 3 km/h",
        "0.31 nats",
        "0.2 squared probability",
        "unknown unit of the target, squared",
    ]


STATES = [
    {"view": "fleet", "q": "store-*", "offset": 50, "order": "-shift", "window": "7d"},
    {"view": "model", "model": "bank", "from": 1_795_600_000_000, "to": 1_795_600_900_000, "x": "zip code", "top": 25},
    {"view": "model", "model": "a/b ü?#%", "by": "observation", "explainer": "sage", "measure": "share"},
    {"view": "incident", "incident": "bank:attributary.observations.v1:0:119207:9", "theme": "dark"},
    {"view": "compare", "a": "bank@2026-11-01T10:00", "b": "bank@#5543"},
]


@pytest.mark.parametrize("where", ["server", "below", "file"])
def test_an_address_says_all_that_is_looked_at(page: Page, where: str) -> None:
    settings = {
        "server": {"inHash": False, "root": ""},
        "below": {"inHash": False, "root": "/shown"},
        "file": {"inHash": True, "root": ""},
    }
    body = """
      m.configure({ ...given[0], window: "24h" });
      return given[1].map((state) => {
        const address = m.write(state);
        const url = new URL(address, "http://page.test/replay.html");
        return [address, m.read(url), m.write(m.read(url))];
      });"""
    defaults = {"window": "24h", "by": "time", "q": "", "offset": 0, "measure": "importance"}
    for state, (address, found, again) in zip(
        STATES, run(page, "state.js", body, [settings[where], STATES]), strict=True
    ):
        assert {key: value for key, value in found.items() if value is not None} == {**defaults, **state}
        assert again == address
        assert address.startswith({"server": "/", "below": "/shown/", "file": "#/"}[where])


def test_addresses_by_hand(page: Page) -> None:
    body = """
      m.configure({ inHash: false, root: "", window: "24h" });
      const found = given.map((path) => m.read(new URL(path, "http://page.test")));
      return found.map(({ view, model, from, window }) => [view, model, from, window]);"""
    asked = [
        "/",
        "/models/",
        "/models/bank/",
        "/models/%zz",
        "/nothing",
        "/incidents/",
        "/models/b?from=2026-11-01T10:00Z&window=2y",
    ]
    assert run(page, "state.js", body, asked) == [
        ["fleet", None, None, "24h"],
        ["fleet", None, None, "24h"],
        ["model", "bank", None, "24h"],
        ["model", "%zz", None, "24h"],
        ["missing", None, None, "24h"],
        ["missing", None, None, "24h"],
        ["model", "b", 1_793_527_200_000, "24h"],
    ]


def _row(**given: Any) -> dict[str, Any]:
    whole = {
        "model_id": "bank",
        "template": None,
        "state": "explained",
        "mode": "labelled",
        "version": "1",
        "n_observations": 5,
        "observations_per_second": 1.0,
        "loss": {"name": "log", "unit": "nats", "largest": None, "text": "log loss: nats"},
        "model_loss": 0.3,
        "baseline_loss": 0.6,
        "present_loss": None,
        "fidelity": None,
        "is_unfaithful": False,
        "shift": 0.1,
        "shifts": [0.1],
        "incident": None,
        "n_waiting": None,
        "waiting_limit": None,
        "n_expired": None,
        "n_refused": 0,
        "n_dead_letters": 0,
        "last_event_ms": 1,
        "explainer": "pfi",
        "top": [],
        "n_features": 2,
    }
    return ModelRow.model_validate({**whole, **given}).model_dump(mode="json")


def test_a_row_after_live_events(page: Page) -> None:
    importance = {
        "model_id": "bank",
        "explainer": "pfi",
        "time_ms": 9,
        "observation": 700,
        "version": "2",
        "n_features": 3,
        "model_loss": 0.2,
        "baseline_loss": 0.5,
        "present_loss": None,
        "discrepancy": 0.1,
        "shift": 0.3,
        "n_waiting": None,
        "n_expired": None,
        "fidelity": None,
        "features": {"b": [0.1, 0.01, 0.25, 2], "a": [0.3, None, 0.75, 1]},
    }
    status = {
        "model_id": "bank",
        "state": "changed",
        "n_observations": 800,
        "observations_per_second": None,
        "n_waiting": None,
        "n_expired": None,
        "n_refused": 1,
        "version": "2",
    }
    body = "return given[1].reduce((row, [kind, event]) => m.after(row, kind, event), given[0])"
    row = ModelRow.model_validate(
        run(page, "views/words.js", body, [_row(), [["importance", importance], ["status", status]]])
    )
    assert (row.model_loss, row.baseline_loss, row.shift, row.shifts, row.version) == (0.2, 0.5, 0.3, [0.1, 0.3], "2")
    assert [(one.feature, one.importance, one.half_width, one.rank) for one in row.top] == [
        ("a", 0.3, None, 1),
        ("b", 0.1, 0.01, 2),
    ]
    assert (row.state, row.n_observations, row.n_refused, row.observations_per_second) == ("explained", 800, 1, 1.0)
    # How it is doing is the server's to say, which knows of more than a worker; an incident has an event of its own.
    outdated = "return m.isOutdated(given[0], given[1])"
    assert run(page, "views/words.js", outdated, [_row(), {**status, "state": "refused"}])
    assert not run(page, "views/words.js", outdated, [_row(), status])
    other = run(page, "views/words.js", body, [_row(), [["importance", {**importance, "explainer": "sage"}]]])
    assert other == _row(), "the row shows pfi"


def test_rows_are_sorted_with_the_unknown_last(page: Page) -> None:
    rows = [_row(model_id="b", shift=0.2), _row(model_id="c", shift=None), _row(model_id="A", shift=0.9)]
    body = "return given[1].map((order) => m.sorted(given[0], order).map((row) => row.model_id).join(''))"
    assert run(page, "views/words.js", body, [rows, [None, "model", "-model", "shift", "-shift", "bogus"]]) == [
        "bcA",
        "Abc",
        "cbA",
        "bAc",
        "Abc",
        "bcA",
    ]


def test_the_words_of_losses(page: Page) -> None:
    score = {"name": "neg_score", "unit": "unit of the score", "largest": None, "text": "score: what it adds"}
    squared = {"name": "squared", "unit": "counts²", "largest": None, "text": "squared loss: counts²"}
    rows = [
        _row(),
        _row(loss=squared, model_loss=38.44, baseline_loss=96.04),
        _row(model_loss=None),
        _row(mode="unlabelled"),
        _row(mode="mirror", fidelity=0.71, is_unfaithful=True),
        *(_row(mode=mode, loss=score, baseline_loss=None) for mode in ("anomaly", "labelled")),
    ]
    body = (
        "return given.map((row) => { const { text, detail, isLow } = m.lossWords(row); return [text, detail, isLow]; })"
    )
    assert run(page, "views/words.js", body, rows) == [
        ["0.5", "0.3 ÷ 0.6 nats", False],
        ["0.633", "√loss 6.2 ÷ 9.8 counts", False],
        ["–", "", False],
        ["–", "unlabelled", False],
        ["0.71", "fidelity (low)", True],
        ["0.3", "mean score", False],
        ["0.3", "mean score", False],
    ]


def test_a_sentence_is_parted_into_what_is_wrong_and_counts(page: Page) -> None:
    sentences = [
        "2 of 9 821 models have an incident, first: bank is worse · 1 waits for labels · 4 265 dead letters",
        "Nothing is wrong: none of 6 models has an incident · 0 dead letters",
        "3 things",
    ]
    body = "return given.map((one) => { const { lead, counts } = m.partsOf(one); return [lead, counts]; })"
    assert run(page, "views/words.js", body, sentences) == [
        [
            "2 of 9 821 models have an incident, first: bank is worse",
            [["1", "waits for labels"], ["4 265", "dead letters"]],
        ],
        ["Nothing is wrong: none of 6 models has an incident", [["0", "dead letters"]]],
        ["3 things", []],
    ]


def test_text_from_outside_is_text(page: Page) -> None:
    body = """
      const inner = m.svg("g", { "data-x": given });
      const element = m.h("p", { title: given, class: null }, given, [null, false, 0], inner);
      return [element.childElementCount, element.textContent, element.title === given, element.className];"""
    bad = '<img src=x onerror="document.title = 1">'
    assert run(page, "dom.js", body, bad) == [1, f"{bad}0", True, ""]


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_of_text_has_contrast(page: Page, theme: str) -> None:
    body = """
      const style = document.createElement("style");
      style.textContent = given[0];
      document.head.append(style);
      document.documentElement.dataset.theme = given[1];
      const styles = getComputedStyle(document.documentElement);
      const names = [...given[0].matchAll(/--([a-z0-9-]+): #/g)].map(([, name]) => name);
      const found = Object.fromEntries(names.map((name) => [name, styles.getPropertyValue(`--${name}`).trim()]));
      style.remove();
      return found;"""
    tokens = (STATIC / "css" / "tokens.css").read_text()
    colours = page.evaluate(f"(given) => {{ {body} }}", [tokens, theme])

    def contrast(one: str, other: str) -> float:
        low, high = sorted((_luminance(colours[one]), _luminance(colours[other])))
        return (high + 0.05) / (low + 0.05)

    text = ("ink", "muted", "accent", "good", "bad", "warn", *(f"s{i}" for i in range(1, 11)))
    pairs = [(one, ground) for one in text for ground in ("paper", "card")]
    pairs += [("muted", "raised"), ("ink", "accent-soft"), ("muted", "accent-soft"), ("on-accent", "accent")]
    pairs += [(one, f"{one}-soft") for one in ("good", "bad", "warn", "accent")] + [
        ("muted", "bad-soft"),
        ("ink", "bad-soft"),
    ]
    assert {
        (one, ground): round(contrast(one, ground), 2) for one, ground in pairs if contrast(one, ground) < 4.5
    } == {}
    assert contrast("strong-line", "card") >= 3.0, "the edge of a field"


def test_every_module_can_be_loaded(page: Page) -> None:
    paths = [path.relative_to(STATIC / "js").as_posix() for path in sorted((STATIC / "js").rglob("*.js"))]
    for path in paths:
        source = (STATIC / "js" / path).read_text()
        assert source.startswith("// "), f"{path} does not say what it does"
        assert "innerHTML" not in source, path
    body = """async (paths) => {
      const failed = (path) => import(`page/${path}`).then(() => null, (problem) => `${path}: ${problem}`);
      return (await Promise.all(paths.map(failed))).filter((one) => one !== null);
    }"""
    assert page.evaluate(body, [path for path in paths if path != "main.js"]) == []


def test_a_module_as_it_is_served_gives_others_what_it_was_written_to_give(page: Page) -> None:
    paths = [path.relative_to(STATIC).as_posix() for path in sorted((STATIC / "js").rglob("*.js"))]
    paths.remove("js/main.js")
    body = """(paths) => Promise.all(paths.map(async (path) => {
      const [written, served] = await Promise.all([import(`/${path}`), import(`/served/${path}`)]);
      return [path, Object.keys(written), Object.keys(served)];
    }))"""
    found = page.evaluate(body, paths)
    assert len(found) == len(paths)
    assert [path for path, written, served in found if written != served or not written] == []
