"""What explaining costs a worker: the rows of the benchmark take turns, and their ratios are of whole periods."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from benchmarks.record import explained
from benchmarks.record.explained import ALONE, LEARNS, ROWS, measured, observations, ratio, worker

from attributary_agents.config.reading import parse_config


def test_rows_have_the_same_records_in_turns_and_ratios_are_of_whole_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[tuple[bytes, ...]]] = {}

    def noting(name: str) -> Any:
        def handle(values: Any) -> float:
            seen.setdefault(name, []).append(tuple(values))
            return float(len(seen[name]))

        return handle

    names = {id(settings): name for name, settings in ROWS.items()}
    monkeypatch.setattr(explained, "worker", lambda settings: noting(names[id(settings)]))
    monkeypatch.setattr(explained, "alone", lambda: noting(ALONE))
    monkeypatch.setattr(explained, "PERIOD", 20)
    monkeypatch.setattr(explained, "WARM_UP", 5)
    took = measured(["iPFI"], 50, 10)
    assert list(took) == list(seen) == [ALONE, LEARNS, "iPFI"]
    first, *blocks = seen["iPFI"]
    assert (len(first), [len(block) for block in blocks]) == (5, [10] * 5)
    assert seen[ALONE] == seen[LEARNS] == seen["iPFI"]
    assert took["iPFI"] == [2.0 + 3.0, 4.0 + 5.0], "the first is the warm-up, and half a period is left out"
    assert ratio([3.0, 8.0, 5.0], [1.0, 2.0, 1.0]) == "4.00 (3.00-5.00)"


def test_every_row_is_a_configuration_and_a_record_is_handled_with_everything() -> None:
    for name, settings in ROWS.items():
        model = parse_config({"models": {"credit": {"model": explained.FOREST, **settings}}}).models["credit"]
        assert (model.change is None) == (name not in ("change", "iPFI, iSAGE, change, quality", "everything"))
        assert (model.explainers.mdi is None) == (name not in ("mdi", "everything"))
        assert (model.explainers.pdp is None) == (name not in ("pdp", "everything"))
    assert worker(ROWS["everything"])(list(islice(observations(), 3))) > 0.0
