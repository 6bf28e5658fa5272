"""How much of a model's observations is explained: what explaining took, and the stride that follows from it.

Every stride-th observation of a model is explained, the others are passed over. Clocks and lags must not decide what is
published, or a replay after a crash would publish something else. So the stride is part of the model's state, and is
changed only where that is stored: everything since is repeated with the stride that is stored.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable

from ..config.explainers import ExplainConfig
from .model_state import ModelState

logger = logging.getLogger(__name__)

MAX_STRIDE = 64

_ENOUGH = 8
"""Observations explained before what they took counts for anything."""


class Spent:
    """What a model's observations took since the stride was last thought over.

    The prediction of an observation that is explained is made with the rows that explain it. What it would take alone
    is what it takes for those passed over, or, where there are none, the part of one row in all.

    Parameters
    ----------
    clock
        Seconds. None: nothing is measured.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._began = self._at = 0.0
        self._laps: dict[str, float] = {}
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._total_s = self._batch_s = self._explain_s = self._own_s = 0.0
        self._explained = self._passed_over = self._rows = 0

    def begin(self) -> None:
        """An observation begins."""
        if self._clock is not None:
            self._began = self._at = self._clock()
            self._laps = {}

    def lap(self, what: str) -> None:
        """So far since the last lap: `predict`, `explain`, or anything else."""
        if self._clock is not None:
            now = self._clock()
            self._laps[what], self._at = now - self._at, now

    def end(self, n_rows: int | None) -> None:
        """An observation is done; `n_rows` were evaluated to predict and to explain it, None: it was passed over."""
        if self._clock is None:
            return
        self._total_s += self._clock() - self._began
        if n_rows is None:
            self._passed_over += 1
            self._own_s += self._laps["predict"]
        else:
            self._explained += 1
            self._rows += n_rows
            self._batch_s += self._laps["predict"]
            self._explain_s += self._laps["explain"]

    @property
    def share(self) -> float | None:
        """Explaining's part of the time, between 0 and 1; None before enough observations were explained."""
        if self._explained < _ENOUGH or not self._total_s > 0.0:
            return None
        one = self._own_s / self._passed_over if self._passed_over else self._batch_s / self._rows
        explaining = max(self._batch_s - self._explained * one, 0.0) + self._explain_s
        return min(explaining / self._total_s, 1.0)


def next_stride(stride: int, share: float | None, lag: int, lag_before: int, config: ExplainConfig) -> int:
    """The stride from now on; between half and twice the present one, and at most 64.

    Explaining each k-th observation takes the share s: e / k of a time r + e / k per observation. Within the budget b
    is so each k s (1 - b) / (b (1 - s))-th. A stride is raised where that is a tenth beyond it, and lowered only to
    one beyond which it could grow by a quarter: it does not go to and fro. While the partition lags behind by more
    than `max_lag`, or by a tenth of it and ever more, the stride doubles, if explaining takes any time worth it.

    Parameters
    ----------
    stride, share
        As they have been; `share` is None where it is not known.
    lag, lag_before
        Observations of the partition that wait, now and at the checkpoint before.
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
    """What explaining may take, of the models of one partition.

    Parameters
    ----------
    clock
        As for `Spent`.
    """

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._spent: dict[str, Spent] = {}
        self._lag = 0

    def spent(self, model_id: str) -> Spent:
        """What the model's observations have taken, to be added to."""
        return self._spent.setdefault(model_id, Spent(self._clock))

    def think_over(self, states: Iterable[ModelState], lag: int) -> dict[str, float]:
        """Set the strides of models by what explaining them took.

        To be called with those that are about to be stored, and at no other time.

        Parameters
        ----------
        lag
            Observations of the partition that wait.

        Returns
        -------
        Model id to the share of the time that explaining took, where it is known.
        """
        before, self._lag, shares = self._lag, lag, {}
        for state in states:
            spent = self.spent(state.model_id)
            share = spent.share
            if share is None:
                continue
            shares[state.model_id] = share
            spent.reset()
            stride = next_stride(state.stride, share, lag, before, state.config.explain)
            if stride != state.stride:
                logger.info(
                    "model %s: one in %d observations is explained now, and was one in %d: explaining took %.0f %% of "
                    "the time, and %d observations wait",
                    state.model_id,
                    stride,
                    state.stride,
                    100 * share,
                    lag,
                )
                state.stride = stride
        return shares
