"""What several workers export, merged: read by prometheus_client's parsers, each series once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from attributary_agents.monitoring.metrics import registry
from attributary_agents.supervise.exposition import END, merge
from tests.agents.monitoring.views import config_of, filled

Key = tuple[str, tuple[tuple[str, str], ...]]
Found = dict[Key, float]

FORMATS: dict[str, tuple[Callable[[Any], bytes], Callable[[str], Iterable[Metric]]]] = {
    "text": (generate_latest, text_string_to_metric_families),
    "openmetrics": (generate_openmetrics, parse_openmetrics),
}


class Made(Collector):
    """Metrics of each kind: of models and partitions, and of the process."""

    def __init__(self, models: Mapping[str, float], partitions: Mapping[int, float], of_process: float) -> None:
        self._models, self._partitions, self._of_process = models, partitions, of_process

    def collect(self) -> Iterable[Metric]:
        """What is exported."""
        loss = GaugeMetricFamily("attributary_model_loss", "A loss", labels=("model_id",))
        share = GaugeMetricFamily("attributary_share", "By feature", labels=("explainer", "feature", "model_id"))
        seen = CounterMetricFamily("attributary_model_observations", "Observations", labels=("model_id",))
        for model_id, n in self._models.items():
            loss.add_metric((model_id,), n / 7 + self._of_process)
            for feature in ("a", model_id):
                share.add_metric(("pfi", feature, model_id), n / 3)
            seen.add_metric((model_id,), n, exemplar=Exemplar({"event_id": f"e{n:.0f}"}, 1.0))  # type: ignore[call-arg]
        consumed = CounterMetricFamily("attributary_records_consumed", "Records", labels=("topic", "partition"))
        lag = GaugeMetricFamily("attributary_consumer_lag_records", "Lag", labels=("topic", "partition"))
        for partition, n in self._partitions.items():
            consumed.add_metric(("t", str(partition)), n)
            lag.add_metric(("t", str(partition)), n + self._of_process)
        steps = GaugeMetricFamily("attributary_worker_step_seconds", 'A "step" \\ {of} it', value=self._of_process)
        durations = HistogramMetricFamily("attributary_stage_duration_seconds", "Durations", labels=("stage",))
        for stage in ("checkpoint", "observation"):
            durations.add_metric((stage,), [("0.1", 1.0), ("+Inf", 3.0)], self._of_process)
        return loss, share, seen, consumed, lag, steps, durations


def exposition(collector: Collector, kind: str) -> str:
    fresh = CollectorRegistry()
    fresh.register(collector)
    return FORMATS[kind][0](fresh).decode()


def samples(text: str, kind: str) -> Found:
    """As a scrape reads them; assert that no series is there twice, and no family."""
    families = list(FORMATS[kind][1](text))
    keys = [(one.name, tuple(sorted(one.labels.items()))) for family in families for one in family.samples]
    assert [key for key, n in Counter(keys).items() if n > 1] == []
    assert len({family.name for family in families}) == len(families)
    return dict(zip(keys, (one.value for family in families for one in family.samples), strict=True))


def merged(texts: Mapping[int, str], kind: str) -> str:
    return merge(texts) + (f"{END}\n" if kind == "openmetrics" else "")


def expected(found: Mapping[int, Found]) -> Found:
    """What is to come out, from the parsed samples of each worker alone."""
    found_all: Found = {}
    owned: dict[Any, dict[int, Found]] = {}
    for worker, one in found.items():
        for (name, labels), value in one.items():
            by_name = dict(labels)
            place = (by_name.get("model_id"), by_name.get("topic"), by_name.get("partition"))
            if place == (None, None, None):
                found_all[name, tuple(sorted({**by_name, "worker": str(worker)}.items()))] = value
            else:
                owned.setdefault(place, {}).setdefault(worker, {})[name, labels] = value
    for by_worker in owned.values():
        counted = ("attributary_model_observations_total", "attributary_records_consumed_total")

        progress = {
            worker: max(value for (name, _), value in one.items() if name in counted)
            for worker, one in by_worker.items()
        }
        found_all |= by_worker[min(by_worker, key=lambda worker: (-progress[worker], worker))]
    return found_all


@pytest.mark.parametrize("kind", FORMATS)
def test_what_real_workers_export_is_merged_with_each_series_once(kind: str) -> None:
    config = config_of("m", "n", "o")
    views = {0: filled(config, {0: ["m"], 2: ["o"]}, n=30), 1: filled(config, {1: ["n"]}, n=40)}
    # The model m has just moved, and the worker that had it still shows it.
    views[2] = filled(config, {0: ["m"]}, n=45)
    encode = FORMATS[kind][0]
    texts = {number: encode(registry(config, view)).decode() for number, view in views.items()}
    found = samples(merged(texts, kind), kind)
    wanted = expected({number: samples(text, kind) for number, text in texts.items()})
    assert found.keys() == wanted.keys()
    assert found["attributary_model_observations_total", (("model_id", "m"),)] == 45
    assert {value for (name, _), value in found.items() if name == "python_info"} == {1.0}
    assert {key: found[key] for key in wanted if key[1]} == {key: wanted[key] for key in wanted if key[1]}


NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(
    [
        'a"b',
        'a"c',
        "back\\slash",
        "line\nbreak",
        ',model_id="x"',
        '{model_id="',
        "} 1",
        "# EOF",
        "worker",
        '\\"',
        "é ü 漢",
    ]
)
COUNTS = st.integers(0, 9).map(float)
WORKERS = st.lists(
    st.tuples(st.dictionaries(NAMES, COUNTS, max_size=4), st.dictionaries(st.integers(0, 3), COUNTS, max_size=3)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("kind", FORMATS)
@given(workers=WORKERS)
def test_whatever_models_are_called_and_wherever_they_are(kind: str, workers: Any) -> None:
    texts = {
        number: exposition(Made(models, partitions, number / 10), kind)
        for number, (models, partitions) in enumerate(workers)
    }
    found = samples(merged(texts, kind), kind)
    assert found == expected({number: samples(text, kind) for number, text in texts.items()})


def test_exemplars_stay_at_their_series() -> None:
    texts = {0: exposition(Made({"m": 3.0}, {}, 0.0), "openmetrics"), 1: exposition(Made({}, {}, 0.1), "openmetrics")}
    families = parse_openmetrics(merged(texts, "openmetrics"))
    found = [one.exemplar for family in families for one in family.samples if one.exemplar is not None]
    assert [exemplar.labels for exemplar in found] == [{"event_id": "e3"}]


def test_nobody_exports_nothing() -> None:
    assert merge({}) == ""


def test_helps_and_types_stand_once_and_samples_below_their_own() -> None:
    texts = {number: exposition(Made({str(number): 1.0}, {number: 1.0}, 0.0), "text") for number in range(3)}
    lines = merge(texts).splitlines()
    heads = [line for line in lines if line.startswith("# ")]
    assert len(heads) == len(set(heads)) == 2 * 7
    family = ""
    for line in lines:
        if line.startswith("# TYPE"):
            family = line.split()[2]
        elif not line.startswith("#"):
            assert line.startswith(family)
