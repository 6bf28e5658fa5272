"""The tables of `benchmarks.batch`: exact values have no error, others have one, and what is absent is said to be."""

from __future__ import annotations

import pytest
from benchmarks.batch import methods as ways
from benchmarks.batch.__main__ import table
from benchmarks.batch.methods import Row, measured
from benchmarks.batch.subjects import SUBJECTS


def test_ours_and_those_of_scikit_learn_are_measured() -> None:
    methods = [method for method in ways.METHODS if method.needs is None]
    rows = measured(SUBJECTS["forest"](60), methods)
    assert [row.method for row in rows] == [method.name for method in methods]
    exact = [row for row in rows if row.method in ("batch_pfi", "batch_sage")]
    assert {(row.calls, row.rows) for row in exact} == {(1, 60)}
    assert all(row.error < 1e-12 for row in exact)
    assert all(row.error > 1e-4 for row in rows if row not in exact)
    assert [row.rows for row in rows if row.method.endswith("5 repeats")] == [60 + 9 * 5 * 60]
    assert [row.rows for row in rows if row.method.endswith("10 draws")] == [60 + 60 * 8 * 10]


def test_a_table_says_what_an_equal_error_takes() -> None:
    rows = [
        Row("PFI", "ours", 0.1, 2.0, 1.0, 1, 10, True),
        Row("PFI", "another", 0.2, 2.0, 3.0, 5, 1000, False),
        Row("PFI", "exact", 0.0, 2.0, 0.5, 1, 10, False),
    ]
    assert table(rows).splitlines()[2:] == [
        "| PFI | ours | 5.00% | 1.000 | 1 | 10 | 1.0 |",
        "| PFI | another | 10.00% | 3.000 | 5 | 1,000 | 12.0 |",
        "| PFI | exact | 0 | 0.500 | 1 | 10 | exact |",
    ]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "find_spec", lambda module: None if module == "sage" else object())
    assert ways.absent() == ["sage-importance"]
