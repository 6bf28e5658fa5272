"""Checks of chance: it comes from the seed, and from nothing else."""

from __future__ import annotations

import random

import numpy as np

from .failures import expect, expect_equal
from .subject import Subject


def runs_repeat(subject: Subject) -> None:
    """Equal seeds and observations give equal results, to the last bit."""
    expect_equal(subject.trace(seed=1), subject.trace(seed=1), "two runs with one seed to give the same")


def seeds_differ(subject: Subject) -> None:
    """Another seed gives other draws."""
    traces = {tuple(subject.trace(seed=seed)) for seed in (1, 2, 3)}
    expect(len(traces) > 1, "results to differ between the seeds 1, 2 and 3", "the same results to the last bit")


def global_random_state(subject: Subject) -> None:
    """The generators that a whole process shares, `random` and `numpy.random`, are neither used nor seeded."""
    kept, kept_numpy = random.getstate(), np.random.get_state()
    try:
        traces = []
        for seed in (1, 2):
            random.seed(seed)
            np.random.seed(seed)
            before, before_numpy = random.getstate(), repr(np.random.get_state())
            traces.append(subject.trace())
            expect(random.getstate() == before, "the state of `random` to stay as it is", "another state")
            expect(repr(np.random.get_state()) == before_numpy, "the state of `numpy.random` to stay", "another state")
        expect_equal(traces[0], traces[1], "results not to depend on the state of `random` or `numpy.random`")
    finally:
        random.setstate(kept)
        np.random.set_state(kept_numpy)
