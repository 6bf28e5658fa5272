"""Known answers of served models, for callers that must not wait.

Inside `answering` a served model asks nobody: it looks its rows up here. Rows that are not here are noted, to be asked
for later, and a placeholder stands for their predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from .errors import ServedError, UnnamedError
from .served import Served
from .words import Unusable, Values, placeholder


class Group(NamedTuple):
    """Rows of a single call of a model, which it can refuse only together."""

    served: Served
    keys: tuple[bytes, ...]


class Wanted(NamedTuple):
    """Rows that have to be asked for.

    Attributes
    ----------
    model_id
        The first model for which they were asked.
    """

    model_id: str
    group: Group
    rows: Sequence[Values]


Ask = Callable[[str, Group, Sequence[Values]], None]
"""Asks at once for the rows of a call, on behalf of a model id, and notes the answers."""


class Answers:
    """The answers of served models, by model and row.

    Attributes
    ----------
    model_id
        The model whose observation is handled.
    wanted
        The calls since `begin` with rows that are not known, each once.
    """

    def __init__(self) -> None:
        self.model_id = ""
        self.wanted: dict[Group, Wanted] = {}
        self.n_rows = 0
        """Rows in `wanted`; one that two calls have counts twice."""
        self._rows: dict[Served, dict[bytes, Any]] = {}
        self._refused: dict[Group, str] = {}
        self._last: dict[Served, Any] = {}

    @property
    def n_known(self) -> int:
        """Rows whose answers are kept."""
        return sum(map(len, self._rows.values())) + sum(len(group.keys) for group in self._refused)

    def begin(self) -> None:
        """Forget which rows are wanted."""
        self.wanted.clear()
        self.n_rows = 0

    def forget(self) -> None:
        """Forget all answers but each model's last.

        The last answer stands in for answers that are not known.
        """
        self.begin()
        self._rows.clear()
        self._refused.clear()

    def note(self, served: Served, keys: Sequence[bytes], predictions: Sequence[Any]) -> None:
        """Keep the predictions for some rows."""
        self._rows.setdefault(served, {}).update(zip(keys, predictions, strict=True))
        usable = [one for one in predictions if not isinstance(one, Unusable)]
        if usable:
            self._last[served] = usable[-1]

    def refuse(self, group: Group, why: str) -> None:
        """Note that there is no prediction for the rows of a call."""
        self._refused[group] = why

    def find(self, served: Served, keys: Sequence[bytes], rows: Sequence[Values], ask: Ask | None) -> list[Any]:
        """Return the predictions for the rows of a call.

        Parameters
        ----------
        ask
            Asks for what is not known; None notes it instead, and a placeholder stands for it.

        Raises
        ------
        ServedError
            The model refuses them, or its answer for one is none.
        """
        group = Group(served, tuple(keys))
        if group in self._refused:
            raise ServedError(self._refused[group])
        known = self._rows.get(served, {})
        if not all(key in known for key in keys):
            if ask is None:
                if group not in self.wanted:
                    self.wanted[group] = Wanted(self.model_id, group, rows)
                    self.n_rows += len(keys)
            else:
                ask(self.model_id, group, rows)
                return self.find(served, keys, rows, None)
        stand_in = self._last.get(served)
        stand_in = placeholder(served) if stand_in is None else stand_in
        found = [known.get(key, stand_in) for key in keys]
        for one in found:
            if isinstance(one, Unusable):
                raise ServedError(one)
        return found

    def missing(self, group: Group) -> list[int]:
        """Return the places of a call's rows that are not known."""
        known = self._rows.get(group.served, {})
        return [at for at, key in enumerate(group.keys) if key not in known]


class _Now(NamedTuple):
    answers: Answers
    ask: Ask | None


_NOW: ContextVar[_Now | None] = ContextVar("answers", default=None)


@contextmanager
def answering(answers: Answers, ask: Ask | None = None) -> Iterator[None]:
    """Let served models answer from here, inside the block.

    Parameters
    ----------
    ask
        Asks at once for what is not known; None notes it.
    """
    token = _NOW.set(_Now(answers, ask))
    try:
        yield
    finally:
        _NOW.reset(token)


@contextmanager
def asking_nobody() -> Iterator[None]:
    """Keep served models inside the block from asking their endpoints.

    It is meant for a process whose configuration names no address. Stored states may hold such a model all the same:
    one that was configured, or allowed, before.
    """
    with answering(Answers(), _refuse):
        yield


def _refuse(_model_id: str, group: Group, _rows: Sequence[Values]) -> None:
    raise UnnamedError(group.served.url)


def answers_now() -> tuple[Answers, Ask | None] | None:
    """Return the answers in use here; None if models ask their endpoints."""
    return _NOW.get()
