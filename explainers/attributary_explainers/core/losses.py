"""Losses of predictions, and the increments of importance from them."""

from __future__ import annotations

from typing import Any

from .buffers import floats

try:
    import cython
except ImportError:
    from . import _cython as cython


if cython.compiled:
    from cython.cimports.libc.math import isfinite, log
else:
    from math import isfinite, log

NOT_IN_CORE, CROSS_ENTROPY, BRIER, ABSOLUTE, SQUARED, SCORE = range(6)
"""The losses whose formulas are here; 0 is any other, which is computed in Python: the user's own, or a named loss."""

# The same as C knows them.
_NOT_IN_CORE = cython.declare(cython.int, 0)
_CROSS_ENTROPY = cython.declare(cython.int, 1)
_BRIER = cython.declare(cython.int, 2)
_ABSOLUTE = cython.declare(cython.int, 3)
_SQUARED = cython.declare(cython.int, 4)


@cython.ccall
@cython.exceptval(check=False)
def cross_entropy(p: cython.double, epsilon: cython.double) -> cython.double:
    """Return the loss of the probability `p` of the label that came, in nats."""
    return -log(min(max(p, epsilon), 1.0 - epsilon))


@cython.ccall
@cython.exceptval(check=False)
def brier(p: cython.double, squares_of_others: cython.double) -> cython.double:
    """Return (1 - p)^2 plus the others' squares; p is the label's probability."""
    return (1.0 - p) * (1.0 - p) + squares_of_others


def brier_of(y: object, prediction: Any) -> float:
    """Return `brier` of probabilities by label; p is 0 for a missing label."""
    squares: cython.double = 0.0
    p: cython.double
    for label, p in prediction.items():
        if label != y:
            squares += p * p
    return brier(prediction.get(y, 0.0), squares)


@cython.ccall
@cython.exceptval(check=False)
def absolute(prediction: cython.double, target: cython.double) -> cython.double:
    """Return the absolute error."""
    return abs(target - prediction)


@cython.ccall
@cython.exceptval(check=False)
def squared(prediction: cython.double, target: cython.double) -> cython.double:
    """Return the squared error."""
    difference: cython.double = target - prediction
    return difference * difference  # infinite where ** would raise OverflowError: a diverging model is no exception


@cython.ccall
@cython.exceptval(check=False)
def loss_of(
    P: cython.double[:, ::1],
    r: cython.Py_ssize_t,
    code: cython.int,
    epsilon: cython.double,
    column: cython.Py_ssize_t,
    target: cython.double,
) -> cython.double:
    """Return the loss of row r; `column` is the label's, or -1 for none."""
    c: cython.Py_ssize_t
    total: cython.double
    p: cython.double
    if code == _CROSS_ENTROPY:
        p = P[r, column] if column >= 0 else 0.0
        return cross_entropy(p, epsilon)
    if code == _BRIER:
        total = 0.0
        for c in range(P.shape[1]):
            if c != column:
                total += P[r, c] * P[r, c]
        p = P[r, column] if column >= 0 else 0.0
        return brier(p, total)
    if code == _ABSOLUTE:
        return absolute(P[r, 0], target)
    if code == _SQUARED:
        return squared(P[r, 0], target)
    return P[r, 0]  # the score itself


@cython.ccall
@cython.exceptval(check=False)
def slope_of(
    p: cython.double, code: cython.int, epsilon: cython.double, is_label: cython.bint, target: cython.double
) -> cython.double:
    """Return the derivative of the loss in a component of value `p`."""
    if code == _CROSS_ENTROPY:
        return -1.0 / max(p, epsilon) if is_label else 0.0
    if code == _BRIER:
        return 2.0 * (p - 1.0) if is_label else 2.0 * p
    if code == _ABSOLUTE:
        if p > target:
            return 1.0
        if p < target:
            return -1.0
        return 0.0 if p == target else p  # NaN stays
    if code == _SQUARED:
        return 2.0 * (p - target)
    return 1.0  # of the score


