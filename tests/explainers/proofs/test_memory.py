"""State does not grow with the stream: after many times as many observations it is what it was.

Two sizes are taken each time: of the pickled snapshot, and of all that the object holds, whether or not a snapshot has
it. Parameters are small so that two thousand observations are many times what the state remembers.
"""

from __future__ import annotations

import gc
import itertools
import pickle
import tracemalloc
from types import FunctionType, ModuleType

import numpy as np
import pytest
from river import drift, tree

from attributary_explainers import (
    RESERVOIR_NAMES,
    ChangeExplainer,
    ConditionalImputer,
    ConditionalSampler,
    ConstantImputer,
    GeometricReservoir,
    IncrementalMDI,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    IntervalPFI,
    LaggedReservoir,
    SlidingWindowReservoir,
    SlidingWindowSAGE,
    UniformReservoir,
    make_reservoir,
)
from attributary_explainers.checks.subject import n_held, size_of
from attributary_explainers.smoothing import importance
from attributary_explainers.smoothing.means import MarginalPrediction, SmoothedPrediction

pytestmark = pytest.mark.long

MARGIN = 1.05


def linear(x):
    return 2.0 * x["a"] - x.get("b", 0.0)


def observations(seed=1):
    """No number comes twice, so that whoever counts values is found out."""
    rng = np.random.default_rng(seed)
    while True:
        for a, b, noise in rng.normal(size=(1000, 3)).tolist():
            yield {"a": a, "b": b}, 2.0 * a - b + noise


def feed(explainer, stream, n):
    for x, y in itertools.islice(stream, n):
        explainer.explain_one(x, y)


def assert_stays(explainer, early, late, *, feed=feed, stream=None):
    stream = observations() if stream is None else stream
    feed(explainer, stream, early)
    before = size_of(explainer.snapshot()), n_held(explainer, explainer.model)
    feed(explainer, stream, late - early)
    after = size_of(explainer.snapshot()), n_held(explainer, explainer.model)
    assert after[0] <= MARGIN * before[0], f"bytes of the snapshot: {before[0]}, then {after[0]}"
    assert after[1] <= MARGIN * before[1], f"objects held: {before[1]}, then {after[1]}"
    return before


def options(reservoir=GeometricReservoir, **others):
    return {"loss": "squared", "alpha": 0.01, "n_samples": 1, "seed": 1, "reservoir": reservoir(20), **others}


def lagged(size):
    return LaggedReservoir(size, gap=10, reach=60)


def own_imputer(imputer, **others):
    return {**options(removal=imputer, **others), "reservoir": None}


def constants():
    return ConstantImputer({"a": 0.0, "b": 0.0})


def conditional():
    return ConditionalImputer(GeometricReservoir(20), small_sampler())


def small_sampler():
    return ConditionalSampler(leaf_size=10, grace_period=50, max_depth=3, max_leaves=8, forget_after=500, seed=1)


EXPLAINERS = {
    "PFI": lambda: IncrementalPFI(linear, **options()),
    "PFI constant": lambda: IncrementalPFI(linear, **own_imputer(constants())),
    "SAGE": lambda: IncrementalSAGE(linear, **options()),
    "interval PFI": lambda: IntervalPFI(linear, interval=50, loss="squared", seed=1),
    "sliding window SAGE": lambda: SlidingWindowSAGE(
        linear, window=20, stride=100, n_samples=1, loss="squared", seed=1
    ),
    "PDP": lambda: IncrementalPDP(linear, grid_size=2, window=20, n_ice=2),
    "PDP of categories": lambda: IncrementalPDP(linear, grid_size=2, window=20, categorical=["a", "b"]),
    "MDI": lambda: IncrementalMDI(tree.HoeffdingTreeRegressor()),
    "PFI lagged": lambda: IncrementalPFI(linear, **options(lagged)),
    "SAGE lagged": lambda: IncrementalSAGE(linear, **options(lagged)),
    "PFI uniform": lambda: IncrementalPFI(linear, **options(UniformReservoir)),
    "PFI sliding window": lambda: IncrementalPFI(linear, **options(SlidingWindowReservoir)),
    "PFI independent": lambda: IncrementalPFI(linear, **options(sampling="independent")),
    "PFI product": lambda: IncrementalPFI(linear, **options(removal="product", groups={"both": ["a", "b"]})),
    "SAGE product": lambda: IncrementalSAGE(linear, **options(removal="product")),
    "SAGE constant": lambda: IncrementalSAGE(linear, **own_imputer(constants())),
    "SAGE permutations": lambda: IncrementalSAGE(linear, **options(n_permutations=2)),
}


