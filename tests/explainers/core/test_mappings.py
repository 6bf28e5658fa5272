"""Probabilities by class, and shares of importances: compiled or not, what Python's own functions say."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers.core import probabilities, shares


def uncompiled(module: ModuleType) -> ModuleType:
    """Return a module of the core as Python reads its source."""
    name = module.__name__.rpartition(".")[2]
    source = Path(str(module.__file__)).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"attributary_explainers.core.uncompiled_{name}", source)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


OF_PROBABILITIES = probabilities, uncompiled(probabilities)
OF_SHARES = shares, uncompiled(shares)
NUMBERS = st.floats() | st.integers(-5, 5)


@pytest.mark.parametrize("module", OF_PROBABILITIES)
@given(
    st.dictionaries(st.integers() | st.text(max_size=2), st.floats(allow_nan=False) | st.integers(-2, 2), min_size=1)
)
def test_the_first_of_the_largest_is_the_most_probable(module: Any, of: dict[Any, float]) -> None:
    assert module.most_probable(of) == max(of, key=of.__getitem__)
    assert module.most_probable(Counter(of)) == max(of, key=of.__getitem__)


@pytest.mark.parametrize("module", OF_PROBABILITIES)
def test_of_nothing_nothing_is_the_most_probable(module: Any) -> None:
    with pytest.raises(ValueError, match="no probability"):
        module.most_probable({})


@pytest.mark.parametrize("module", OF_PROBABILITIES)
@given(st.lists(NUMBERS))
def test_what_is_finite_is_as_the_standard_library_says(module: Any, values: list[float]) -> None:
    assert module.are_finite(dict(enumerate(values))) == all(map(math.isfinite, values))


@pytest.mark.parametrize("module", OF_PROBABILITIES)
def test_a_text_is_no_probability(module: Any) -> None:
    with pytest.raises(TypeError):
        module.are_finite({"a": "0.5"}) or module.most_probable({"a": "0.5"}) / 2


@pytest.mark.parametrize("module", OF_SHARES)
@given(st.lists(st.floats(-1e9, 1e9)))
def test_shares_are_parts_of_what_is_positive(module: Any, values: list[float]) -> None:
    found = module.shares_of(values)
    positive = [max(value, 0.0) for value in values]
    total = math.fsum(positive)
    if total > 1e-300:
        assert found == pytest.approx([value / total for value in positive])
        assert found == OF_SHARES[0].shares_of(values)
    elif total == 0.0:
        assert found == [0.0] * len(values)


@pytest.mark.parametrize("module", OF_SHARES)
def test_where_one_side_has_nothing_all_has_moved(module: Any) -> None:
    assert module.shift_of([0.0, 0.0], [0.25, 0.75]) == module.shift_of([1.0, 0.0], [0.0, 0.0]) == 1.0
    assert module.shift_of([0.0], [0.0]) == module.shift_of([], []) == 0.0
    assert module.shift_of([0.75, 0.25], [0.25, 0.75]) == 0.5
