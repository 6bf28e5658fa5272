"""How near observational importance comes to exact values: `python -m benchmarks.calibration.observational`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from attributary_explainers import (
    GeometricReservoir,
    Imputer,
    IncrementalPFI,
    IncrementalSAGE,
    MarginalImputer,
    ShiftedImputer,
    as_batch,
)
from attributary_explainers.removal.imputer import Draws, Players, Request
from attributary_explainers.typing import Array, Features, Prediction

from .streams.latent import NOISE, STREAMS, Category, Stream

KINDS = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}
REMOVALS = ("exact", "observational", "interventional")
ALPHA = 0.001
MOST_ERROR, LEAST_HELD = 0.10, 0.90
LARGE = 0.05
"""A value counts in `max` from this share of the sum on."""


class ExactImputer(Imputer):
    """Draws by the stream's own conditional distributions."""

    name = "exact"

    def __init__(self, stream: Stream, seed: int) -> None:
        self.reservoir = GeometricReservoir(1)
        self._stream, self._own = stream, np.random.default_rng(seed)

    def _rows(self, x: Features, kept: Sequence[Any], n: int) -> list[dict[Any, Any]]:
        names = names_of(self._stream)
        X = np.array([[float(x[name]) for name in names]])
        drawn = self._stream.given(X, [names.index(name) for name in kept], n, self._own)[0]
        return [as_features(self._stream, row) for row in drawn]

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows for each feature."""
        return Draws([self._rows(x, [other for other in x if other != name], n) for name in players], None)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows for each coalition."""
        return Draws([self._rows(x, kept, n) for kept in coalitions], None)


class Apart(Imputer):
    """Another imputer with a generator of its own, so that explainers with equal seeds walk equal orders."""

    name = "apart"

    def __init__(self, inner: Imputer, seed: int) -> None:
        self.inner, self.reservoir, self._own = inner, inner.reservoir, np.random.default_rng(seed)

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return what the other imputer does."""
        return self.inner.replace_each(x, players, n, self._own)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return what the other imputer does."""
        return self.inner.restrict(x, players, coalitions, n, self._own)

    def request_each(self, x: Features, players: Players, n: int, rng: Any, encoded: Any = None) -> Request:
        """Return what the other imputer does."""
        return self.inner.request_each(x, players, n, self._own, encoded)

    def request_coalitions(
        self, x: Features, players: Players, orders: Any, n: int, rng: Any, encoded: Any = None
    ) -> Request:
        """Return what the other imputer does."""
        return self.inner.request_coalitions(x, players, orders, n, self._own, encoded)

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Do what the other imputer does."""
        return self.inner.update(x, y_pred, self._own)


def names_of(stream: Stream) -> list[str]:
    """Return the names of a stream's features."""
    return [f"x{i}" for i in range(len(stream.parts))]


def as_features(stream: Stream, row: Array) -> dict[str, Any]:
    """Return values as an observation; levels of categories are text."""
    values = zip(names_of(stream), stream.parts, row.tolist(), strict=True)
    return {name: str(int(v)) if isinstance(part, Category) else v for name, part, v in values}


def run(task: tuple[str, str, str, int, int, int]) -> tuple[list[float], list[float]]:
    """Return importance and half the width of its interval at the end of a run."""
    stream_name, kind, removal, rows, draws, seed = task
    stream = next(s for s in STREAMS if s.name == stream_name)
    rng = np.random.default_rng(1000 + seed)
    X = stream.draw(rows, rng)
    Y = stream.model(X) + NOISE * rng.standard_normal(rows)
    names = names_of(stream)

    def predict(observations: Sequence[Features]) -> Array:
        return stream.model(np.array([[float(x[name]) for name in names] for x in observations]))

    if removal == "exact":
        imputer: Imputer = ExactImputer(stream, seed)
    elif removal == "observational":
        imputer = Apart(ShiftedImputer(alpha=ALPHA), seed)
    else:
        imputer = Apart(MarginalImputer(GeometricReservoir(500), sampling="independent"), seed)
    explainer = KINDS[kind](as_batch(predict), loss="squared", alpha=ALPHA, n_samples=draws, removal=imputer, seed=seed)
    for x, y in zip(X, Y.tolist(), strict=True):
        explainer.explain_one(as_features(stream, x), y)
    return [explainer.importance[name] for name in names], [explainer.half_width[name] for name in names]


