"""The dashboards' queries on series that move between workers, repeat themselves after a crash, or stand twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from support.monitoring import Prometheus, promtool

from attributary_agents.monitoring.dashboards import dashboards
from tests.grafana import panels

pytestmark = [pytest.mark.prometheus]
BEGAN, STEP = 1_700_000_000, 15
RATE = 10
"""Observations per second, truly."""
MOVED, CRASHED, ENDED = 600, 1200, 1800
"""Seconds: a partition goes to another worker; that worker crashes and repeats the last half minute; the end."""


def samples() -> Iterator[str]:
    """What two workers say: the first, then the second, which goes on where the first was; for a scrape both."""

    def one(name: str, labels: str, worker: str, at: int, value: float) -> str:
        return f'attributary_{name}{{job="a", instance="{worker}", {labels}}} {value:g} {BEGAN + at}'

    for at in range(0, ENDED + 1, STEP):
        n = RATE * (at if at < CRASHED else at - 60)
        if CRASHED <= at < CRASHED + 30:
            continue  # it starts again
        for worker in ("x", "y"):
            if (worker == "x") if at < MOVED else (worker == "y" or at == MOVED):
                yield one("model_observations_total", 'model_id="m"', worker, at, n)
                letters = float(at >= 900)
                yield one("dead_letters_total", 'topic="t", partition="0", reason="r"', worker, at, letters)
                if 900 <= at < 1500:
                    what = "harder" if at < 960 else "worse"
                    yield one("incident_open", f'model_id="m", what="{what}", severity="info"', worker, at, 1)
                    yield one("incident_info", f'model_id="m", id="m:1", headline="m is {what}"', worker, at, 1)
                # Ranks are of features whose importance is above its half-width.
                for feature, value in (("a", 3 - at / 620), ("b", 1.5), ("c", 0.1), ("__other__", 9)):
                    labels = f'model_id="m", explainer="pfi", feature="{feature}"'
                    yield one("feature_importance", labels, worker, at, value)
                    yield one("feature_importance_half_width", labels, worker, at, 0.05)
        # Each worker for itself, and never the same process again.
        since = at if at < CRASHED else at - CRASHED - 30
        yield one("model_evaluations_total", 'model_id="m", path="fast"', "y", at, since)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("queries")
    lines = sorted(samples(), key=lambda line: int(line.rsplit(" ", 1)[1]))
    (folder / "samples").write_text("\n".join([*lines, "# EOF", ""]).replace(", ", ","))
    server = Prometheus(folder, {"global": {"scrape_interval": "1m"}}, arguments=["--storage.tsdb.retention.time=100y"])
    made = promtool("tsdb", "create-blocks-from", "openmetrics", folder / "samples", server.data)
    assert made.returncode == 0, made.stderr
    with server:
        yield server


def query_of(board: str, title: str, ref_id: str = "A") -> str:
    """Return the query of a panel of a dashboard."""
    (expr,) = (
        target["expr"]
        for panel in panels(json.loads(dashboards()[f"attributary-{board}.json"]))
        for target in panel.get("targets", ())
        if (panel["title"], target["refId"]) == (title, ref_id)
    )
    return str(expr)


def filled(expr: str, interval: int = 60) -> str:
    """As Grafana fills it in."""
    values = {"$__interval_ms": str(interval * 1000), "$__interval": f"{interval}s", "$__rate_interval": "60s"}
    values |= {"$__range": f"{ENDED}s", '"$job"': '".+"', "$model_id": "m", "$explainer": "pfi", "$feature": ".+"}
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], expr)


def over(prometheus: Prometheus, expr: str) -> list[float]:
    (series,) = prometheus.query_range(filled(expr), BEGAN, BEGAN + ENDED, 60)
    return [value for _, value in series.points]


def at(prometheus: Prometheus, expr: str, seconds: int = ENDED) -> dict[str, float]:
    found = prometheus.query(filled(expr), BEGAN + seconds)
    return {series.labels.get("feature", ""): series.value for series in found}


def test_a_move_is_no_gap_and_counts_nothing_twice(prometheus: Prometheus) -> None:
    rates = over(prometheus, query_of("model", "Observations"))
    until = CRASHED // 60 - 1
    assert rates[:until] == pytest.approx([RATE] * until)


def test_after_a_crash_the_rate_is_not_the_whole_count(prometheus: Prometheus) -> None:
    rates = over(prometheus, query_of("model", "Observations"))
    assert max(rates) == pytest.approx(RATE)
    assert min(rates) >= 0
    assert rates[-5:] == pytest.approx([RATE] * 5)
    # What `rate` makes of it: the counter seems to have begun again.
    plain = 'sum(rate(attributary_model_observations_total{job="a"}[5m]))'
    assert max(over(prometheus, plain)) > 3 * RATE


def test_what_has_happened_in_the_range_is_counted_once(prometheus: Prometheus) -> None:
    assert at(prometheus, query_of("fleet", "Dead letters")) == {"": 1.0}
    assert at(prometheus, query_of("fleet", "Dead letters"), 840) == {"": 0.0}
    counted = prometheus.query_range(filled(query_of("fleet", "Dead letters by reason")), BEGAN, BEGAN + ENDED, 60)
    assert sum(value for series in counted for _, value in series.points) == 1.0


def test_an_incident_is_open_with_its_headline_and_is_one_whatever_is_said_of_it(prometheus: Prometheus) -> None:
    def told(seconds: int) -> list[dict[str, str]]:
        found = prometheus.query(filled(query_of("fleet", "What is open")), BEGAN + seconds)
        return [series.labels for series in found]

    assert told(915) == [{"model_id": "m", "what": "harder", "severity": "info", "headline": "m is harder"}]
    assert told(1400) == [{"model_id": "m", "what": "worse", "severity": "info", "headline": "m is worse"}]
    assert told(ENDED + 300) == []
    assert at(prometheus, query_of("fleet", "All models", "K")) == {"": 1.0}


def test_a_series_that_two_workers_have_is_one(prometheus: Prometheus) -> None:
    both = prometheus.query('attributary_model_observations_total{job="a"}', BEGAN + MOVED)
    assert len(both) == 2
    assert at(prometheus, query_of("model", "Observations"), MOVED) == {"": RATE}


def test_counters_of_the_process_are_summed_as_rates(prometheus: Prometheus) -> None:
    rates = over(prometheus, query_of("model", "Evaluations"))
    assert rates[3:18] == pytest.approx([1.0] * 15)


@pytest.mark.parametrize(("seconds", "order"), [(300, "abc"), (1800, "bca")])
def test_ranks_are_those_of_the_importances(prometheus: Prometheus, seconds: int, order: str) -> None:
    found = at(prometheus, query_of("model", "Rank"), seconds)
    assert found == {name: float(place) for place, name in enumerate(order, start=1)}
