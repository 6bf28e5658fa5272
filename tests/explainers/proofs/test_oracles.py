"""The oracles' own proof: they give docs/known-values.md to the printed digits, and agree with river's generators."""

from fractions import Fraction

import pytest
from river.datasets import synth

from tests.explainers.oracles import (
    FEATURES,
    POINTS,
    agrawal_function_1,
    agrawal_pfi,
    draws_limit,
    exact_pfi,
    exact_sage,
    log_loss,
    medium_or_large,
    one_draw_limit,
    small_and_red,
    squared,
    stagger_stream,
)

PRINTED = 5e-7  # half a unit of the sixth decimal, the last that docs/known-values.md prints


def nearly_sure(concept):
    return lambda x: 0.95 if concept(x) else 0.05


@pytest.mark.parametrize(
    ("concept", "loss", "model", "sage", "one_draw"),
    [
        (small_and_red, squared, small_and_red, (0.049383, 0.049383, 0), (0.065844, 0.065844, -0.032922)),
        (medium_or_large, squared, medium_or_large, (0.222222, 0, 0), (0.370370, -0.074074, -0.074074)),
        (small_and_red, log_loss, nearly_sure(small_and_red), (0.151980, 0.151980, 0), (0.198256, 0.198256, -0.092553)),
        (medium_or_large, log_loss, nearly_sure(medium_or_large), (0.585836, 0, 0), (1.067705, -0.240935, -0.240935)),
    ],
)
def test_enumeration_gives_the_printed_sage_values(concept, loss, model, sage, one_draw):
    exact = exact_sage(concept, model, loss)
    limit = one_draw_limit(concept, model, loss)
    assert list(exact.values()) == pytest.approx(sage, abs=PRINTED)
    assert list(limit.values()) == pytest.approx(one_draw, abs=PRINTED)
    assert sum(exact.values()) == pytest.approx(sum(limit.values()), abs=1e-12)  # efficiency: both lose the same


def test_enumeration_gives_the_printed_pfi_values():
    assert list(exact_pfi(small_and_red).values()) == [Fraction(4, 27), Fraction(4, 27), 0]
    assert list(exact_pfi(medium_or_large).values()) == [Fraction(4, 9), 0, 0]


def test_the_binomial_mixture_meets_both_limits():
    # One draw is one draw, whatever the reservoir's size; of two draws the enumeration is short enough to do here.
    one = draws_limit(small_and_red, small_and_red, squared, n_draws=1, n_rows={7: 1.0})
    assert list(one.values()) == pytest.approx(
        list(one_draw_limit(small_and_red, small_and_red, squared).values()), abs=1e-12
    )
    many = draws_limit(medium_or_large, medium_or_large, squared, n_draws=2, n_rows={1: 1.0})
    assert list(many.values()) == pytest.approx(
        list(one_draw_limit(medium_or_large, medium_or_large, squared).values()), abs=1e-12
    )  # two draws of a single row are one draw
    exact = exact_sage(medium_or_large, medium_or_large, squared)
    limit = one_draw_limit(medium_or_large, medium_or_large, squared)
    close = draws_limit(medium_or_large, medium_or_large, squared, n_draws=60, n_rows={100: 1.0})
    # Squared loss: the excess is variance times 1/m + (1 - 1/m) / L, the variance of a mean of m draws out of L rows.
    share = 1 / 60 + (1 - 1 / 60) / 100
    for feature in FEATURES:
        assert close[feature] == pytest.approx(exact[feature] + share * (limit[feature] - exact[feature]), abs=1e-12)


def test_the_switch_between_the_concepts_changes_seven_labels_of_nine():
    assert Fraction(sum(small_and_red(x) != medium_or_large(x) for x in POINTS), 27) == Fraction(7, 9)


@pytest.mark.parametrize(("number", "concept"), [(0, small_and_red), (2, medium_or_large)])
def test_river_encodes_the_points_and_concepts_in_this_way(number, concept):
    stream = list(synth.STAGGER(classification_function=number, seed=1).take(1000))
    assert {tuple(x.values()) for x, _ in stream} == {tuple(x.values()) for x in POINTS}
    assert all(tuple(x) == FEATURES for x, _ in stream)
    assert [y for _, y in stream] == [concept(x) for x, _ in stream]


def test_the_oracles_stream_visits_every_point_equally_often():
    stream = stagger_stream(small_and_red, 2700, seed=3)
    counts = [sum(x == point for x, _ in stream) for point in POINTS]
    assert all(abs(count - 100) < 5 * (100 * 26 / 27) ** 0.5 for count in counts)  # five standard deviations


def test_agrawal_by_interval_arithmetic():
    assert agrawal_pfi() == {"salary": Fraction(80, 169), "age": Fraction(16600, 48373)}
    stream = list(synth.Agrawal(classification_function=1, seed=4).take(1000))
    assert [agrawal_function_1(x) for x, _ in stream] == [y for _, y in stream]
    assert {x["age"] for x, _ in stream} == set(range(20, 81))
