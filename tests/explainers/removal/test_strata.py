"""Draws that are spread over a reservoir: how likely each position is, and an order that is always the sorted one."""

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attributary_explainers.core.reservoir import Uniforms
from attributary_explainers.removal.strata import (
    HalvesByAge,
    SlotOrder,
    independent_sets,
    prediction_key,
    row_key,
    sort_key,
    strata,
    strata_of_sets,
)

from ..largest import largest_numbers

SIGNIFICANCE = 1e-4  # a right sampler fails once in 10 000 choices of the seed
SIZES = [(1, 1), (1, 3), (5, 1), (5, 2), (7, 3), (10, 10), (4, 10), (100, 7)]


class Given:
    """A generator of which the uniform numbers are told."""

    def __init__(self, numbers):
        self.numbers = numbers

    def random(self, shape):
        return np.array(self.numbers, dtype=float).reshape(shape)


@pytest.mark.parametrize(("n_slots", "n"), SIZES)
def test_every_position_is_equally_likely_by_enumerating_the_intervals_of_u(n_slots, n):
    # Between two multiples of n / n_slots the position of draw k is one and the same: evaluated in their middle.
    likely = [Fraction(0)] * n_slots
    for k in range(n):
        width = Fraction(n_slots, n)  # of a part, in positions
        edges = sorted({Fraction(0), Fraction(1), *(u for j in range(n_slots + 1) if 0 < (u := j / width - k) < 1)})
        for low, high in pairwise(edges):
            numbers = [0.5] * n
            numbers[k] = float((low + high) / 2)
            position = int(strata(n_slots, n, Given(numbers))[k])
            assert k * width - 1 < position < (k + 1) * width  # one per part, counting what lies in it in part
            likely[position] += high - low
    assert likely == [Fraction(n, n_slots)] * n_slots


@pytest.mark.parametrize(("n_slots", "n"), SIZES)
def test_one_position_in_each_part(n_slots, n):
    positions = strata(n_slots, n, np.random.default_rng(1), (50,))
    assert positions.shape == (50, n)
    low, high = np.floor(np.arange(n) * n_slots / n), np.ceil((np.arange(n) + 1) * n_slots / n)
    assert ((low <= positions) & (positions < np.maximum(high, low + 1))).all()
    assert positions.max() < n_slots


@pytest.mark.parametrize(("n_slots", "n"), [(5, 2), (7, 3), (4, 10)])
def test_every_position_is_equally_likely_in_many_draws(n_slots, n):
    rng = np.random.default_rng(2)
    # A single draw of each set, so that those that are counted are independent.
    positions = strata(n_slots, n, rng, (6000,))[np.arange(6000), rng.integers(n, size=6000)]
    assert stats.chisquare(np.bincount(positions, minlength=n_slots)).pvalue > SIGNIFICANCE


def test_the_largest_number_below_one_stays_in_the_reservoir():
    for n_slots, n in SIZES:
        assert strata(n_slots, n, Given([np.nextafter(1.0, 0.0)] * n)).max() == n_slots - 1


