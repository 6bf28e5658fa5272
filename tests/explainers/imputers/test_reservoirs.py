"""Reservoirs hold what the paper says with the probability that it says."""

import numpy as np
import pytest
from scipy import stats

from attributary_explainers import (
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    GeometricReservoir,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    Reservoir,
    SlidingWindowReservoir,
    SnapshotError,
    UniformReservoir,
    make_reservoir,
)
from tests.explainers.stand_ins import Recording

N_RUNS = 6000
SIGNIFICANCE = 1e-4  # a right reservoir fails once in 10 000 choices of the seed


def drawn_items(reservoir, size, n_items):
    """Of each run the item that one uniform draw gives after `n_items`: independent, so chi-square holds exactly."""
    drawn = np.zeros(n_items, dtype=int)
    for run in range(N_RUNS):
        rng = np.random.default_rng([run, n_items])
        storage = reservoir(size)
        for i in range(n_items):
            storage.update({"i": i}, rng)
        drawn[storage.rows[int(rng.integers(len(storage)))]["i"]] += 1
    return drawn


@pytest.mark.parametrize(("size", "n_items"), [(1, 2), (1, 3), (2, 4), (8, 40)])
def test_uniform_keeps_every_past_item_equally_often(size, n_items):
    # The short streams show a probability that is wrong by one item, the long one that nothing adds up.
    drawn = drawn_items(UniformReservoir, size, n_items)
    assert stats.chisquare(drawn).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("size", [4, 8])
def test_geometric_draws_at_s_the_item_of_r_with_p_times_1_minus_p_to_the_s_minus_r_minus_1(size):
    n_items, p = 24, 1.0 / size
    drawn = drawn_items(GeometricReservoir, size, n_items)
    s = n_items  # items 0..s-1 have been seen when the draw at time s is made
    expected = np.array([p * (1 - p) ** (s - max(r, size - 1) - 1) for r in range(n_items)])
    assert expected.sum() == pytest.approx(1.0, abs=1e-12)  # the first `size` items fill it, unharmed until then
    assert stats.chisquare(drawn, expected * N_RUNS).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("name", RESERVOIR_NAMES)
def test_a_reservoir_fills_up_and_then_changes_no_slot_but_the_one_that_it_tells(name):
    reservoir, rng, n_refused, reused = make_reservoir(name, 5), np.random.default_rng(1), 0, {"i": -1, "j": "kept"}
    for i in range(300):
        before = [row["i"] for row in reservoir.rows]
        reused["i"] = i  # reaches no stored row: they are copies
        slot = reservoir.update(reused, rng)
        assert reused == {"i": i, "j": "kept"}
        after = [row["i"] for row in reservoir.rows]
        assert len(reservoir) == len(after) == len(set(after)) == min(i + 1, 5)
        if i < 5:
            assert after == list(range(i + 1))
        if slot is None:
            n_refused += 1
            assert after == before
        else:
            assert type(slot) is int
            assert after == [*before[:slot], i, *before[slot + 1 :]]
    assert reservoir.n_seen == 300
    assert (n_refused > 0) == (name == "uniform")
    assert all(row is not reused and row["j"] == "kept" for row in reservoir.rows)


def test_geometric_always_takes_the_newest_and_forgets_a_uniformly_chosen_slot():
    reservoir, rng, slots = GeometricReservoir(6), np.random.default_rng(2), np.zeros(6, dtype=int)
    for i in range(6006):
        before = [row["i"] for row in reservoir.rows]
        reservoir.update({"i": i}, rng)
        after = [row["i"] for row in reservoir.rows]
        if i >= 6:
            (changed,) = [k for k in range(6) if before[k] != after[k]]
            assert after[changed] == i
            slots[changed] += 1
    assert stats.chisquare(slots).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_sliding_window_holds_exactly_the_last_observations(size):
    reservoir, rng = SlidingWindowReservoir(size), np.random.default_rng(6)
    state = rng.bit_generator.state
    for i in range(40):
        slot = reservoir.update({"i": i}, rng)
        assert sorted(row["i"] for row in reservoir.rows) == list(range(max(0, i + 1 - size), i + 1))
        assert reservoir.rows[slot] == {"i": i}
        if i == 23:
            reservoir = Reservoir.from_snapshot(reservoir.snapshot())
    assert rng.bit_generator.state == state  # nothing is left to chance


@pytest.mark.parametrize("removal", REMOVAL_NAMES)
@pytest.mark.parametrize("name", RESERVOIR_NAMES)
@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("size", [1, 4])
def test_every_value_offered_in_place_of_a_feature_is_of_an_earlier_observation(explainer, name, size, removal):
    model = Recording()
    explaining = explainer(
        model, loss="squared", n_samples=3, removal=removal, reservoir=make_reservoir(name, size), seed=4
    )
    replaced = 0
    for t in range(60):
        model.rows.clear()
        x = {"a": t, "b": t, "c": t}
        explaining.explain_one(x, 0.0)
        for row in model.rows:
            assert set(row) == {"a", "b", "c"}
            assert all(0 <= value <= t for value in row.values())
            replaced += sum(value < t for value in row.values())
        if t:
            assert all(min(row.values()) < t for row in model.rows if row != x)
            # Only h_t(x_t) itself is asked without a replacement: no draw can have been x_t.
            assert sum(row == x for row in model.rows) == 1
    assert replaced > 0


@pytest.mark.parametrize("name", RESERVOIR_NAMES)
def test_a_restored_reservoir_continues_as_if_never_stopped(name):
    reservoir, rng = make_reservoir(name, 4), np.random.default_rng(5)
    for i in range(20):
        reservoir.update({"i": i}, rng)
    snapshot = reservoir.snapshot()
    restored = Reservoir.from_snapshot(snapshot)
    other = np.random.default_rng()
    other.bit_generator.state = rng.bit_generator.state
    for i in range(20, 60):
        reservoir.update({"i": i}, rng)
        restored.update({"i": i}, other)
    assert type(restored) is type(reservoir)
    assert (restored.rows, restored.n_seen) == (reservoir.rows, reservoir.n_seen)
    assert snapshot["n_seen"] == 20  # the snapshot shares nothing with what went on
    assert all(row["i"] < 20 for row in snapshot["rows"])


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None, "10"])
def test_a_size_that_is_no_positive_integer_is_refused(size):
    with pytest.raises(InvalidParameterError, match=r"^size must be an integer >= 1, got "):
        UniformReservoir(size)


def test_an_unknown_reservoir_is_refused_by_name():
    with pytest.raises(
        InvalidParameterError, match=r"^reservoir must be one of geometric, sliding_window, uniform, got 'fifo'"
    ):
        make_reservoir("fifo", 3)
    with pytest.raises(SnapshotError, match="fifo"):
        Reservoir.from_snapshot({"name": "fifo", "size": 3, "n_seen": 0, "rows": []})