@cache
def exact_values(name: str) -> dict[str, Array]:
    """Return the exact importance of a stream's features by explainer."""
    return dict(zip(KINDS, next(s for s in STREAMS if s.name == name).exact(), strict=True))


class Result(NamedTuple):
    """What the runs of one stream, explainer and removal say."""

    stream: str
    kind: str
    removal: str
    error: tuple[float, float]
    """Sum of the errors of the mean over the runs over that of the values, and the largest relative error of a value
    that is large."""
    paired: tuple[float, float]
    """The same, less what exact draws on the same rows have."""
    held: float
    """Share of the 95 % intervals that hold the exact value."""
    values: Array
    exact: Array


def errors(found: Array, base: Array, exact: Array) -> tuple[float, float]:
    """Return the sum of errors over that of values, and the largest relative one of a value that is large."""
    apart, size = np.abs(found - base), np.abs(exact)
    large = size >= LARGE * size.sum()
    return float(apart.sum() / size.sum()), float((apart[large] / size[large]).max())


def measure(
    streams: Sequence[str], seeds: int, rows: int, draws: int, jobs: int, removals: Sequence[str] = REMOVALS
) -> Iterator[Result]:
    """Run streams by every explainer and removal; yield a result for each, that of exact draws first.

    Without exact draws the paired errors are those of the exact values.
    """
    settings = [(name, kind) for name in streams for kind in KINDS]
    with ProcessPoolExecutor(jobs) as pool:
        for name, kind in track(settings, console=Console(stderr=True), description="streams"):
            exact = exact_values(name)[kind]
            base = None if "exact" in removals else exact
            for removal in removals:
                tasks = [(name, kind, removal, rows, draws, seed) for seed in range(seeds)]
                found = np.array(list(pool.map(run, tasks)))
                mean = found[:, 0].mean(axis=0)
                base = mean if base is None else base
                held = float((np.abs(found[:, 0] - exact) <= found[:, 1]).mean())
                of_exact, paired = errors(mean, exact, exact), errors(mean, base, exact)
                yield Result(name, kind, removal, of_exact, paired, held, mean, exact)


def rows(*, quick: bool, jobs: int) -> list[tuple[str, str, str, bool | None]]:
    """Return lines of `make calibration`: what, what is to be reached, what was found, and whether it was."""
    size = (1, 1500) if quick else (4, 5000)
    found = [r for r in measure([s.name for s in STREAMS], *size, 10, jobs) if r.removal == "observational"]
    lines: list[tuple[str, str, str, bool | None]] = []
    for kind in KINDS:
        of_kind = [result for result in found if result.kind == kind]
        errors_, largest = ([result.paired[i] for result in of_kind] for i in (0, 1))
        held = float(np.mean([result.held for result in of_kind]))
        said = f"{min(errors_):.3f} to {max(errors_):.3f}, one value off by {max(largest):.2f} at most; hold {held:.2f}"
        reached = max(errors_) <= MOST_ERROR and held >= LEAST_HELD
        goal = f"paired error at most {MOST_ERROR:.2f}, hold {LEAST_HELD:.2f}"
        lines.append((f"observational {kind.upper()}, {len(of_kind)} streams", goal, said, reached))
    return lines


def main() -> None:
    """Run every stream by every removal; print errors, those less the exact sampler's, and coverage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration.observational", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4, help="seeded runs of each (default 4)")
    parser.add_argument("--rows", type=int, default=5000, help="observations per run (default 5000)")
    parser.add_argument("--draws", type=int, default=10, help="m (default 10)")
    parser.add_argument("--stream", nargs="+", default=[s.name for s in STREAMS], help="names of streams")
    parser.add_argument("--removal", nargs="+", choices=REMOVALS, default=REMOVALS, help="which (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--values", action="store_true", help="print the values too")
    args = parser.parse_args()
    table = Table(title="Observational importance: sum |error| / sum |value|, and the largest error of a large value")
    for column in ("stream", "explainer", "removal", "err / max", "paired err / max", "held by 95 %"):
        table.add_column(column)
    for found in measure(args.stream, args.seeds, args.rows, args.draws, args.jobs, args.removal):
        said = [f"{total:.3f} / {largest:.3f}" for total, largest in (found.error, found.paired)]
        table.add_row(found.stream, found.kind, found.removal, *said, f"{found.held:.2f}")
        if args.values:
            print(found.stream, found.kind, found.removal, found.values.round(3), "exact", found.exact.round(3))
    Console().print(table)


if __name__ == "__main__":
    main()