@cython.ccall
@cython.exceptval(check=False)
def are_finite(P: cython.double[:, ::1], start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> cython.bint:
    """Return whether row 0 and rows `start` to `stop` are finite predictions."""
    r: cython.Py_ssize_t
    c: cython.Py_ssize_t
    for c in range(P.shape[1]):
        if not isfinite(P[0, c]):
            return False
    for r in range(start, stop):
        for c in range(P.shape[1]):
            if not isfinite(P[r, c]):
                return False
    return P.shape[1] > 0


def losses_at(
    P: cython.double[:, ::1],
    which: cython.Py_ssize_t[::1],
    code: cython.int,
    epsilon: cython.double,
    columns: cython.Py_ssize_t[::1],
    targets: cython.double[::1],
    losses: cython.double[::1],
) -> int:
    """Write each row's loss; row r belongs to observation which[r].

    Code 0 stands for the expected share of wrong labels, 1 minus the probability of the label: callers give no other
    loss whose formula is not here. Returns -1, or the first row whose loss is not finite.
    """
    r: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for r in range(P.shape[0]):
        i = which[r]
        if code == _NOT_IN_CORE:
            losses[r] = 1.0 - P[r, columns[i]] if columns[i] >= 0 else 1.0
        else:
            losses[r] = loss_of(P, r, code, epsilon, columns[i], targets[i])
        if not isfinite(losses[r]):
            return r
    return -1


DONE, NO_PREDICTION, NOT_FINITE = range(3)
"""The outcomes of an observation; the increments are garbage unless it is DONE."""
_DONE = cython.declare(cython.int, 0)
_NO_PREDICTION = cython.declare(cython.int, 1)
_NOT_FINITE = cython.declare(cython.int, 2)
REASONS = ("", "no_prediction", "not_finite")
"""Why an observation is not explained, by its outcome."""


@cython.cclass
class Increments:
    """Increments of importance from predictions for an observation's rows.

    After a call `low` and `high` are the least and the largest loss that was met, and `model_loss` is that of row 0.
    """

    low = cython.declare(cython.double, visibility="readonly")
    high = cython.declare(cython.double, visibility="readonly")
    model_loss = cython.declare(cython.double, visibility="readonly")
    _means: cython.double[:, ::1]
    """Shape (3, classes): of a coalition, see `means_of_coalition`."""
    _slopes: cython.double[::1]
    """Shape (classes,): of the loss, at the mean of a coalition."""
    _losses: cython.double[::1]
    """Shape (coalitions,): the losses, with the bias of few draws taken off."""
    _influence: cython.double[:, ::1]
    """Shape (coalitions, draws): see `influence_of`."""

    def __init__(self) -> None:
        self.low = self.high = self.model_loss = 0.0
        self._means, self._slopes, self._losses, self._influence = floats(3, 1), floats(1), floats(1), floats(1, 1)

    def __reduce__(self) -> Any:
        return Increments, ()

    # hot
    def pfi_increments(
        self,
        P: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        code: cython.int,
        epsilon: cython.double,
        column: cython.Py_ssize_t,
        target: cython.double,
        largest: cython.double,
        increments: cython.double[::1],
    ) -> int:
        """Write the mean growth of the loss by player; return an outcome.

        The outcome is DONE, NO_PREDICTION or NOT_FINITE. The growth is by how much the losses of the draws exceed that
        of row 0: a mean of differences, not a difference of means, and so exactly 0 where no draw changes the
        prediction.

        Parameters
        ----------
        P
            Shape (rows, classes): the predictions; row 0 is that for the observation.
        start, size
            Where the rows of the draws begin, and how many these are: those of one player after those of another.
        code, epsilon, column, target
            See `losses.loss_of`.
        largest
            NOT_FINITE where a difference is as large.
        increments
            Shape (players,).
        """
        i: cython.Py_ssize_t
        r: cython.Py_ssize_t = start
        k: cython.Py_ssize_t = increments.shape[0]
        n: cython.Py_ssize_t = size // max(k, 1)
        draws: cython.double = n
        fine: cython.bint = True
        total: cython.double
        loss: cython.double
        if not are_finite(P, start, start + size):
            return _NO_PREDICTION
        own: cython.double = loss_of(P, 0, code, epsilon, column, target)
        self.low = self.high = self.model_loss = own
        for i in range(k):
            total = 0.0
            for _ in range(n):
                loss = loss_of(P, r, code, epsilon, column, target)
                self.low, self.high = min(self.low, loss), max(self.high, loss)
                fine = fine and abs(loss - own) < largest
                total += loss - own
                r += 1
            increments[i] = total / draws
        return _DONE if fine else _NOT_FINITE

    @cython.cfunc
    def _make_room(
        self, n_columns: cython.Py_ssize_t, size: cython.Py_ssize_t, n_parts: cython.Py_ssize_t
    ) -> cython.bint:
        if self._means.shape[1] != n_columns:
            self._means, self._slopes = floats(3, n_columns), floats(n_columns)
        if self._losses.shape[0] < size:
            self._losses = floats(size)
        if n_parts > 0 and (self._influence.shape[0] < size or self._influence.shape[1] != n_parts):
            self._influence = floats(max(size, 1), n_parts)
        return True

    # hot
    def sage_increments(
        self,
        P: cython.double[:, ::1],
        start: cython.Py_ssize_t,
        n: cython.Py_ssize_t,
        code: cython.int,
        epsilon: cython.double,
        column: cython.Py_ssize_t,
        target: cython.double,
        in_halves: cython.bint,
        most_bias: cython.double,
        orders: cython.Py_ssize_t[:, ::1],
        marginal_loss: cython.double,
        model_loss: cython.double,
        largest: cython.double,
        increments: cython.double[::1],
        parts: cython.double[:, ::1],
    ) -> int:
        """Write each player's share of the drop in loss; return an outcome.

        Parameters
        ----------
        P, start, code, epsilon, column, target, largest
            See `pfi_increments`; the rows of one coalition after those of another, `n` of each.
        in_halves, most_bias
            Whether the bias of few draws is taken off, see `coalitions.sage_increments_of`, and how much at most.
        orders
            Shape (orders, players): the players by number, in the order in which they join.
        marginal_loss, model_loss
            The losses of no player and of all players; a model loss of NaN is that of row 0.
        increments, parts
            Shapes (players,) and (players, draws): each draw's share of the increments; give an array without columns
            to skip the shares.
        """
        s: cython.Py_ssize_t
        c: cython.Py_ssize_t
        first: cython.Py_ssize_t = start
        size: cython.Py_ssize_t = orders.shape[0] * max(orders.shape[1] - 1, 0)
        n_parts: cython.Py_ssize_t = parts.shape[1]
        plain: cython.double
        if not cython.compiled:
            # Their items are floats of Python, which overflow as C's do.
            P, increments, parts = memoryview(P), memoryview(increments), memoryview(parts)  # type: ignore[assignment]
        if (size > 0 or model_loss != model_loss) and not are_finite(P, start, start + size * n):
            return _NO_PREDICTION
        self.model_loss = model_loss if model_loss == model_loss else loss_of(P, 0, code, epsilon, column, target)
        if not (abs(self.model_loss) < largest and abs(marginal_loss) < largest):
            return _NOT_FINITE
        self._make_room(P.shape[1], size, n_parts)
        self.low, self.high = min(marginal_loss, self.model_loss), max(marginal_loss, self.model_loss)
        for s in range(size):
            means_of_coalition(P, first, n, in_halves, self._means)
            plain = loss_of(self._means, 0, code, epsilon, column, target)
            self.low, self.high = min(self.low, plain), max(self.high, plain)
            self._losses[s] = _loss_without_bias(
                plain, self._means, n, code, epsilon, column, target, in_halves, most_bias
            )
            if n_parts > 0:
                for c in range(P.shape[1]):
                    self._slopes[c] = slope_of(self._means[0, c], code, epsilon, c == column, target)
                influence_of(P, first, n, in_halves, self._slopes, self._means, self._influence, s)
            first += n
        return increments_of_losses(
            orders, marginal_loss, self.model_loss, self._losses, self._influence, largest, increments, parts
        )


@cython.cfunc
@cython.exceptval(check=False)
def _loss_without_bias(
    plain: cython.double,
    means: cython.double[:, ::1],
    n: cython.Py_ssize_t,
    code: cython.int,
    epsilon: cython.double,
    column: cython.Py_ssize_t,
    target: cython.double,
    in_halves: cython.bint,
    most_bias: cython.double,
) -> cython.double:
    """Return the loss of a coalition's mean; in halves, without its bias."""
    if not in_halves or n < 2:
        return plain
    return without_bias(
        plain,
        loss_of(means, 1, code, epsilon, column, target),
        loss_of(means, 2, code, epsilon, column, target),
        most_bias,
    )


@cython.ccall
@cython.exceptval(check=False)
def means_of_coalition(
    P: cython.double[:, ::1],
    first: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    in_halves: cython.bint,
    means: cython.double[:, ::1],
) -> cython.bint:
    """Write the mean prediction of `n` rows and the means of its halves.

    The rows begin at `first`; `means` has the shape (3, columns). In halves the mean is that of the two halves, of
    whatever sizes; else it is that of all rows. A single row is its own mean.
    """
    c: cython.Py_ssize_t
    j: cython.Py_ssize_t
    half: cython.Py_ssize_t = n // 2
    a: cython.double
    b: cython.double
    of_half: cython.double = half
    of_rest: cython.double = n - half
    of_all: cython.double = n
    for c in range(P.shape[1]):
        a = b = 0.0
        for j in range(half):
            a += P[first + j, c]
        for j in range(half, n):
            b += P[first + j, c]
        if in_halves and half > 0:
            means[1, c], means[2, c] = a * (1.0 / of_half), b * (1.0 / of_rest)
            means[0, c] = (means[1, c] + means[2, c]) * 0.5
        else:
            means[0, c] = (a + b) * (1.0 / of_all)
    return True


@cython.ccall
@cython.exceptval(check=False)
def without_bias(
    plain: cython.double, of_one_half: cython.double, of_other_half: cython.double, most_bias: cython.double
) -> cython.double:
    """Return the loss of the mean of two independent halves, minus its bias.

    That is 2 loss(mean) - (loss(a) + loss(b)) / 2, with a bias of at most `most_bias`.
    """
    return plain - min(0.5 * (of_one_half + of_other_half) - plain, most_bias)


def loss_of_mean(
    means: cython.double[::1],
    std_errors: cython.double[::1],
    code: cython.int,
    epsilon: cython.double,
    column: cython.Py_ssize_t,
    target: cython.double,
    most_bias: cython.double,
) -> float:
    """Return a mean prediction's loss, minus the part that noise adds.

    See `coalitions.loss_of_noisy_mean`.
    """
    c: cython.Py_ssize_t
    n_columns: cython.Py_ssize_t = means.shape[0]
    rows: cython.double[:, ::1] = floats(1, max(n_columns, 1))
    for c in range(n_columns):
        rows[0, c] = means[c]
    plain: cython.double = loss_of(rows, 0, code, epsilon, column, target)
    bias: cython.double = 0.0
    above: cython.double
    below: cython.double
    for c in range(n_columns):
        if std_errors[c] > 0.0:
            rows[0, c] = means[c] + std_errors[c]
            above = loss_of(rows, 0, code, epsilon, column, target)
            rows[0, c] = means[c] - std_errors[c]
            below = loss_of(rows, 0, code, epsilon, column, target)
            rows[0, c] = means[c]
            bias += 0.5 * (above + below) - plain
    return plain - min(bias, most_bias)


@cython.ccall
@cython.exceptval(check=False)
def influence_of(
    P: cython.double[:, ::1],
    first: cython.Py_ssize_t,
    n: cython.Py_ssize_t,
    in_halves: cython.bint,
    slopes: cython.double[::1],
    means: cython.double[:, ::1],
    influence: cython.double[:, ::1],
    s: cython.Py_ssize_t,
) -> cython.bint:
    """Write each draw's first-order effect on its coalition's loss to row s.

    It is the slope at the mean times the deviation; the sum over the draws is 0. Of two halves of different sizes a
    draw of the smaller one has the larger share in the mean.
    """
    j: cython.Py_ssize_t
    c: cython.Py_ssize_t
    half: cython.Py_ssize_t = n // 2
    weight: cython.double = n
    moved: cython.double
    for j in range(n):
        moved = 0.0
        for c in range(P.shape[1]):
            moved += slopes[c] * (P[first + j, c] - means[0, c])
        if in_halves and half > 0:
            moved *= 0.5 * weight / (half if j < half else n - half)
        influence[s, j] = moved
    return True


@cython.ccall
@cython.exceptval(check=False)
def increments_of_losses(
    orders: cython.Py_ssize_t[:, ::1],
    marginal_loss: cython.double,
    model_loss: cython.double,
    losses: cython.double[::1],
    influence: cython.double[:, ::1],
    largest: cython.double,
    increments: cython.double[::1],
    parts: cython.double[:, ::1],
) -> cython.int:
    """Write each player's share of the drop in loss, and each draw's part.

    Returns DONE, or NOT_FINITE where an increment is as large as `largest`.

    Parameters
    ----------
    orders
        Shape (orders, players): the players by number, in the order in which they join.
    losses, influence
        Shapes (coalitions,) and (coalitions, draws): of the coalitions of all orders, one after the other.
    increments, parts
        Shapes (players,) and (players, draws).
    """
    o: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    step: cython.Py_ssize_t
    player: cython.Py_ssize_t
    following: cython.Py_ssize_t
    coalition: cython.Py_ssize_t = 0
    n_orders: cython.Py_ssize_t = orders.shape[0]
    k: cython.Py_ssize_t = orders.shape[1]
    n: cython.Py_ssize_t = parts.shape[1]
    share: cython.double = n_orders
    previous: cython.double
    loss: cython.double
    last: cython.bint
    fine: cython.bint = True
    share = 1.0 / share
    for i in range(k):
        increments[i] = 0.0
        for j in range(n):
            parts[i, j] = 0.0
    for o in range(n_orders):
        previous = marginal_loss
        for step in range(k):
            player = orders[o, step]
            last = step == k - 1
            loss = model_loss if last else losses[coalition]
            increments[player] += share * (previous - loss)
            previous = loss
            if not last:
                # The coalition's loss ends this player's step and starts the next one's.
                following = orders[o, step + 1]
                for j in range(n):
                    parts[player, j] -= share * influence[coalition, j]
                    parts[following, j] += share * influence[coalition, j]
                coalition += 1
    for i in range(k):
        fine = fine and abs(increments[i]) < largest
        for j in range(n):
            parts[i, j] += increments[i]
    return _DONE if fine else _NOT_FINITE
