"""Numbers of values are in the order of the values, whatever order these come in and however many lie close."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers.ordering import OrderNumbers, sort_key

a_value = st.one_of(st.floats(allow_nan=False), st.text(max_size=3), st.integers(-(2**70), 2**70))


def check(order_numbers: OrderNumbers, values: list[Any]) -> None:
    """By Python's own sort: the numbers rise strictly from each value to the next one."""
    in_order = sorted(range(len(values)), key=lambda i: sort_key(values[i]))
    numbers = [order_numbers.numbers[i] for i in in_order]
    assert len(order_numbers.numbers) == len(values)
    assert all(one < other for one, other in pairwise(numbers))


@settings(max_examples=100)
@given(parts=st.lists(st.lists(a_value, max_size=6), max_size=8))
def test_numbers_are_in_the_order_of_the_values(parts: list[list[Any]]) -> None:
    order_numbers, values = OrderNumbers(), []
    for part in parts:
        values += [value for value in dict.fromkeys(part) if value not in values]
        before = list(order_numbers.numbers)
        is_anew = order_numbers.extend(values)
        check(order_numbers, values)
        assert is_anew or order_numbers.numbers[: len(before)] == before


@pytest.mark.parametrize("sign", [1, -1])
def test_a_gap_that_is_used_up_is_numbered_anew(sign: int) -> None:
    order_numbers, values = OrderNumbers(), [sign * value for value in range(100)]
    order_numbers.extend(values)
    n_anew = 0
    for i in range(500):
        values.append(sign * (50.0 + 0.5 / (i + 2)))
        n_anew += order_numbers.extend(values)
        check(order_numbers, values)
    assert 2 <= n_anew <= 500 / 40
