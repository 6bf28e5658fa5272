"""Reservoirs hold what the paper says with the probability that it says."""

import math
from array import array
from itertools import pairwise

import numpy as np
import orjson
import pytest
from scipy import stats

from attributary_explainers import (
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    GeometricReservoir,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    LaggedReservoir,
    SlidingWindowReservoir,
    SnapshotError,
    UniformReservoir,
    make_reservoir,
)
from tests.explainers.stand_ins import Recording

PAPERS = [name for name in RESERVOIR_NAMES if name != "lagged"]
"""Reservoirs without a gap: an observation may be drawn by the next one."""
N_RUNS = 6000
SIGNIFICANCE = 1e-4  # a right reservoir fails once in 10 000 choices of the seed


def waits(reservoir):
    """The numbers of the observations that wait."""
    return list(array("q", reservoir.snapshot()["waiting"]["numbers"]))


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


@pytest.mark.parametrize("name", PAPERS)
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
            restored = SlidingWindowReservoir(size)
            restored.restore(reservoir.snapshot())
            reservoir = restored
    assert rng.bit_generator.state == state  # nothing is left to chance


@pytest.mark.parametrize("removal", REMOVAL_NAMES)
@pytest.mark.parametrize("name", RESERVOIR_NAMES)
@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.share(2, "size", "explainer", "name", "removal")
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


@pytest.mark.parametrize("with_notes", [True, False])
@pytest.mark.parametrize("name", [*PAPERS, "lagged", "lagged and full"])
def test_a_restored_reservoir_continues_as_if_never_stopped(name, with_notes):
    def make():
        return make_reservoir("lagged", 4, gap=3, reach=6) if "full" in name else make_reservoir(name, 4)

    reservoir, rng = make(), np.random.default_rng(5)

    def note(i):
        return ("label", 0.5, i) if with_notes else None

    for i in range(20):
        reservoir.update({"i": i}, rng, note(i))
    snapshot = reservoir.snapshot()
    taken = orjson.dumps(snapshot, default=bytes.hex)
    restored = make()
    restored.restore(snapshot)
    other = np.random.default_rng()
    other.bit_generator.state = rng.bit_generator.state
    for i in range(20, 60):
        assert reservoir.update({"i": i}, rng, note(i)) == restored.update({"i": i}, other, note(i))
        assert (restored.rows, restored.notes) == (reservoir.rows, reservoir.notes)
        assert restored.by_age.slots() == reservoir.by_age.slots()
    assert restored.n_seen == reservoir.n_seen == 60
    assert restored.snapshot() == reservoir.snapshot()
    assert orjson.dumps(snapshot, default=bytes.hex) == taken  # it shares nothing with what went on
    assert reservoir.notes == [note(row["i"]) for row in reservoir.rows]


@pytest.mark.parametrize("name", RESERVOIR_NAMES)
def test_the_slots_by_age_are_those_of_the_rows_in_the_order_of_the_stream(name):
    reservoir, rng = make_reservoir(name, 5), np.random.default_rng(7)
    for i in range(80):
        reservoir.update({"i": i}, rng, i)
        numbers = [reservoir.rows[slot]["i"] for slot in reservoir.by_age.slots()]
        assert [reservoir.numbers[slot] - 1 for slot in reservoir.by_age.slots()] == numbers
        assert numbers == sorted(row["i"] for row in reservoir.rows)
        assert reservoir.notes == [row["i"] for row in reservoir.rows]


