"""The values of one feature beside counts made anew from the whole stream."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pytest

from attributary_explainers.core.values import (
    FAR,
    GONE,
    LATEST,
    N_KEPT,
    NEW,
    NOTHING,
    OF_ANOTHER_TYPE,
    STUCK,
    FeatureValues,
)


def fed(values: list[Any]) -> FeatureValues:
    feature = FeatureValues()
    for value in values:
        feature.add(value)
    return feature


def test_a_value_joins_the_reference_when_fifty_others_have_followed() -> None:
    rng = np.random.default_rng(1)
    stream = [None if rng.random() < 0.1 else float(x) for x in rng.normal(size=100)]
    for n in range(1, len(stream) + 1):
        feature = fed(stream[:n])
        reference = stream[: max(0, n - LATEST)]
        assert (feature.n, feature.n_missing) == (len(reference), reference.count(None))
        assert feature.numbers_kept() == sorted(x for x in reference if x is not None)
        assert feature.latest(LATEST) == stream[max(0, n - LATEST) : n]


def test_words_are_counted_until_there_are_too_many_to_know_a_new_one() -> None:
    feature = fed([*("ab" * 100), *["c"] * LATEST])
    assert feature.words == {"a": 100, "b": 100}
    many = fed([f"w{i}" for i in range(300)] + ["x"] * 3)
    assert len(many.words) == 64
    assert many.share_of(NEW) < 1.0, "what is no longer counted is not new"


def test_the_numbers_kept_are_a_sample_of_the_latest_thousands() -> None:
    """A place is taken anew once in 4096 values, so ages are exponential with that mean."""
    means, shares = [], []
    for seed in range(40):
        n = 40_000 + 997 * seed  # other draws have been made by then
        kept = fed([float(i) for i in range(n)]).numbers_kept()
        assert len(kept) == N_KEPT == len(set(kept))
        means.append(n - LATEST - np.mean(kept))
        shares.append(np.mean(np.array(kept) > n - LATEST - 4096))
    assert 0.85 * 4096 < np.mean(means) < 1.15 * 4096
    assert abs(float(np.mean(shares)) - (1.0 - math.exp(-1.0))) < 0.05


def test_the_draws_are_those_of_xorshift_compiled_or_not() -> None:
    """Marsaglia, Xorshift RNGs, 2003: 13, 7 and 17 of 64 bits, from his own seed."""
    n, seed, kept = 5000, 88172645463325252, [float(i) for i in range(N_KEPT)]
    for i in range(N_KEPT, n):
        seed ^= seed << 13 & 2**64 - 1
        seed ^= seed >> 7
        seed ^= seed << 17 & 2**64 - 1
        place = (seed >> 11) % min(i + 1, 4096)
        if place < N_KEPT:
            kept[place] = float(i)
    assert fed([float(i) for i in range(n + LATEST)]).numbers_kept() == sorted(kept)


def test_the_range_leaves_out_one_on_either_side() -> None:
    feature = fed([float(x) for x in np.random.default_rng(2).permutation(N_KEPT)] + [0.5] * LATEST)
    assert (feature.low, feature.high) == (1.0, N_KEPT - 2.0)


@pytest.mark.parametrize(
    ("value", "is_far"),
    [(30.0, False), (140.0, False), (141.0, True), (1.0, True), (9.0, False), (-50.0, True), (math.inf, True)],
)
def test_far_is_half_a_range_beyond_it_or_below_a_third_of_a_scale(value: float, is_far: bool) -> None:
    """The reference is from 20 to 100: beyond 140 it is far, and below 20/3."""
    rng = np.random.default_rng(3)
    reference = [20.0, 20.0, 100.0, 100.0, *rng.uniform(20.0, 100.0, 60).tolist()]
    feature = fed([*reference, *rng.uniform(20.0, 100.0, LATEST).tolist()])
    assert (feature.low, feature.high) == (20.0, 100.0)
    feature.add(value)
    assert feature.share_of(FAR) == (1 / LATEST if is_far else 0.0)


def test_a_range_from_around_nothing_has_no_scale() -> None:
    feature = fed(np.random.default_rng(4).uniform(0.01, 100.0, 64 + LATEST).tolist())
    feature.add(0.0)
    assert feature.share_of(FAR) == 0.0


LARGE = 10**400
CASES: list[tuple[Any, Any]] = [
    (3, 3.0), (True, 1.0), (np.float32(0.5), 0.5), (np.int64(7), 7.0), (Decimal("1.25"), 1.25), (Fraction(1, 4), 0.25),
    (None, None), (math.nan, None), (np.float64("nan"), None), (Decimal("nan"), None), (Decimal("sNaN"), None),
    (pd.NA, None), (pd.NaT, None), (LARGE, math.inf), (-LARGE, -math.inf), ("x" * 100, "x" * 64),
    (pd.Timestamp("2026-01-02"), "2026-01-02 00:00:00"), ((1, 2), "(1, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "read"), CASES, ids=lambda x: str(x)[:12])
def test_every_value_is_a_number_a_word_or_missing(value: Any, read: Any) -> None:
    assert fed([value]).latest(1) == [read]


def run_of(length: int, before: list[Any], value: Any) -> list[int]:
    feature = fed(before)
    return [feature.add(value) for _ in range(length)]


def test_a_run_counts_where_it_is_longer_than_twice_the_longest_before_and_no_chance() -> None:
    rng = np.random.default_rng(5)
    stream = rng.normal(size=1000).tolist()
    assert run_of(90, stream, 1.5) == [NOTHING] * (LATEST - 1) + [STUCK] * (90 - LATEST + 1)
    assert run_of(90, stream, None) == [NOTHING] * (LATEST - 1) + [GONE] * (90 - LATEST + 1)
    paused = [*stream[:500], *[0.0] * 40, *stream[500:]]
    assert run_of(90, paused, 1.5).index(STUCK) == 80, "after a pause of 40, one of 81"
    # Of ones that come in 99 of 100: one run of 1000 comes in 23 000 runs; the rare law alone asks for some 2060.
    often = (rng.random(20_000) < 0.99).astype(float).tolist()
    found = run_of(4000, often, 1.0)
    assert NOTHING in found[:1500]
    assert set(found[:1000]) == {NOTHING}
    assert STUCK in found


def test_of_a_short_history_no_long_run_is_told() -> None:
    rng = np.random.default_rng(6)
    assert set(run_of(100, rng.normal(size=LATEST + 149).tolist(), 1.0)) == {NOTHING}
    assert STUCK in run_of(100, rng.normal(size=LATEST + 200).tolist(), 1.0)


def test_text_among_numbers_is_of_another_type_and_the_other_way_round() -> None:
    rng = np.random.default_rng(7)
    numbers, words = rng.normal(size=400).tolist(), rng.choice(list("abc"), 400).tolist()
    feature = fed(numbers)
    assert [feature.add(str(x)) for x in numbers[:46]][-2:] == [OF_ANOTHER_TYPE] * 2
    feature = fed(words)
    assert OF_ANOTHER_TYPE in [feature.add(x) for x in numbers[:50]]
    mixed = fed([x for pair in zip(numbers, words, strict=True) for x in pair])
    assert {mixed.add(x) for x in words[:60]} == {NOTHING}, "what is half text is no other type as text"


def test_what_leaves_the_range_slowly_does_not_break_it() -> None:
    rng = np.random.default_rng(8)
    drifts = (np.cumsum(rng.normal(size=20_000)) * 0.05 + rng.normal(size=20_000)).tolist()
    feature = FeatureValues()
    assert {feature.add(x) for x in drifts} == {NOTHING}
    ramp = [*rng.normal(size=5000).tolist(), *(rng.normal(size=1000) + 0.05 * np.arange(1000)).tolist()]
    feature = FeatureValues()
    assert {feature.add(x) for x in ramp} == {NOTHING}
    counter = FeatureValues()
    assert {counter.add(i) for i in range(20_000)} == {NOTHING}


def naive_evidence(is_wrong: list[bool]) -> list[float]:
    """Page's test of a share of wrong values behind right ones, counted anew with each row; the reference is all but
    the latest 50."""
    found, evidence = [], 0.0
    for i, wrong in enumerate(is_wrong):
        if i and not is_wrong[i - 1]:
            known = is_wrong[: max(0, i - LATEST)]
            starts = sum(b and not a for a, b in itertools.pairwise([True, *known]))
            bound = math.log(1e6)
            most = starts + bound + math.sqrt(bound * (bound + 2 * starts))
            right = known.count(False)
            p = min(max(0.01, most / right), 1.0) if right else 1.0
            other = 1.0 - (1.0 - p) / 5.0
            evidence += math.log(other / p) if wrong else math.log(1.0 / 5.0)
            evidence = min(max(evidence, 0.0), math.log(1e9))
        found.append(evidence)
    return found


def values_of(is_wrong: Iterable[bool]) -> list[float | None]:
    return [None if wrong else 1.0 + i % 3 for i, wrong in enumerate(is_wrong)]


@pytest.mark.parametrize("before", [0.0, 0.05, 0.5])
def test_the_evidence_is_that_of_a_test_that_counts_anew(before: float) -> None:
    rng = np.random.default_rng(12)
    is_wrong = [*(rng.random(700) < before).tolist(), *(rng.random(100) < 0.8).tolist()]
    feature, expected = FeatureValues(), naive_evidence(is_wrong)
    for value, evidence in zip(values_of(is_wrong), expected, strict=True):
        feature.add(value)
        assert feature.snapshot()["wrong"][3] == pytest.approx(evidence, abs=1e-9)
    assert max(expected) > (1.0 if before == 0.5 else 10.0)


@pytest.mark.parametrize("p", [0.01, 0.2, 0.7, 1.0])
def test_wrong_values_that_are_as_frequent_as_the_bound_are_no_evidence_on_average(p: float) -> None:
    """The mean of what a row multiplies is 1 in closed form, so the test is one of Lorden's."""
    other = 1.0 - (1.0 - p) / 5.0
    right = 0.2 if p == 1.0 else (1.0 - other) / (1.0 - p)
    assert p * (other / p) + (1.0 - p) * right == pytest.approx(1.0)
    assert right == pytest.approx(0.2)


