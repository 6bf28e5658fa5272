"""Reference values and latest values of a feature."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .buffers import floats, integers

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.libc.math import log, sqrt
else:
    from math import log, sqrt

LATEST = 50
"""Observations that are judged: a break fills most of them."""
_LATEST = cython.declare(cython.Py_ssize_t, 50)
N_KEPT = 64
"""Numbers that are kept of the reference."""
_N_KEPT = cython.declare(cython.Py_ssize_t, 64)
_MOST_WORDS = cython.declare(cython.Py_ssize_t, 64)
_LONGEST_WORD = 64
_LEAST = cython.declare(cython.longlong, 200)
"""Observations in the reference before anything is judged."""
_MEMORY = cython.declare(cython.longlong, 4096)
"""Observations over which the kept numbers are spread, about."""
_SORTED_EVERY = cython.declare(cython.longlong, 16)
_SHRINKS = cython.declare(cython.double, 0.0001)
"""Largest share of the range lost in one update."""
_FEWEST = cython.declare(cython.Py_ssize_t, 20)
_LOG_RARE = cython.declare(cython.double, math.log(1e-9))
"""Logarithm of the chance of a run that is no chance any more."""
_INFINITE = cython.declare(cython.double, math.inf)
_BITS = cython.declare(cython.ulonglong, 2**64 - 1)
_FIFTH = cython.declare(cython.double, math.log(5.0))
_SURE = cython.declare(cython.double, math.log(1e9))
"""Logarithm of the evidence that is reported: rows in which chance alone brings as much once, at least."""
_BOUND = cython.declare(cython.double, math.log(1e6))
"""Logarithm of one over the chance that a share is above the bound that is taken for it."""
_LEAST_USUAL = cython.declare(cython.double, 0.01)
"""Share of wrong values below which none is less usual than another."""
_DRIFTS = cython.declare(cython.double, 0.3)
"""Share of values just beyond the range that makes a move a slow drift."""

NOTHING, GONE, STUCK, NEW, FAR, OF_ANOTHER_TYPE = range(6)
"""Faults of the latest values."""
_NOTHING = cython.declare(cython.int, 0)
_GONE = cython.declare(cython.int, 1)
_STUCK = cython.declare(cython.int, 2)
_NEW = cython.declare(cython.int, 3)
_FAR = cython.declare(cython.int, 4)
_OF_ANOTHER_TYPE = cython.declare(cython.int, 5)

_MISSING = cython.declare(cython.longlong, 1)
_NUMBER = cython.declare(cython.longlong, 2)
_WORD = cython.declare(cython.longlong, 4)
_IS_NEW = cython.declare(cython.longlong, 8)
_IS_FAR = cython.declare(cython.longlong, 16)
_IS_OTHER = cython.declare(cython.longlong, 32)
_IS_SAME = cython.declare(cython.longlong, 64)
_STARTS = cython.declare(cython.longlong, 128)
"""Of a wrong value behind a right one."""
_WRONG = cython.declare(cython.longlong, 1 + 16 + 32)
"""Missing, far or of another type. A word that is new may be in half of the rows because it is in fashion."""
_FLAGS = cython.declare(cython.Py_ssize_t, 8)


@cython.cclass
class FeatureValues:
    """The values of a feature: a reference, and the latest 50.

    A value joins the reference when 50 others have followed, and none does while the reference is held.
    """

    n = cython.declare(cython.longlong, visibility="readonly")
    """Observations in the reference."""
    n_missing = cython.declare(cython.longlong, visibility="readonly")
    low = cython.declare(cython.double, visibility="readonly")
    high = cython.declare(cython.double, visibility="readonly")
    """Range of the kept numbers without a fiftieth on either side; NaN if none."""
    words = cython.declare(dict, visibility="readonly")
    """Count of each word, of 64 different ones at most."""
    is_held = cython.declare(cython.bint, visibility="public")
    n_latest = cython.declare(cython.longlong, visibility="readonly")
    """Observations so far, held ones too."""
    run = cython.declare(cython.longlong, visibility="readonly")
    """Observations for which the value has been the same, or missing."""
    _kept: cython.double[::1]
    _n_numbers: cython.longlong
    _n_words: cython.longlong
    """Of the reference: numbers, and words."""
    _novelty: cython.double
    """Share of the words that joined last that were new when they came."""
    _has_many: cython.bint
    """Whether there were more words than are counted, so that none is new."""
    _n_repeats: cython.longlong
    _n_missing_repeats: cython.longlong
    """Values that were that of before, and missing ones behind a missing one."""
    _beyond: cython.double
    """Share of the numbers that joined last that were beyond the range: near 1 while values drift away."""
    _n_right: cython.longlong
    _n_starts: cython.longlong
    """Of the reference: values that were right, and wrong ones that came behind one of these."""
    _usual: cython.double
    """Share of wrong values that is known to come now and then."""
    _evidence: cython.double
    """Logarithm of the evidence that wrong values start more often than before; above 0 while there is any."""
    _evidence_from: cython.longlong
    """Observations before the first one of that evidence."""
    _middle: cython.double
    """Median of the kept numbers."""
    _n_below: cython.longlong
    _n_block: cython.longlong
    """Of the present block of 50 numbers: those below the median, and all."""
    n_blocks = cython.declare(cython.longlong, visibility="readonly")
    _n_all_below: cython.longlong
    _squares: cython.longlong
    """Sums over blocks of how many numbers are below the median, and of its square."""
    _longest: cython.longlong
    _longest_missing: cython.longlong
    """Lengths of the longest runs that have ended."""
    _flags: cython.longlong[::1]
    _numbers: cython.double[::1]
    _texts: list[Any]
    """The latest, in a ring."""
    _counts: cython.longlong[::1]
    """How many of the latest have each flag."""
    _seed: cython.ulonglong

    def __init__(self) -> None:
        self._kept, self._flags, self._numbers = floats(N_KEPT), integers(LATEST), floats(LATEST)
        self._texts, self._counts = [None] * LATEST, integers(8)
        self.n_latest = self._evidence_from = self.run = self._longest = self._longest_missing = 0
        self.is_held, self._seed = False, 88172645463325252
        self.forget()

    def forget(self) -> None:
        """Begin a new reference, which the next values are."""
        self.n = self.n_missing = self._n_numbers = self._n_words = self._n_right = self._n_starts = 0
        self._usual, self._evidence = _LEAST_USUAL, 0.0
        self._n_repeats = self._n_missing_repeats = 0
        self.low = self.high = math.nan
        self._beyond = self._novelty = 0.0
        self._middle = 0.0
        self.n_blocks = self._n_block = self._n_below = self._n_all_below = self._squares = 0
        self.words, self._has_many, self.is_held = {}, False, False

    @cython.ccall
    def add(self, value: object) -> cython.int:
        """Take in a value; return the latest values' fault, if any."""
        flag: cython.longlong = _NUMBER
        number: cython.double = 0.0
        text: Any = None
        if type(value) is float or type(value) is int:
            try:
                number = float(value)
            except OverflowError:
                number = _INFINITE if value > 0 else -_INFINITE
            if number != number:
                flag = _MISSING
        elif type(value) is str:
            flag, text = _WORD, value
        elif value is None:
            flag = _MISSING
        else:
            flag, number, text = _read(value)
        if flag == _WORD:
            if len(text) > _LONGEST_WORD:
                text = text[:_LONGEST_WORD]
            if not self._has_many and text not in self.words:
                flag |= _IS_NEW
        elif flag == _NUMBER and self._is_far(number):
            flag |= _IS_FAR
        if self._is_of_another_type(flag):
            flag |= _IS_OTHER
        if self._count_run(flag, number, text):
            flag |= _IS_SAME
        if self._weigh(flag & _WRONG != 0):
            flag |= _STARTS
        self._put(flag, number, text)
        return self._judge() if self.n >= _LEAST else _NOTHING

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_far(self, number: cython.double) -> cython.bint:
        """Return whether a number is far outside the range.

        Far is half a range beyond it, or below a third of its lower end where that is well above 0.
        """
        width: cython.double = self.high - self.low
        if not width > 0.0:
            return False
        return (
            number > self.high + 0.5 * width
            or number < self.low - 0.5 * width
            or (self.low > 0.1 * self.high and number < self.low / 3.0)
        )

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_of_another_type(self, flag: cython.longlong) -> cython.bint:
        few: cython.longlong = (self._n_numbers + self._n_words) // 20
        if flag & _NUMBER:
            return self._n_words > 0 and self._n_numbers <= few
        return flag & _WORD != 0 and self._n_numbers > 0 and self._n_words <= few

    @cython.cfunc
    def _count_run(self, flag: cython.longlong, number: cython.double, text: object) -> cython.bint:
        """Count a run of equal values; return whether the value continues it.

        What is the same for long joins the reference when that is over: until then it may be a break.
        """
        i: cython.Py_ssize_t = (self.n_latest - 1) % _LATEST
        _: cython.longlong
        is_same: cython.bint = False
        if self.n_latest > 0 and flag & 7 == self._flags[i] & 7:
            is_same = flag & _MISSING != 0 or (number == self._numbers[i] and text == self._texts[i])
        if is_same:
            self.run += 1
            return True
        if self.n_latest > 0:
            if self._flags[i] & _MISSING:
                self._longest_missing = max(self._longest_missing, self.run)
            else:
                self._longest = max(self._longest, self.run)
            if not self.is_held:
                for _ in range(min(self.run - _LATEST, _MEMORY)):
                    self._learn(i)
        self.run = 1
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def _weigh(self, is_wrong: cython.bint) -> cython.bint:
        """Weigh a value behind a right value; return whether it is wrong.

        The evidence grows if values behind right ones are wrong more often than before.

        A wrong value behind another wrong one weighs nothing: runs are judged by their length. The evidence is that of
        Page's test, a likelihood ratio that is never below 1. It is of a share p of wrong values behind right ones,
        which is a bound from above of that of the reference, against 1 - (1 - p) / 5. As long as the share is not above
        p, whatever came before, it reaches a billion once in a billion rows at most (Lorden, 1971).
        """
        most: cython.double
        p: cython.double
        if self.n_latest == 0 or self._flags[(self.n_latest - 1) % _LATEST] & _WRONG:
            return False
        if not is_wrong:
            self._evidence = max(self._evidence - _FIFTH, 0.0)
            return False
        if self._evidence == 0.0:
            self._evidence_from = self.n_latest
        # Chernoff's bound: of a larger mean, so few come with that chance at most.
        most = self._n_starts + _BOUND + sqrt(_BOUND * (_BOUND + 2.0 * self._n_starts))
        p = min(max(self._usual, most / max(self._n_right, 1)), 1.0)
        self._evidence = min(self._evidence + log((0.8 + 0.2 * p) / p), _SURE)
        return True

    @cython.cfunc
    def _put(self, flag: cython.longlong, number: cython.double, text: object) -> cython.bint:
        """Put a value among the latest; the oldest of these joins the reference."""
        i: cython.Py_ssize_t = self.n_latest % _LATEST
        j: cython.Py_ssize_t
        if self.n_latest >= _LATEST:
            if not self.is_held and self.run <= _LATEST:
                self._learn(i)
            for j in range(_FLAGS):
                self._counts[j] -= (self._flags[i] >> j) & 1
        self._flags[i], self._numbers[i], self._texts[i] = flag, number, text
        for j in range(_FLAGS):
            self._counts[j] += (flag >> j) & 1
        if flag & _NUMBER and not self.is_held and self._n_numbers >= _LEAST:
            self._n_below += number < self._middle
            self._n_block += 1
            if self._n_block == _LATEST:
                self._n_all_below += self._n_below
                self._squares += self._n_below * self._n_below
                self.n_blocks += 1
                self._n_block = self._n_below = 0
        self.n_latest += 1
        return True

    @cython.cfunc
    def _learn(self, i: cython.Py_ssize_t) -> cython.bint:
        """Add a latest value to the reference."""
        flag: cython.longlong = self._flags[i]
        following: cython.Py_ssize_t = (i + 1) % _LATEST
        repeats: cython.bint = False
        if flag & 7 == self._flags[following] & 7:
            repeats = self._numbers[i] == self._numbers[following] and self._texts[i] == self._texts[following]
        self.n += 1
        self._n_right += flag & _WRONG == 0
        self._n_starts += flag & _STARTS != 0
        if flag & _MISSING:
            self.n_missing += 1
            self._n_missing_repeats += repeats
            return True
        self._n_repeats += repeats
        if flag & _NUMBER:
            self._keep(self._numbers[i])
        else:
            self._n_words += 1
            self._novelty += ((flag & _IS_NEW != 0) - self._novelty) / 25.0
            text: Any = self._texts[i]
            if text in self.words:
                self.words[text] += 1
            elif len(self.words) < _MOST_WORDS:
                self.words[text] = 1
            else:
                self._has_many = True
        return True

    @cython.cfunc
    def _keep(self, number: cython.double) -> cython.bint:
        """Keep a number in a random place, more rarely the more have come."""
        is_beyond: cython.bint = number > self.high or number < self.low
        self._beyond += (is_beyond - self._beyond) / 25.0
        self._n_numbers += 1
        n: cython.longlong = self._n_numbers
        place: cython.longlong = n - 1
        if n > _N_KEPT:
            # Marsaglia's xorshift: the draws are part of the state, and cost nothing.
            self._seed ^= (self._seed << 13) & _BITS
            self._seed ^= self._seed >> 7
            self._seed ^= (self._seed << 17) & _BITS
            place = (self._seed >> 11) % min(n, _MEMORY)
        if place < _N_KEPT:
            self._kept[place] = number
        if n >= 2 and (n <= _N_KEPT or n % _SORTED_EVERY == 0):
            self._find_range()
        return True

    @cython.cfunc
    def _find_range(self) -> cython.bint:
        """Widen the range at once to fit the kept numbers; shrink it slowly."""
        ordered: list[Any] = np.sort(np.asarray(self._kept)[: min(self._n_numbers, _N_KEPT)]).tolist()
        left_out: cython.Py_ssize_t = len(ordered) // 50
        low: cython.double = ordered[left_out]
        high: cython.double = ordered[len(ordered) - 1 - left_out]
        by: cython.double
        if self._n_numbers > _N_KEPT:
            by = _SHRINKS * (self.high - self.low)
            low, high = min(low, self.low + by), max(high, self.high - by)
        self.low, self.high, self._middle = low, high, ordered[len(ordered) // 2]
        return True

    @cython.cfunc
    def _judge(self) -> cython.int:
        """Return the fault of the latest values."""
        numbers: cython.longlong = self._counts[1]
        words: cython.longlong = self._counts[2]
        least: cython.longlong
        if self.run >= _LATEST and self._is_no_chance():
            return _GONE if self._counts[0] == _LATEST else _STUCK
        least = max(_FEWEST, (9 * (numbers + words) + 9) // 10)
        if self._counts[5] >= least:
            return _OF_ANOTHER_TYPE
        if self._evidence >= _SURE and not self._is_moving():
            return self._commonest()
        # Where a value comes for long, as that of a day or a shop, another one for long is nothing wrong.
        if 2 * self._counts[6] >= _LATEST:
            return _NOTHING
        if self._counts[4] >= least and self._beyond < _DRIFTS:
            return _FAR
        if self._counts[3] >= least and self._novelty < 0.1:
            return _NEW
        return _NOTHING

    @cython.cfunc
    def _is_moving(self) -> cython.bint:
        """Return whether the range is being left by numbers that are not far.

        It is where many of the latest numbers that are not far are out of the range, or many of the last that joined
        the reference were.
        """
        i: cython.Py_ssize_t
        n: cython.longlong = 0
        n_beyond: cython.longlong = 0
        for i in range(_LATEST):
            if self._flags[i] & _NUMBER and not self._flags[i] & _IS_FAR:
                n += 1
                n_beyond += self._numbers[i] > self.high or self._numbers[i] < self.low
        return self._beyond >= _DRIFTS or (n_beyond > 0 and n_beyond >= _DRIFTS * n)

    @cython.cfunc
    def _commonest(self) -> cython.int:
        """Return the most common fault of the latest values."""
        found: cython.int = _GONE
        n: cython.longlong = self._counts[0]
        if self._counts[4] > n:
            found, n = _FAR, self._counts[4]
        return _OF_ANOTHER_TYPE if self._counts[5] > n else found

    @cython.cfunc
    def _is_no_chance(self) -> cython.bint:
        """Return whether the present run is longer than runs of before explain."""
        is_missing: cython.bint = self._counts[0] == _LATEST
        longest: cython.longlong = self._longest_missing if is_missing else self._longest
        if self.run <= 2 * longest:
            return False
        if is_missing and 2 * self.n_missing > self.n:
            return False
        of: cython.double = self.n_missing if is_missing else self.n - self.n_missing
        ends: cython.double = of - (self._n_missing_repeats if is_missing else self._n_repeats)
        if not is_missing:
            ends /= 2.0  # of a rare value, whose runs end at once, and of the usual one, whose run this is
        ends -= 2.0 * sqrt(ends)  # there may be as few
        if is_missing and of == 0.0:
            return True
        if is_missing:
            ends = max(ends, 0.3)
        return ends > 0.0 and self.run * log(1.0 - ends / (of + 1.0)) < _LOG_RARE

    def learn_latest(self) -> None:
        """Let the range, the words and the share of wrong values hold the latest.

        They come now and then.
        """
        self._usual = max(self._usual, sum(flag & _WRONG != 0 for flag in self._flags) / LATEST)
        numbers = [value for value in self.latest(LATEST) if isinstance(value, float)]
        if numbers:
            self.low, self.high = min(self.low, *numbers), max(self.high, *numbers)
        for value in self.latest(LATEST):
            if isinstance(value, str) and len(self.words) < 64:
                self.words.setdefault(value, 1)

    def share_of(self, what: int) -> float:
        """Return the share of the latest 50 that is wrong in this way."""
        if what == STUCK:
            return min(self.run / LATEST, 1.0)
        return self._counts[{GONE: 0, NEW: 3, FAR: 4, OF_ANOTHER_TYPE: 5}[what]] / LATEST

    def independent(self) -> float:
        """Return how many independent numbers are worth 50 consecutive ones.

        By how the share below the median varies from one block to the next, so that slow cycles count too.
        """
        below, squares = (float(of) / max(self.n_blocks, 1) for of in (self._n_all_below, self._squares))
        variance = squares - below * below
        return min(float(LATEST), below * (LATEST - below) / variance) if variance > 0.0 else 0.0

    def since(self, what: int) -> int:
        """Return for how many observations the latest values have had a fault."""
        if what == STUCK or (what == GONE and self.run >= LATEST):
            return self.run
        if self._evidence >= _SURE:
            return self.n_latest - self._evidence_from
        bit, first = {NEW: _IS_NEW, FAR: _IS_FAR, OF_ANOTHER_TYPE: _IS_OTHER}[what], 0
        for age in range(1, min(self.n_latest, LATEST) + 1):
            if self._flags[(self.n_latest - age) % LATEST] & bit:
                first = age
        return first

    def numbers_kept(self) -> list[float]:
        """Return numbers of the reference, in order of size."""
        return sorted(np.asarray(self._kept)[: min(self._n_numbers, N_KEPT)].tolist())

    def latest(self, n: int, what: int = NOTHING) -> list[Any]:
        """Return the latest values, the oldest of them first: None where missing.

        Only those that are wrong in this way, if one is given.
        """
        bits = {GONE: _MISSING, NEW: _IS_NEW, FAR: _IS_FAR, OF_ANOTHER_TYPE: _IS_OTHER}.get(what, -1)
        found: list[Any] = []
        for age in range(min(n, self.n_latest, LATEST), 0, -1):
            i = (self.n_latest - age) % LATEST
            flag = self._flags[i]
            if not flag & bits:
                continue
            found.append(None if flag & _MISSING else self._numbers[i] if flag & _NUMBER else self._texts[i])
        return found

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {
            "n": [self.n, self.n_missing, self._n_numbers, self._n_words, self.n_latest],
            "runs": [self.run, self._longest, self._longest_missing, self._n_repeats, self._n_missing_repeats],
            "kept": np.asarray(self._kept)[: min(self._n_numbers, N_KEPT)].tobytes(),
            "range": [None if self.low != self.low else (self.low, self.high), self._beyond, self._novelty],
            "wrong": [self._n_right, self._n_starts, self._usual, self._evidence, self._evidence_from],
            "blocks": [self._middle, self._n_below, self._n_block, self.n_blocks, self._n_all_below, self._squares],
            "words": list(self.words.items()),
            "flags": bytes(np.asarray(self._flags).astype(np.uint8)),
            "numbers": np.asarray(self._numbers).tobytes() if self._counts[1] else b"",
            "texts": list(self._texts) if self._counts[2] else [],
            "seed": [self._seed, int(self._has_many), int(self.is_held)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state from `snapshot`."""
        self.n, self.n_missing, self._n_numbers, self._n_words, self.n_latest = state["n"]
        self.run, self._longest, self._longest_missing, self._n_repeats, self._n_missing_repeats = state["runs"]
        kept = np.frombuffer(state["kept"])
        np.asarray(self._kept)[: len(kept)] = kept
        found, self._beyond, self._novelty = state["range"]
        self.low, self.high = (math.nan, math.nan) if found is None else found
        self._n_right, self._n_starts, self._usual, self._evidence, self._evidence_from = state["wrong"]
        self.words = dict(map(tuple, state["words"]))
        self._middle, self._n_below, self._n_block, self.n_blocks, self._n_all_below, self._squares = state["blocks"]
        self._seed, self._has_many, self.is_held = state["seed"]
        flags = np.frombuffer(state["flags"], dtype=np.uint8)
        np.asarray(self._flags)[:] = flags
        np.asarray(self._numbers)[:] = np.frombuffer(state["numbers"]) if state["numbers"] else 0.0
        self._texts = list(state["texts"]) if state["texts"] else [None] * LATEST
        for j in range(_FLAGS):
            self._counts[j] = int(((flags >> j) & 1)[: min(self.n_latest, LATEST)].sum())

    def __reduce__(self) -> Any:
        return _restored, (self.snapshot(),)


def _restored(state: dict[str, Any]) -> FeatureValues:
    values = FeatureValues()
    values.restore(state)
    return values


def _read(value: Any) -> tuple[int, float, Any]:
    """Return the flag, number and text of a value of another type."""
    if isinstance(value, (Real, Decimal)):
        try:
            number = float(value)
        except (OverflowError, ValueError):  # an integer of 400 digits; Decimal's signalling NaN
            return _MISSING, 0.0, None
        return (_MISSING, 0.0, None) if number != number else (_NUMBER, number, None)
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' own, without importing it
        return _MISSING, 0.0, None
    return _WORD, 0.0, str(value)