@pytest.mark.parametrize("gap", [1, 2, 5, 30])
@pytest.mark.parametrize(("size", "reach"), [(1, 4), (4, 4), (3, 12), (10, 5)])
def test_what_may_be_drawn_is_as_old_as_the_gap_or_of_the_older_half(size, reach, gap):
    reservoir, rng = LaggedReservoir(size, gap, reach), np.random.default_rng([size, gap])
    for i in range(150):
        # Draws for observation i come from what is stored now.
        assert all(i - row["i"] >= min(gap, i // 2) for row in reservoir.rows)
        assert min(i, 1) <= len(reservoir) <= size
        before = list(reservoir.rows)
        slot = reservoir.update({"i": i}, rng)
        changed = [k for k, row in enumerate(reservoir.rows) if k >= len(before) or row != before[k]]
        assert changed == ([] if slot is None else [slot])
        waiting = waits(reservoir)
        assert waiting == sorted(set(waiting) - set(reservoir.numbers))
    assert len(reservoir) == size


LONG_AGES = [(6, 4, 9, 75), (4, 1, 5, 50), (5, 9, 3, 70)]


@pytest.mark.parametrize(
    ("size", "gap", "reach", "n_items"),
    [*(pytest.param(*case, marks=pytest.mark.long) for case in LONG_AGES), (2, 3, 1, 30)],
)
def test_ages_beyond_the_gap_are_the_sum_of_a_wait_and_a_stay(size, gap, reach, n_items):
    # A reach of at most 3/2 of the size: every observation is chosen. Each time that one has become old enough, one of
    # the room's and it leaves, and takes the place of a stored one.
    leaves, replaced = 1.0 / (size // 2 + 1), 1.0 / size
    drawn = drawn_items(lambda n: LaggedReservoir(n, gap, reach), size, n_items)
    assert drawn[n_items + 1 - gap :].sum() == 0
    since = np.arange(n_items + 1 - gap)
    waits, stays = leaves * (1.0 - leaves) ** since, (1.0 - replaced) ** since
    expected = np.convolve(waits, stays)[: len(since)][::-1] / size
    recent = expected * N_RUNS > 5.0  # the others have seen the beginning, or are too few to be counted one by one
    assert not recent[: 2 * size].any()
    observed, rest = drawn[: len(since)][recent], drawn[: len(since)][~recent].sum()
    expected = np.append(expected[recent], 1.0 - expected[recent].sum())
    assert stats.chisquare(np.append(observed, rest), expected * N_RUNS).pvalue > SIGNIFICANCE


@pytest.mark.parametrize(("size", "reach", "period"), [(50, 600, 300), (50, 600, 900), (100, 900, 450)])
def test_what_is_stored_follows_a_season_as_little_as_said(size, reach, period):
    reservoir, rng, w, found = LaggedReservoir(size, 1, reach), np.random.default_rng(3), 2.0 * np.pi / period, []
    for i in range(60_000):
        reservoir.update({"i": i}, rng)
        if i > 6 * reach and i % 10 == 0:
            found.append(np.exp(1j * w * (i - np.array(reservoir.numbers))).mean())
    said = 1.0 / ((1.0 - 1j * w * reach / 3.0) * (1.0 - 2j * w * reach / 3.0))
    # Means of 20 parts, which are longer than what is stored: as if independent.
    parts = np.array([part.mean() for part in np.array_split(np.array(found), 20)])
    error = abs(parts - parts.mean()).std(ddof=1) / math.sqrt(len(parts))
    assert abs(parts.mean() - said) < 4.0 * error + 0.1 * abs(said)
    assert abs(said) < 0.2


@pytest.mark.parametrize(
    ("alpha", "given", "size", "within"),
    [
        *[(0.001, {}, 500, 3000), (0.02, {}, 100, 150), (0.01, {}, 200, 300), (1.0, {}, 100, 3)],
        *[(0.02, {"size": 20}, 20, 150), (0.02, {"reach": 1000}, 500, 1000), (0.02, {"reach": 180}, 120, 180)],
    ],
)
def test_what_is_left_open_is_settled_by_the_smoothing_factor(alpha, given, size, within):
    reservoir, rng = LaggedReservoir(gap=1, **given), np.random.default_rng(1)
    explainer = IncrementalPFI(lambda x: 0.0, loss="squared", alpha=alpha, reservoir=reservoir)
    assert explainer.reservoir is reservoir
    assert reservoir.size == size
    assert explainer.parameters["reach"] == given.get("reach")
    n = 6000
    stored = sum(reservoir.update({"i": i}, rng) is not None for i in range(n))
    chosen = stored + len(waits(reservoir))
    p = np.minimum(size / np.minimum(np.arange(1, n + 1), 2 / 3 * within), 1.0)
    assert abs(chosen - p.sum()) <= 4.5 * math.sqrt((p * (1 - p)).sum())


def test_the_gap_and_the_room_of_a_reservoir_open_as_the_stream_grows():
    reservoir, rng, held, waiting = LaggedReservoir(1000, 200, 3000), np.random.default_rng(1), [], []
    for i in range(4000):
        reservoir.update({"i": i}, rng)
        held.append(len(reservoir))
        waiting.append(len(waits(reservoir)) if i < 1000 or i > 3900 else 0)
    assert held[:5] == [1, 1, 2, 2, 3]
    # Nothing is lost until the reservoir is full. Of n, half wait for the gap at first, and n / 6 in the room.
    assert [h + w for h, w in zip(held[:900], waiting[:900], strict=True)] == list(range(1, 901))
    assert held[300] == 301 - 150 - 301 // 6
    assert held[899] == 900 - 199 - 900 // 6
    assert abs(np.mean(waiting[3901:]) - (500 + 199 / 2)) < 30  # the room, and one of two within the gap
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(held))


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "10"])
@pytest.mark.parametrize("parameter", ["size", "gap", "reach"])
def test_what_is_no_positive_integer_is_refused(parameter, size):
    with pytest.raises(InvalidParameterError, match=rf"^{parameter} must be an integer >= 1, got "):
        make_reservoir("lagged", **{parameter: size})
    if parameter == "size":
        with pytest.raises(InvalidParameterError, match=r"^size must be an integer >= 1, got "):
            UniformReservoir(size)
    else:
        with pytest.raises(InvalidParameterError, match=rf"^{parameter} must be left out: only the reservoir lagged"):
            make_reservoir("uniform", 5, **{parameter: 7})


def test_an_unknown_reservoir_is_refused_by_name():
    names = "geometric, lagged, sliding_window, uniform"
    with pytest.raises(InvalidParameterError, match=rf"^reservoir must be one of {names}, got 'fifo'"):
        make_reservoir("fifo", 3)


def test_the_state_of_another_reservoir_is_refused():
    with pytest.raises(SnapshotError, match=r"expected the reservoir 'lagged', got 'uniform'"):
        make_reservoir().restore(UniformReservoir(3).snapshot())


@pytest.mark.parametrize("forged", [b"1234567", 5, [1]])
def test_forged_numbers_of_rows_are_refused(forged):
    reservoir = make_reservoir("lagged", 6, 4, 9)
    with pytest.raises(SnapshotError, match="not what an explainer has written"):
        reservoir.restore({**reservoir.snapshot(), "numbers": forged})