@pytest.mark.parametrize(("share", "clean"), [(0.8, 300), (0.8, 6000), (0.5, 6000), (0.4, 6000)])
def test_what_is_missing_in_some_rows_is_told_in_the_rows_that_the_evidence_takes(share: float, clean: int) -> None:
    """Wald: the evidence grows by its mean in each row, and is told at log 10⁹."""
    p = max(0.01, 2.0 * math.log(1e6) / (clean - LATEST))
    grows = share * math.log((0.8 + 0.2 * p) / p) + (1.0 - share) * math.log(0.2)
    took = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        feature = fed(values_of([False] * clean))
        found = [feature.add(value) for value in values_of((rng.random(400) < share).tolist())]
        first = next(i for i, fault in enumerate(found) if fault != NOTHING)
        assert found[first] == GONE
        took.append(first + 1)
    # The first value, and each behind a right one, weighs: of all rows those are 1 - share.
    assert np.mean(took) == pytest.approx(math.log(1e9) / grows / (1.0 - share), rel=0.35)


def test_what_is_always_missing_now_and_then_is_usual() -> None:
    rng = np.random.default_rng(13)
    for share in (0.02, 0.3, 0.9):
        feature = FeatureValues()
        assert {feature.add(x) for x in values_of((rng.random(30_000) < share).tolist())} == {NOTHING}


