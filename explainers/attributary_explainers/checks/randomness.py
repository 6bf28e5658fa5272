"""Checks of chance: it comes from the seed, and from nothing else."""

from __future__ import annotations

import random
import sys

import numpy as np

from .subject import Subject, expect, expect_equal


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
