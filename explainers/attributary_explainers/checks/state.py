"""Checks of state: snapshots, bounded memory, chance from a seed alone."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import SnapshotError
from ..incremental.base import IncrementalExplainer
from ..pickling import freeze
from ..typing import Features, Snapshot
from .subject import (
    CheckFailure,
    Subject,
    expect,
    expect_equal,
    explain,
    explainer_of,
    feed,
    feed_and_publish,
    n_held,
    size_of,
    spoil,
    strangers,
)


def snapshot_is_plain(subject: Subject) -> None:
    """A snapshot holds builtin types only, and survives pickle."""
    for n in (0, len(subject.stream)):
        explainer, model = subject.new(0)
        feed(explainer, model, subject.stream[:n])
        snapshot = explainer.snapshot()
        found = strangers(snapshot, "snapshot")
        expect(not found, "a snapshot of str, int, float, bool, bytes, None, list, tuple and dict", found)
        pickle.dumps(snapshot)


def snapshot_continues(subject: Subject) -> None:
    """`from_snapshot` continues bit for bit, at any time, through pickle."""
    _continues(subject, explainer_of)


def restore_continues(subject: Subject) -> None:
    """`restore` continues bit for bit, whatever the new explainer has seen."""

    def taken_over(_: IncrementalExplainer, snapshot: Snapshot, model: Any) -> IncrementalExplainer:
        explainer = subject.make(model, 99)
        for x, y in subject.stream[:30]:
            explainer.explain_one(dict(x), y)
        explainer.restore(snapshot)
        return explainer

    _continues(subject, taken_over)


def _continues(subject: Subject, take_up: Any) -> None:
    stream = subject.stream
    for stop in (0, 1, len(stream) // 3, 2 * len(stream) // 3):
        explainer, model = subject.new(0)
        feed(explainer, model, stream[:stop])
        stored, model_then = pickle.dumps(explainer.snapshot()), freeze(model)
        continued = take_up(explainer, pickle.loads(stored), model_then)
        expect(
            continued.parameters == explainer.parameters,
            f"the restored explainer to have the parameters {explainer.parameters!r}",
            continued.parameters,
        )
        expected = f"a snapshot after {stop} observations to continue bit for bit"
        expect_equal(
            feed_and_publish(explainer, model, stream[stop:]),
            feed_and_publish(continued, model_then, stream[stop:]),
            expected,
        )
        states = [repr(_without_bytes(e.snapshot())) for e in (explainer, continued)]
        expect_equal(states[:1], states[1:], f"{expected}, also in the next snapshot")


def _without_bytes(data: Any) -> Any:
    # Bytes are pickles, and those of equal things differ by which of their parts are one object.
    if isinstance(data, dict):
        return {key: _without_bytes(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_without_bytes(value) for value in data]
    return "bytes" if isinstance(data, bytes) else data


def snapshot_shares_nothing(subject: Subject) -> None:
    """Snapshots and explainers share nothing: neither changes the other."""
    half = len(subject.stream) // 2
    first, second = subject.stream[:half], subject.stream[half:]
    explainer, model = subject.new(0)
    feed(explainer, model, first)
    snapshot = explainer.snapshot()
    before, stored, models = repr(snapshot), pickle.dumps(snapshot), [freeze(model) for _ in range(3)]
    unharmed = explainer_of(explainer, pickle.loads(stored), models[0])
    one, other = (explainer_of(explainer, snapshot, model) for model in models[1:])
    feed(explainer, model, second)
    feed(one, models[1], second)
    expect(repr(snapshot) == before, "a snapshot to stay as it is while explainers go on", "another one")
    spoil(snapshot)
    wanted, seen = feed_and_publish(unharmed, models[0], second), feed_and_publish(other, models[2], second)
    expect_equal(wanted, seen, "an explainer to go on unharmed where the snapshot that it is made of is emptied")
    # The other way round: the explainer that it was taken of.
    explainer, model = subject.new(0)
    trace = feed(explainer, model, first)
    spoil(explainer.snapshot())
    trace += feed_and_publish(explainer, model, second)
    expect_equal(subject.trace(), trace, "an explainer to go on unharmed where a snapshot of it is emptied")


def other_snapshots_refused(subject: Subject) -> None:
    """Snapshots of another format or explainer raise SnapshotError."""
    explainer, model = subject.new(0)
    snapshot = explainer.snapshot()
    for key, value in (("format", 987_654), ("explainer", "somebody else's")):
        for take_up in (type(explainer).from_snapshot, _restore_into(explainer)):
            _refused(lambda take_up=take_up, key=key, value=value: take_up({**snapshot, key: value}, model), str(value))


def other_parameters_refused(subject: Subject) -> None:
    """`restore` raises SnapshotError, naming the parameter that differs."""
    explainer, _ = subject.new(0)
    snapshot = explainer.snapshot()
    for name in snapshot["parameters"]:
        other = {**snapshot, "parameters": {**snapshot["parameters"], name: "another value"}}
        _refused(lambda other=other: explainer.restore(other), name)


def _restore_into(explainer: IncrementalExplainer) -> Any:
    return lambda snapshot, _model: explainer.restore(snapshot)


def _refused(take_up: Any, said: str) -> None:
    try:
        take_up()
    except SnapshotError as error:
        expect(said in str(error), f"the SnapshotError to mention {said!r}", str(error))
    else:
        raise CheckFailure(f"a SnapshotError that mentions {said!r}", "the snapshot was accepted")


def parameters_are_plain(subject: Subject) -> None:
    """Parameters are plain, equal for equal explainers, and unchangeable."""
    explainer, model = subject.new(0)
    found = strangers(explainer.parameters, "parameters")
    expect(not found, "parameters of builtin types", found)
    wanted = repr(explainer.parameters)
    feed(explainer, model, subject.stream)
    expect(repr(explainer.parameters) == wanted, f"parameters to stay {wanted}", explainer.parameters)
    alike = subject.new(0)[0].parameters
    expect(repr(alike) == wanted, f"an explainer made alike to have the parameters {wanted}", alike)
    spoil(explainer.parameters)
    expect(
        repr(explainer.parameters) == wanted, "parameters not to change with the copy that is handed out", "they did"
    )


_MEASUREMENTS = 8
_MARGIN = 1.05


def counts_add_up(subject: Subject) -> None:
    """Every observation counts as explained or skipped, mostly explained."""
    explainer, _ = subject.new()
    results = explain(explainer, subject.stream)
    expect(
        explainer.n_observations > len(results) / 2,
        f"more than half of {len(results)} ordinary observations to be explained",
        f"{explainer.n_observations} of them",
    )


def memory_is_bounded(subject: Subject) -> None:
    """Snapshot and held objects do not grow after `horizon` observations."""
    explainer, model = subject.new()
    _stays(explainer, model, _long(subject), subject.horizon, "of a stream that goes on as it began")


def memory_is_bounded_by_names(subject: Subject) -> None:
    """State does not grow although each observation brings a new feature."""
    explainer, model = subject.new()
    ever_new = (({**x, f"new {i}": 1.0}, y) for i, (x, y) in enumerate(_long(subject)))
    _stays(explainer, model, ever_new, subject.horizon, "each with a feature of a new name")


def _long(subject: Subject) -> Iterator[tuple[Features, Any]]:
    """Yield a stream of three horizons in which no number comes twice."""
    stream = subject.stream
    for i in range(3 * subject.horizon):
        x, y = stream[i % len(stream)]
        nudge = 1.0 + 1e-9 * i
        yield {name: value * nudge if type(value) is float else value for name, value in x.items()}, y


def _stays(
    explainer: IncrementalExplainer, model: Any, stream: Iterator[tuple[Features, Any]], horizon: int, of_what: str
) -> None:
    early, late = (0, 0), (0, 0)
    every = max(horizon // _MEASUREMENTS, 1)
    for number, (x, y) in enumerate(stream, 1):
        explainer.explain_one(x, y)
        if number % every:
            continue
        sizes = size_of(explainer.snapshot()), n_held(explainer, model)
        if number <= horizon:
            early = max(early[0], sizes[0]), max(early[1], sizes[1])
        else:
            late = max(late[0], sizes[0]), max(late[1], sizes[1])
    for name, before, after in zip(("bytes of the snapshot", "objects held"), early, late, strict=True):
        expect(
            after <= _MARGIN * before,
            f"the {name} to stay below {_MARGIN} times their number within {horizon} observations {of_what}",
            f"{before} until then, {after} within {3 * horizon}",
        )


def runs_repeat(subject: Subject) -> None:
    """Equal seeds and observations give equal results, to the last bit."""
    expect_equal(subject.trace(seed=1), subject.trace(seed=1), "two runs with one seed to give the same")


def seeds_differ(subject: Subject) -> None:
    """Another seed gives other draws."""
    traces = {tuple(subject.trace(seed=seed)) for seed in (1, 2, 3)}
    expect(len(traces) > 1, "results to differ between the seeds 1, 2 and 3", "the same results to the last bit")


def global_random_state(subject: Subject) -> None:
    """The shared `random` and `numpy.random` are neither used nor seeded."""
    kept, kept_numpy = random.getstate(), np.random.get_state()
    try:
        traces = []
        for seed in (1, 2):
            trace, changed = _trace_watched(subject, seed)
            expect(not changed, "the state of `random` and `numpy.random` to stay as it is", f"another of {changed}")
            traces.append(trace)
        expect_equal(traces[0], traces[1], "results not to depend on the state of `random` or `numpy.random`")
    finally:
        random.setstate(kept)
        np.random.set_state(kept_numpy)


def _trace_watched(subject: Subject, seed: int) -> tuple[list[str], str]:
    """Return a trace, and which shared generators every attempt changed.

    Where other threads run in the process there are three attempts: one of a Kafka client, which waits random times,
    may draw meanwhile. It does so now and then; a subject that draws does so in each.
    """
    changed = {"random", "numpy.random"}
    for _ in range(1 if _is_alone() else 3):
        random.seed(seed)
        np.random.seed(seed)
        before, before_numpy = random.getstate(), repr(np.random.get_state())
        trace = subject.trace()
        if random.getstate() == before:
            changed.discard("random")
        if repr(np.random.get_state()) == before_numpy:
            changed.discard("numpy.random")
        if not changed:
            break
    return trace, " and ".join(f"`{name}`" for name in sorted(changed))


def _is_alone() -> bool:
    """Return whether no other thread runs Python in this process."""
    return len(sys._current_frames()) == 1