def test_half_of_the_values_in_another_unit_are_far_and_a_burst_of_gaps_is_one_gap() -> None:
    rng = np.random.default_rng(14)
    feature = fed(rng.uniform(1.0, 2.0, 3000).tolist())
    half = (x * 100.0 if rng.random() < 0.5 else x for x in rng.uniform(1.0, 2.0, 60).tolist())
    n = next(n for n, x in enumerate(half, start=1) if feature.add(x) == FAR)
    assert n - 5 <= feature.since(FAR) <= n
    assert all(x > 50.0 for x in feature.latest(LATEST, FAR))
    assert len(feature.latest(LATEST, FAR)) == round(LATEST * feature.share_of(FAR))
    gaps = fed([*rng.uniform(1.0, 2.0, 1000).tolist(), *([None] * 15 + [1.5] * 15) * 3])
    assert gaps.snapshot()["wrong"][3] < math.log(1e9), "three starts"


def test_nothing_joins_a_reference_that_is_held() -> None:
    feature = fed(np.random.default_rng(9).normal(size=300).tolist())
    n, kept = feature.n, feature.numbers_kept()
    feature.is_held = True
    for i in range(200):
        feature.add(99.0 + i)
    assert (feature.n, feature.numbers_kept()) == (n, kept)
    feature.is_held = False
    feature.add(98.0)
    assert feature.n == n + 1


@pytest.mark.parametrize("how", ["snapshot", "pickle", "copy"])
@pytest.mark.parametrize("n", [0, 3, 70, 1000])
def test_what_is_restored_goes_on_to_the_bit(n: int, how: str) -> None:
    rng = np.random.default_rng(10)
    made = [None, "a", "b", "ccc", 1.0, 2, 3.5]
    stream = [
        made[i] if u < 0.2 else float(u) for i, u in zip(rng.integers(0, 7, n + 400), rng.random(n + 400), strict=True)
    ]
    feature = fed(stream[:n])
    if how == "snapshot":
        again = FeatureValues()
        again.restore(feature.snapshot())
    else:
        again = pickle.loads(pickle.dumps(feature)) if how == "pickle" else copy.deepcopy(feature)
    assert again.snapshot() == feature.snapshot()
    rest = [*stream[n:], *[None] * 80]
    assert [again.add(x) for x in rest] == [feature.add(x) for x in rest]
    assert again.snapshot() == feature.snapshot()


def test_the_state_of_a_feature_is_a_kilobyte() -> None:
    feature = fed(np.random.default_rng(11).normal(size=5000).tolist())
    plain = orjson.dumps({**feature.snapshot(), "kept": "", "flags": "", "numbers": ""})
    binary = sum(len(feature.snapshot()[name]) for name in ("kept", "flags", "numbers"))
    assert binary <= 64 * 8 + 50 * 9
    assert len(plain) + binary <= 1250
