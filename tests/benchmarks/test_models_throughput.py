"""The benchmark of trained models: each kind is asked once for an observation, with as many rows as the others."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.models import throughput
from benchmarks.models.subjects import quiet, subjects, table
from rich.console import Console

from attributary_explainers import IncrementalPFI, model_function

pytestmark = pytest.mark.long


class Asked:
    """The function of a model, that writes down how many rows it is given."""

    def __init__(self, model: Any) -> None:
        self.many, self.sizes = model_function(model, "probabilities").many, []  # type: ignore[attr-defined]

    def __call__(self, rows: Any) -> Any:
        self.sizes.append(len(rows))
        return self.many(rows)


def test_each_kind_is_asked_once_for_all_rows_of_an_observation() -> None:
    from attributary_explainers import as_batch

    x, y = table(10, 3)
    with quiet():
        for name, make in subjects():
            asked = Asked(make())
            pfi = IncrementalPFI(as_batch(asked), loss="brier", n_samples=5, seed=1)
            for row, label in zip(x.to_dict("records"), y.tolist(), strict=True):
                pfi.explain_one(row, label)
            assert asked.sizes == [1, *[9 * 5 + 1 for _ in range(9)]], name


def test_the_table_has_a_line_for_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "subjects", lambda: list(subjects())[:2])
    found = throughput.measure(rounds=1)
    console = Console(record=True, width=120)
    throughput.show(found, console)
    shown = console.export_text()
    assert [one.rows for one in found] == [46, 46]
    assert all(one.ratio > 0 for one in found)
    assert all(one.name in shown for one in found)