@pytest.mark.parametrize("name", EXPLAINERS)
def test_after_10_000_observations_state_is_what_it_was_after_2000(name):
    """A twentieth of its size more is found: of 5 kB, a byte that is kept of every thirty observations."""
    assert_stays(EXPLAINERS[name](), 2000, 10_000)


@pytest.mark.parametrize("name", RESERVOIR_NAMES)
def test_a_reservoir_holds_after_20_000_observations_what_it_held_after_2000(name):
    reservoir, rng, sizes = make_reservoir(name, 50), np.random.default_rng(1), []
    for x, _ in itertools.islice(observations(), 20_000):
        reservoir.update(x, rng)
        if reservoir.n_seen in (2000, 20_000):
            sizes.append((size_of(reservoir.snapshot()), n_held(reservoir, None)))
    assert all(late <= MARGIN * early for early, late in zip(*sizes, strict=True)), sizes


def related():
    """b says what a is, in another way after every 700 observations: trees grow, err, and are exchanged."""
    for i, (x, y) in enumerate(observations()):
        turn = -1.0 if i // 700 % 2 else 1.0
        yield {"a": x["a"], "b": turn * x["a"] + 0.1 * x["b"], "kind": "up" if x["a"] * turn > 0 else "down"}, y


def peaks(measure, step, stream, marks, every=250):
    """Largest sizes up to each mark: trees that are exchanged make them rise and fall."""
    found, largest = [], (0, 0)
    for number, (x, y) in enumerate(itertools.islice(stream, marks[-1]), 1):
        step(x, y)
        if number % every == 0:
            largest = tuple(map(max, zip(largest, measure(), strict=True)))
        if number in marks:
            found.append(largest)
            largest = (0, 0)
    return found


# Trees grow for some thousand observations: 8000 and 20 000 instead of 2000 and 20 000, with leaves of 10 values and at
# most 8 of them, so that they are full by then.
TREES = (8000, 20_000)


def adwins(root):
    """Every ADWIN that can be reached: a histogram of its window, as long as the logarithm of the window."""
    found, seen, waiting = [], set(), [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(value))
        if isinstance(value, drift.ADWIN):
            found.append(len(pickle.dumps(value)))
        waiting.extend(gc.get_referents(value))
    return found


def assert_trees_stay(root, model, step, marks=TREES):
    def measure():
        windows = adwins(root)
        assert all(size < 3000 for size in windows), "at 20 000 observations; 100 more bytes for each doubling"
        return size_of(root.snapshot()) - sum(windows), n_held(root, model)

    sizes = peaks(measure, step, related(), marks)
    assert all(late <= MARGIN * early for early, late in zip(*sizes, strict=True)), sizes
    assert adwins(root), "the trees are found"


def test_the_conditional_sampler_holds_what_it_held():
    sampler = small_sampler()
    assert_trees_stay(sampler, None, lambda x, y: sampler.update(x))
    assert sampler.n_features == 3


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
def test_observational_removal_holds_what_it_held(kind):
    # The sampler above is what holds most, and goes on for 20 000: here it is explained, which is dear.
    explainer = kind(linear, **own_imputer(conditional()))
    assert_trees_stay(explainer, linear, explainer.explain_one, (6000, 12_000))


class Turning:
    """Predicts a and, after every 500 observations that it has learnt, -a: the detector never rests."""

    def __init__(self):
        self.n_learnt = 0

    def __call__(self, x):
        return -x["a"] if self.n_learnt // 500 % 2 else x["a"]