@pytest.mark.parametrize("n", [1, 2, 3, 10, 11])
def test_the_sets_are_two_halves(n):
    assert independent_sets(n) == ([1] if n == 1 else [n // 2, n - n // 2])
    both = strata_of_sets(7, n, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    expected = [strata(7, size, rng).tolist() for size in independent_sets(n)]
    assert both == [position for of_half in expected for position in of_half]


def test_the_two_sets_are_independent():
    pairs = np.array([strata_of_sets(3, 2, rng) for rng in [np.random.default_rng(4)] for _ in range(4000)])
    counts = np.bincount(pairs[:, 0] * 3 + pairs[:, 1], minlength=9)
    assert stats.chisquare(counts).pvalue > SIGNIFICANCE


MIXED = [
    *(0, -3, 7.5, 0.0, -0.0, True, False, math.inf, -math.inf, math.nan, None, "", "red", b"bytes"),
    *((1, "a"), (1, None), [1, 2], {"k": 1}, frozenset([1])),
    *(10**400, -(10**400), 2**63, 1 + 2j, Decimal("1.5"), Decimal("NaN"), Fraction(1, 3)),
    *(np.float64(2.5), np.float32("nan"), np.int64(-1), np.bool_(True), np.str_("blue"), np.longdouble(1.5)),
    *(np.datetime64("2024-01-01"), np.datetime64("NaT")),
]

values = st.one_of(
    st.sampled_from(MIXED),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.none(),
    st.booleans(),
    st.tuples(st.integers(), st.text(max_size=1)),
    st.integers(310, 400).map(lambda n: 10**n),
    st.floats(width=32).map(np.float32),
)


def test_every_pair_of_values_can_be_sorted():
    keys = [sort_key(value) for value in MIXED]  # raises nothing, whatever the value
    for a, b in combinations(keys, 2):
        assert (a < b) + (b < a) + (a == b) == 1


@given(st.lists(values, max_size=8))
def test_the_order_of_values_is_one_and_the_same(listed):
    keys = [sort_key(value) for value in listed]
    assert keys == [sort_key(value) for value in listed]
    backwards = keys[::-1]
    assert sorted(keys) == sorted(backwards)  # a strict weak order: no NaN, no types that refuse each other


@given(st.lists(st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=False), st.booleans()), max_size=10))
def test_numbers_are_sorted_as_numbers(numbers):
    assert sorted(numbers, key=sort_key) == sorted(numbers)


def test_kinds_have_their_places():
    row = {"text": "a", "number": 1.0, "nan": math.nan, "other": (1,)}
    keys = [row_key(row, [name]) for name in ("absent", "number", "nan", "text", "other")]
    assert keys == sorted(keys)
    assert len(set(keys)) == 5
    assert row_key(row, ["number", "absent"]) == (sort_key(1.0), *row_key(row, ["absent"]))


@pytest.mark.parametrize("scalar", [np.float64(2.5), np.int64(3), np.bool_(True), np.str_("blue"), np.float32(0.5)])
def test_numpy_scalars_are_sorted_as_builtins_and_leave_no_trace(scalar):
    assert sort_key(scalar) == sort_key(scalar.item())
    assert all(type(part).__module__ == "builtins" for part in sort_key(scalar))


def test_predictions_are_sorted_by_class_and_then_by_probability():
    ordered = [None, {"a": 0.6, "b": 0.4}, {"a": 0.9, "b": 0.1}, {"b": 0.8, "a": 0.2}]
    keys = [prediction_key(p) for p in ordered]
    assert keys == sorted(keys)
    assert [prediction_key(p) for p in (-2.0, -1, 0.5, 1e300)] == sorted(map(prediction_key, (1e300, 0.5, -1, -2.0)))


broken = st.sampled_from(
    [None, {}, math.nan, math.inf, -math.inf, {1: math.inf}, {"a": math.nan, "b": 0.5}, {None: 0.5, "b": 0.5}]
)
predictions = st.one_of(
    st.just({"a": math.nan}), st.builds(lambda p: {"a": p}, st.floats(0, 1)), broken, st.floats(), st.integers()
)


@given(st.lists(st.tuples(st.integers(0, 4), predictions), min_size=8, max_size=60))
def test_an_order_by_predictions_always_holds_every_slot_once(puts):
    # Whatever a model says, a NaN too: with an unsortable key a slot would be there twice and another nowhere.
    order, latest = SlotOrder(), set()
    for slot, prediction in puts:
        order.put(slot, prediction_key(_fresh(prediction)))
        latest.add(slot)
        assert sorted(order.slots()) == sorted(latest)


def _fresh(prediction):
    """An equal prediction with a NaN of its own, as two calls of a model give: `is` does not hold for them."""
    if isinstance(prediction, dict):
        return {label: float(repr(p)) for label, p in prediction.items()}
    return float(repr(prediction)) if isinstance(prediction, float) else prediction


@given(st.lists(st.tuples(st.integers(0, 5), values), max_size=40))
def test_an_order_is_the_sorted_one_at_every_step(puts):
    order, latest = SlotOrder(), {}
    for slot, value in puts:
        latest[slot] = sort_key(value)
        order.put(slot, latest[slot])
        assert order.slots() == [slot for _, slot in sorted((key, slot) for slot, key in latest.items())]


def test_slots_with_equal_keys_are_in_their_own_order():
    order = SlotOrder()
    for slot in (3, 0, 2, 1):
        order.put(slot, (1, 5))
    order.put(2, (1, 5.0))
    assert order.slots() == [0, 1, 2, 3]


def drawn_of(halves, n, rng, stratified):
    slots = np.empty(n, dtype=np.intp)
    halves.halves.draw(Uniforms(rng), stratified, slots)
    return slots.tolist()


def naive_halves(ages, keys):
    """The slots of the older half of the rows and of the others, each by key and slot."""
    by_age = sorted(ages, key=ages.__getitem__)
    n = len(by_age) // 2
    return [[slot for _, slot in sorted((keys[slot], slot) for slot in half)] for half in (by_age[:n], by_age[n:])]


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 39), values, st.sampled_from([None, 0.0, 0.25, 0.5])), max_size=120),
    st.integers(0, 99),
)
def test_halves_by_age_are_the_sorted_ones_at_every_step(size, puts, seed):
    numbers = np.random.default_rng(seed)
    halves, ages, keys = HalvesByAge(), {}, {}
    # Rows need not come in the order of the stream.
    for number, (place, value, p) in zip(numbers.permutation(len(puts)).tolist(), puts, strict=True):
        slot = len(ages) if len(ages) < size else place % size
        ages[slot], keys[slot] = number, () if p is None else (*sort_key(value), p)
        halves.put(slot, keys[slot], number)
        expected = naive_halves(ages, keys)
        copied = pickle.loads(pickle.dumps(halves))
        copied.put(slot, keys[slot], number)
        anew = HalvesByAge.of([keys[i] for i in range(len(keys))], [ages[i] for i in range(len(ages))])
        for one in (halves, copied, anew):
            assert [one.halves.slots(0), one.halves.slots(1)] == expected


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 8])
def test_the_first_half_of_the_draws_is_from_the_older_rows(n_rows, n, stratified):
    halves = HalvesByAge()
    for slot in range(n_rows):
        halves.put(slot, (1, (slot * 3) % 7, 0.5), slot)
    older, younger = halves.halves.slots(0), halves.halves.slots(1)
    assert (sorted(older), sorted(younger)) == (list(range(n_rows // 2)), list(range(n_rows // 2, n_rows)))
    numbers = np.random.default_rng([n, n_rows]).random(n).tolist()
    drawn = drawn_of(halves, n, np.random.default_rng([n, n_rows]), stratified)
    if n == 1:
        assert drawn == [(older + younger)[int(numbers[0] * n_rows)]]
        return
    expected = []
    for of_half, u in ((older or younger, numbers[: n // 2]), (younger, numbers[n // 2 :])):
        for k, number in enumerate(u):
            place = (k + number) * len(of_half) / len(u) if stratified else number * len(of_half)
            expected.append(of_half[min(int(place), len(of_half) - 1)])
    assert drawn == expected
    last = drawn_of(halves, n, largest_numbers(), stratified)
    assert set(last) <= set(range(n_rows)), "never beyond the last one"


@pytest.mark.parametrize("stratified", [True, False])
def test_within_its_half_every_row_is_equally_likely(stratified):
    halves, rng = HalvesByAge(), np.random.default_rng(5)
    for slot in range(7):
        halves.put(slot, (slot % 2, float(slot)), slot)
    # One draw of each set, so that those that are counted are independent.
    drawn = np.array([drawn_of(halves, 4, rng, stratified) for _ in range(6000)])
    one, other = rng.integers(2, size=(2, 6000))
    first, second = drawn[np.arange(6000), one], drawn[np.arange(6000), 2 + other]
    assert stats.chisquare(np.bincount(first, minlength=3)).pvalue > SIGNIFICANCE
    assert stats.chisquare(np.bincount(second, minlength=7)[3:]).pvalue > SIGNIFICANCE
    assert stats.chi2_contingency(np.histogram2d(first, second, bins=(3, 4))[0]).pvalue > SIGNIFICANCE
