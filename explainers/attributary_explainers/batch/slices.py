"""Work in slices, between which it can pause or be stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")


class Slice(NamedTuple):
    """A part of some work, which is sent the answer.

    Attributes
    ----------
    n
        Rows that models are asked about; 0 where this part does something else.
    take
        Does this part; returns an array, a list of predictions, or None.
    """

    n: int
    take: Callable[[], Any]


Steps: TypeAlias = Generator[Slice, Any, T]
"""Work as a generator: it yields what is to be done next, and is sent what came of it.

What it does by itself follows from what it began with and from the answers alone: it can be begun again from these. An
error of a slice is raised where the slice was yielded, and ends the work: nothing is asked after it.
"""


class Sliced(Generic[T]):
    """Work that is done slice by slice.

    Parameters
    ----------
    begin
        Returns the work, from its beginning.
    answers
        Answers of the slices that were done before from the same beginning: they are not done again.
    """

    def __init__(self, begin: Callable[[], Steps[T]], answers: Iterable[Any] = ()) -> None:
        self._begin = begin
        self.answers: list[Any] = list(answers)
        """Of the slices that have been done."""
        self._steps: Steps[T] | None = None
        self._next: Slice | None = None
        self._results: list[T] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_steps": None, "_next": None}  # a generator cannot be copied: answers say how far it is

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return bool(self._results)

    @property
    def result(self) -> T:
        """Result of the work, once it is done."""
        return self._results[0]

    def go_on(self, n: float) -> bool:
        """Do a slice or more, about `n` rows; return True once all is done.

        Raises
        ------
        Exception
            Of a slice, where the work does nothing about it.
        """
        if self._results:
            return True
        try:
            if self._steps is None:
                self._steps = self._begin()
                self._next = next(self._steps)
                for answer in self.answers:
                    self._next = self._steps.send(answer)
            spent = 0
            while self._next is not None and (spent == 0 or spent + self._next.n <= n):
                spent += self._next.n
                try:
                    answer = self._next.take()
                except Exception as error:  # noqa: BLE001 - it is the work that knows what an error means
                    self._next = self._steps.throw(error)
                    continue
                self.answers.append(answer)
                self._next = self._steps.send(answer)
        except StopIteration as end:
            self._results.append(end.value)
            self._steps = self._next = None
        return self.is_done


def finish(steps: Steps[T]) -> T:
    """Run all steps at once and return their result."""
    work = Sliced(lambda: steps)
    work.go_on(math.inf)
    return work.result
