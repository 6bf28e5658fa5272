"""What explaining costs a worker: the rows of the benchmark take turns, and their ratios are of whole periods."""

from __future__ import annotations

from itertools import islice

import pytest
from benchmarks.record import explained
from benchmarks.record.explained import ALONE, LEARNS, ROWS, Row, measured, observations, ratio, worker

from attributary_agents.config.reading import parse_config


def test_rows_take_turns_and_ratios_are_of_whole_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name, self.n = name, 0

        def __enter__(self) -> Noting:
            return self

        def __exit__(self, *_: object) -> None:
            asked.append((self.name, 0))

        def handle(self, n: int) -> float:
            asked.append((self.name, n))
            self.n += 1
            return float(self.n)

    monkeypatch.setattr(explained, "Row", Noting)
    monkeypatch.setattr(explained, "PERIOD", 20)
    monkeypatch.setattr(explained, "WARM_UP", 5)
    took = measured(["iPFI"], 40, 10)
    rows = [ALONE, LEARNS, "iPFI"]
    assert list(took) == rows
    warm_up, blocks, ended = asked[:3], asked[3:-3], asked[-3:]
    assert warm_up == [(name, 5) for name in rows]
    assert blocks == [(rows[(first + i) % 3], 10) for first in range(4) for i in range(3)], "each is first in its turn"
    assert sorted(ended) == sorted((name, 0) for name in rows)
    assert took["iPFI"] == [2.0 + 3.0, 4.0 + 5.0], "the first is the warm-up"
    assert ratio([3.0, 8.0, 5.0], [1.0, 2.0, 1.0]) == "4.00 (3.00-5.00)"


@pytest.mark.long
def test_a_row_is_handled_by_a_process_of_its_own() -> None:
    with Row("iPFI") as one, Row(ALONE) as other:
        assert min(one.handle(2), other.handle(2), one.handle(1)) > 0.0
    unknown = Row("nothing of the kind")
    with unknown, pytest.raises(RuntimeError, match="nothing of the kind"):
        unknown.handle(1)


def test_every_row_is_a_configuration_and_a_record_is_handled_with_everything() -> None:
    for name, settings in ROWS.items():
        model = parse_config({"models": {"credit": {"model": explained.FOREST, **settings}}}).models["credit"]
        assert (model.change is not None) == ("change" in name or name == "everything")
        assert (model.explainers.mdi is None) == (name not in ("mdi", "everything"))
        assert (model.explainers.pdp is None) == (name not in ("pdp", "everything"))
    assert worker(ROWS["everything"])(list(islice(observations(), 3))) > 0.0
