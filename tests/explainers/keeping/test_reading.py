"""Observations read by compiled code: kept as Python keeps them, and left to Python where they are not numbers."""

from __future__ import annotations

import copy
import math
import pickle
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from attributary_explainers.compiled import is_compiling
from attributary_explainers.keeping.kept import keep_apart
from attributary_explainers.keeping.reading import Reader, read
from attributary_explainers.meanwhile import waiting
from attributary_explainers.objects import has_failed

pytestmark = pytest.mark.skipif(not is_compiling(), reason="kernels are not compiled")


@pytest.fixture(autouse=True)
def compiled_at_once() -> Iterator[None]:
    with waiting():
        yield
    assert not has_failed()


NAN = struct.unpack("<d", b"\x01\x02\x03\x04\x05\x06\xf8\x7f")[0]
FIRST, PROBABILITIES = {"a": 1.5, "b": 2}, {False: 0.25, True: 0.75}


def reader(most: int = 4, labels: tuple[Any, ...] = (False, True)) -> Reader:
    found = Reader.of(FIRST, labels, most)
    assert found is not None
    return found


def is_read(by: Reader, x: Any, y_pred: Any = PROBABILITIES) -> bool:
    return bool(read(by.known, id(x), id(y_pred)))


def test_what_is_read_is_what_python_keeps_to_the_last_bit() -> None:
    by = reader(most=12)
    given: list[dict[str, Any]] = [
        {"a": a, "b": b} for a in (-1, 2**63 - 1, -(2**63), NAN) for b in (-0.0, 5, math.inf)
    ]
    own = [value for x in given for value in x.values() if value not in (-1, 5)]  # which others have, too
    before = [sys.getrefcount(value) for value in own]
    swapped = {True: 0.75, False: 0.25}
    assert all(is_read(by, x, swapped if i % 2 else PROBABILITIES) for i, x in enumerate(given))
    assert before == [sys.getrefcount(value) for value in own]
    assert not is_read(by, FIRST), "there is no room"
    rows, probabilities = by.taken_out()
    assert rows == [keep_apart(x) for x in given]
    assert [row.layout for row in rows] == [keep_apart(x).layout for x in given]
    assert probabilities == [[0.25, 0.75]] * 12
    assert is_read(by, {"".join(("", "a")): 1.5, "b": 2})
    assert by.taken_out()[0] == [keep_apart(FIRST)]
    assert by.taken_out() == ([], [])


@pytest.mark.parametrize(
    "x",
    [
        {"b": 2, "a": 1.5}, {"a": 1.5}, {"a": 1.5, "c": 2}, {"a": 1.5, "b": 2, "c": 3}, {"a": 1.5, 1: 2}, {},
        {"a": 1.5, "b": 2**63}, {"a": 2**70, "b": "text"}, {"a": True, "b": 2}, {"a": None, "b": 2},
        {"a": np.float64(1.5), "b": 2}, {"a": np.int64(1), "b": 2}, {np.str_("a"): 1.5, "b": 2},
    ],
)  # fmt: skip
def test_other_observations_are_left_to_python(x: dict[Any, Any]) -> None:
    by = reader()
    assert not is_read(by, x)
    assert by.taken_out() == ([], [])
    assert is_read(by, FIRST)


@pytest.mark.parametrize(
    "y_pred",
    [
        {False: 1.0}, {False: 0.5, "b": 0.5}, {False: 0.5, True: 0.25, 2: 0.25}, {}, {False: math.nan, True: 0.5},
        {False: math.inf, True: 0.0}, {False: 1, True: 0}, {False: np.float64(0.5), True: 0.5}, {False: "a", True: 0.5},
    ],
)  # fmt: skip
def test_other_predictions_are_left_to_python(y_pred: dict[Any, Any]) -> None:
    by = reader()
    assert not is_read(by, FIRST, y_pred)
    assert by.taken_out() == ([], [])
    assert is_read(by, FIRST, {0: 0.25, 1: 0.75}), "equal labels are found as a dict finds them"


def test_what_compiled_code_cannot_read_has_no_reader() -> None:
    for x in ({1: 1.0}, {"a": "text"}, {"a": True}, {}, {f"f{i}": 1.0 for i in range(63)}):
        assert Reader.of(x, (False, True), 4) is None
    assert Reader.of(FIRST, (), 4) is None
    assert Reader.of(FIRST, (False, 1.5), 4) is None
    assert copy.deepcopy(reader()) is None
    assert pickle.loads(pickle.dumps(reader())) is None
