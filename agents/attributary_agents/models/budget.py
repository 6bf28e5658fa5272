"""Time budget of explaining: its measurement, and the stride to keep it.

Every stride-th observation of a model is explained, the others are passed over. Clocks and lags must not decide what is
published, or a replay after a crash would publish something else. So the stride is part of the model's state, and
changes only where that is stored: a replay repeats everything since with the stride that is stored.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from ..config.explainers import ExplainConfig
from .model_state import ModelState

logger = logging.getLogger(__name__)

MAX_STRIDE = 64

_ENOUGH = 8
"""Explained observations that are needed before the measured share is used."""

_SAMPLED = 8
"""Observations of which one is measured, where the share is shown and decides nothing."""


class StageTimer:
    """Times of a model's observations by stage, since the stride was set.

    The prediction of an explained observation is made together with the rows that explain it. The time that it would
    take alone is taken from the observations passed over or, where there are none, from the time per row.

    Parameters
    ----------
    clock
        Returns seconds; None measures nothing.
    period
        Valid range >= 1. Every so many observations one is measured, which stands for all. It must have no divisor in
        common with the number of observations of which one is explained, or it would see them too often, or never.
    """

    def __init__(self, clock: Callable[[], float] | None = None, period: int = 1) -> None:
        self.clock = clock
        self._period = period
        self._n = 0
        self.reset()

    def is_due(self) -> bool:
        """Count an observation that begins; return whether to measure its time."""
        if self.clock is None:
            return False
        self._n += 1
        return self._n % self._period == 0

    def reset(self) -> None:
        """Forget all measured times."""
        self._total_s = self._batch_s = self._explain_s = self._own_s = 0.0
        self._explained = self._passed_over = self._rows = 0

    def add(self, predict_s: float, explain_s: float, total_s: float, n_rows: int | None) -> None:
        """Add the times of an observation.

        Parameters
        ----------
        n_rows
            Rows that were evaluated to predict and to explain it; None where it was passed over.
        """
        self._total_s += total_s
        if n_rows is None:
            self._passed_over += 1
            self._own_s += predict_s
        else:
            self._explained += 1
            self._rows += n_rows
            self._batch_s += predict_s
            self._explain_s += explain_s

    @property
    def share(self) -> float | None:
        """Share of the time spent on explaining, between 0 and 1.

        None before enough observations were explained.
        """
        if self._explained < _ENOUGH or not self._total_s > 0.0:
            return None
        one = self._own_s / self._passed_over if self._passed_over else self._batch_s / self._rows
        explaining = max(self._batch_s - self._explained * one, 0.0) + self._explain_s
        return min(explaining / self._total_s, 1.0)


def next_stride(stride: int, share: float | None, lag: int, lag_before: int, config: ExplainConfig) -> int:
    """Return the next stride: half to twice the present stride, at most 64.

    Where each k-th observation is explained and this takes the share s of the time, the stride that takes the budget b
    is k s (1 - b) / (b (1 - s)). The stride is raised where that exceeds it by a tenth, and lowered only so far that it
    could grow by a quarter again: it does not oscillate. While the partition lags behind by more than `max_lag`, or by
    a tenth of it and ever more, the stride doubles, if explaining takes more than 1 % of the time.

    Parameters
    ----------
    stride, share
        The present stride, and the share of the time that explaining took; None where it is not known.
    lag, lag_before
        Observations of the partition that wait, now and at the last checkpoint.
    """
    if config.budget is None or share is None:
        return stride
    most, least = min(2 * stride, MAX_STRIDE), (stride + 1) // 2
    near = config.max_lag / 10
    if lag > near:
        if share > 0.01 and (lag > config.max_lag or lag > 1.1 * lag_before):
            return most
        least = stride
    wanted = stride * share * (1.0 - config.budget) / (config.budget * max(1.0 - share, 1e-9))
    if wanted > 1.1 * stride:
        return min(math.ceil(wanted), most)
    lower = max(math.ceil(wanted / 0.8), least)
    return min(lower, stride)


class Budget:
    """Time budgets for explaining the models of a partition.

    Parameters
    ----------
    clock
        Returns seconds; None measures nothing, and explains every observation.
    """

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._timers: dict[str, StageTimer] = {}
        self._lag = self._lag_before = 0

    def timer(self, state: ModelState) -> StageTimer:
        """Return the timer of a model's observations.

        It measures all of them where a budget or a fixed stride is configured, else a sample.
        """
        timer = self._timers.get(state.model_id)
        if timer is None:
            explain = state.config.explain
            period = _SAMPLED if explain.budget is None and explain.every is None else 1
            timer = self._timers[state.model_id] = StageTimer(self._clock, period)
        return timer

    def forget(self, model_id: str) -> None:
        """Forget a model that is not loaded any more."""
        self._timers.pop(model_id, None)

    def begin(self, lag: int | None) -> None:
        """Note that a checkpoint begins, and the partition's lag.

        The lag is the number of observations that wait; None where nobody knows.
        """
        self._lag_before, self._lag = self._lag, self._lag if lag is None else lag

    def adapt(self, state: ModelState) -> float | None:
        """Set a model's stride by the measured share of explaining.

        Call it in the step that encodes the state which is about to be stored, and at no other time.

        Returns
        -------
        Share of the time that explaining took; None where it is not known.
        """
        timer = self.timer(state)
        share = timer.share
        if share is None:
            return None
        timer.reset()
        stride = next_stride(state.stride, share, self._lag, self._lag_before, state.config.explain)
        if stride != state.stride:
            logger.info(
                "model %s: one in %d observations is explained now, and was one in %d: explaining took %.0f %% of "
                "the time, and %d observations wait",
                state.model_id,
                stride,
                state.stride,
                100 * share,
                self._lag,
            )
            state.stride = stride
        return share