def test_the_change_explainer_holds_what_it_held_through_changes():
    model = Turning()
    change = ChangeExplainer(model, window=40, threshold=0.1, loss="squared", seed=1)

    def step(x, y):
        y_pred = model(x)
        model.n_learnt += 1
        change.update(x, 1.0 if y > 0 else 0.0, y_pred)

    sizes = peaks(lambda: (size_of(change.snapshot()), n_held(change, model)), step, observations(), (5000, 50_000))
    assert change.n_observations == 50_000
    assert change.n_alarms.total() > 2
    assert all(late <= MARGIN * early for early, late in zip(*sizes, strict=True)), sizes


def ever_new():
    for i, (x, y) in enumerate(observations()):
        yield {**x, f"new {i}": 1.0}, y


@pytest.mark.parametrize("name", ["PFI", "SAGE", "PDP", "observational"])
def test_names_that_never_come_again_are_forgotten(name, monkeypatch):
    # They are after 1000 observations, checked each 1000: at most 2000 are held at a time, and two such rounds tell.
    # PDP computes a curve for each name that it holds: it does the same after 300, for an eleventh of the time.
    assert importance.memory_of(0.05) == 1000
    n = 1000
    if name == "PDP":
        n = 300
        monkeypatch.setattr(importance, "_SHORTEST_MEMORY", n)
        assert importance.memory_of(0.1) == n
    explainer = {
        "PFI": lambda: IncrementalPFI(linear, **options(alpha=0.05)),
        "SAGE": lambda: IncrementalSAGE(linear, **options(alpha=0.05)),
        "PDP": lambda: IncrementalPDP(linear, alpha=0.1, grid_size=2, window=20),
        "observational": lambda: IncrementalPFI(linear, **own_imputer(conditional(), alpha=0.05)),
    }[name]()
    sizes = peaks(
        lambda: (size_of(explainer.snapshot()), n_held(explainer, linear)),
        explainer.explain_one,
        ever_new(),
        (2 * n, 4 * n),
        every=n // 4,
    )
    assert all(late <= MARGIN * early for early, late in zip(*sizes, strict=True)), sizes


def test_labels_that_never_come_again_are_forgotten_by_the_mean_prediction():
    mean, sizes = SmoothedPrediction(alpha=0.05), []
    for i in range(1, 20_001):
        mean.update({f"label {i}": 0.5, "usual": 0.5})
        if i in (2000, 20_000):
            sizes.append(size_of(mean.snapshot()))
    assert sizes[1] <= MARGIN * sizes[0], sizes


@pytest.mark.parametrize("gap", [0, 50])
def test_labels_that_never_come_again_are_forgotten_by_the_mean_prediction_behind_a_gap(gap):
    mean, largest = MarginalPrediction(0.05, gap), {}
    for i in range(1, 8001):
        mean.store({f"label {i}": 0.5, "usual": 0.5})
        if i % 100 == 0:
            largest[i // 4001] = max(largest.get(i // 4001, 0), size_of(mean.snapshot()))
    assert largest[1] <= MARGIN * largest[0], largest


def test_the_process_does_not_grow():
    explainer, rng = IncrementalPFI(lambda x: x["a"], **options()), np.random.default_rng(1)

    def go_on(n):
        for _ in range(n):
            explainer.explain_one({"a": rng.random()}, 1.0)
        return tracemalloc.get_traced_memory()[0]

    go_on(4000)
    tracemalloc.start()
    try:
        before = go_on(1000)  # what is allocated once and replaced later is in the first figure already
        after = go_on(9000)
    finally:
        tracemalloc.stop()
    assert after - before < 9000, f"{before} bytes, then {after}: less than one for each observation"


def test_growth_is_noticed():
    class Growing(IncrementalPFI):
        def explain_one(self, x, y=None, *, y_pred=None):
            self.losses = [*getattr(self, "losses", []), y]
            return super().explain_one(x, y, y_pred=y_pred)

    with pytest.raises(AssertionError, match="objects held"):
        assert_stays(Growing(linear, **options()), 200, 2000)

    class Keeping(Growing):
        def _state(self):
            return {**super()._state(), "losses": list(self.losses)}

    with pytest.raises(AssertionError, match="bytes of the snapshot"):
        assert_stays(Keeping(linear, **options()), 200, 2000)
