"""Units and swapped features, recognised from samples of both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from attributary_explainers.inputs.units import swapped_with, unit_of

SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "ages": lambda rng, n: rng.integers(17, 91, n).astype(float),
    "celsius": lambda rng, n: 15.0 + 10.0 * rng.standard_normal(n),
    "salaries": lambda rng, n: rng.uniform(20e3, 150e3, n),
    "latitudes": lambda rng, n: 50.0 + 0.1 * rng.standard_normal(n),
}
UNITS = {
    "12 times what it was": (12.0, 0.0),
    "100 times what it was": (100.0, 0.0),
    "1 000 times what it was": (1000.0, 0.0),
    "divided by 100": (0.01, 0.0),
    "in degrees Fahrenheit, and was in Celsius": (1.8, 32.0),
    "in kelvin, and was in degrees Celsius": (1.0, 273.15),
}


PAIRS = [
    # 32 or 273 more are nothing among salaries.
    (shape, words) for shape in SHAPES for words, (_, offset) in UNITS.items() if shape != "salaries" or not offset
]  # fmt: skip


@pytest.mark.parametrize(("shape", "words"), PAIRS)
def test_a_unit_is_recognised_and_never_another_one_by_name(shape: str, words: str) -> None:
    factor, offset = UNITS[words]
    right = near = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        before, after = SHAPES[shape](rng, 64), factor * SHAPES[shape](rng, 45) + offset
        unit = unit_of(before.tolist(), after.tolist())
        if unit is None:
            continue
        assert unit.words == words or unit.words.startswith(("about", "10 times")), (seed, unit)
        right += unit.words == words
        near += abs(unit.factor / factor - 1.0) < 0.35
    assert right >= 15
    assert near >= 34 or (offset and right >= 28)


@pytest.mark.parametrize(
    ("words", "least"),
    [(words, 24 if "degrees" in words else 35) for words in UNITS if not words.startswith("divided")],
)
@pytest.mark.parametrize("kept", [0.98, 0.995])
def test_a_stretch_of_a_slow_series_shows_its_unit_and_never_another_one(words: str, least: int, kept: float) -> None:
    """Of 40 series whose values hang together; where more than one unit would do, none is said."""
    (factor, offset), right = UNITS[words], 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        series = [0.0]
        for step in rng.standard_normal(6044):
            series.append(kept * series[-1] + float(np.sqrt(1.0 - kept**2) * step))
        celsius = np.round(18.0 + 9.0 * np.array(series), 1)
        before, after = rng.choice(celsius[2000:6000], 64), factor * celsius[6000:] + offset
        unit = unit_of(before.tolist(), after.tolist(), float(celsius[5999]))
        assert unit is None or unit.words == words, (seed, unit)
        right += unit is not None
    assert right >= least


def test_whole_numbers_whose_multiples_come_show_the_factor() -> None:
    """Of 45 ages in months a quarter would be taken for about 11 times what they were."""
    named = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        before, after = SHAPES["ages"](rng, 64), 12.0 * SHAPES["ages"](rng, 45)
        found = unit_of(before.tolist(), after.tolist())
        named.append(None if found is None else found.words)
    assert named.count("12 times what it was") >= 39


@pytest.mark.parametrize("shape", SHAPES)
def test_what_has_not_changed_has_no_unit(shape: str) -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        assert unit_of(SHAPES[shape](rng, 64).tolist(), SHAPES[shape](rng, 45).tolist()) is None


def test_a_factor_that_is_no_unit_is_estimated_and_noise_is_none() -> None:
    rng = np.random.default_rng(1)
    ages = SHAPES["ages"](rng, 64)
    unit = unit_of(ages.tolist(), (4.2 * SHAPES["ages"](rng, 45)).tolist())
    assert unit is not None
    assert unit.words.startswith("about ")
    assert 3.7 < unit.factor < 4.7
    smaller = unit_of((4.2 * ages).tolist(), SHAPES["ages"](rng, 45).tolist())
    assert smaller is not None
    assert smaller.words.startswith("about one part in ")
    assert 3.7 < 1.0 / smaller.factor < 4.7
    assert unit_of(ages.tolist(), (1000.0 + rng.exponential(5000.0, 45)).tolist()) is None, "of another shape"


def test_few_values_or_few_different_ones_have_no_unit() -> None:
    ages = SHAPES["ages"](np.random.default_rng(2), 64).tolist()
    assert unit_of(ages, [12.0 * x for x in ages[:19]]) is None
    assert unit_of(ages, [12.0 * x for x in ages[:20]]) is not None
    assert unit_of([0.0, 1.0] * 32, [0.0, 12.0] * 22) is None


def test_swapped_features_are_recognised_and_alike_ones_are_not() -> None:
    rng = np.random.default_rng(3)
    names = ("ages", "celsius", "salaries", "latitudes")
    before = {name: SHAPES[name](rng, 64).tolist() for name in names}
    after = {name: SHAPES[name](rng, 45).tolist() for name in names}
    after["ages"], after["salaries"] = after["salaries"], after["ages"]
    assert swapped_with("ages", before, after) == "salaries"
    assert swapped_with("salaries", before, after) == "ages"
    assert swapped_with("celsius", before, after) is None
    copied = {**after, "ages": SHAPES["celsius"](rng, 45).tolist(), "salaries": before["salaries"]}
    assert swapped_with("ages", before, copied) is None, "celsius is as it was: copied over, not swapped"
    moved = {**copied, "ages": before["salaries"][:45], "salaries": SHAPES["celsius"](rng, 45).tolist()}
    assert swapped_with("ages", before, moved) is None, "the salaries are no ages"
