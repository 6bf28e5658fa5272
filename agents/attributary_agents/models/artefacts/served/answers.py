"""Fetched answers of served models.

Inside `answering` a served model sends no request: its predictions are looked up here. Rows without an answer either
fail, or are noted to be fetched later, and a placeholder stands for their predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from .errors import ServedError, UnnamedError
from .protocol import Values, placeholder
from .served import Served


class Call(NamedTuple):
    """Rows of a single call of a model, which it can refuse only together.

    Attributes
    ----------
    model_id
        The model for whose observation it is made.
    """

    model_id: str
    served: Served
    rows: dict[bytes, Values]

    @property
    def key(self) -> tuple[Served, tuple[bytes, ...]]:
        """The call's identity."""
        return self.served, tuple(self.rows)


class Answers:
    """Answers of served models, by model and row.

    Attributes
    ----------
    model_id
        The model whose observation is handled.
    wanted
        The calls with rows that have no answer yet, each once.
    """

    def __init__(self) -> None:
        self.model_id = ""
        self.wanted: dict[tuple[Served, tuple[bytes, ...]], Call] = {}
        self._rows: dict[Served, dict[bytes, Any]] = {}
        self._refused: dict[tuple[Served, tuple[bytes, ...]], str] = {}
        self._last: dict[Served, Any] = {}

    @property
    def n_wanted(self) -> int:
        """Rows of the wanted calls; a row of two calls counts twice."""
        return sum(len(call.rows) for call in self.wanted.values())

    def clear(self) -> None:
        """Forget all answers but each model's last, a later placeholder."""
        self.wanted.clear()
        self._rows.clear()
        self._refused.clear()

    def note(self, served: Served, keys: Sequence[bytes], predictions: Sequence[Any]) -> None:
        """Keep the predictions for some rows."""
        self._rows.setdefault(served, {}).update(zip(keys, predictions, strict=True))
        self._last.update((served, prediction) for prediction in predictions[-1:])

    def refuse(self, call: Call, why: str) -> None:
        """Note that there is no prediction for the rows of a call."""
        self._refused[call.key] = why

    def missing(self, call: Call) -> dict[bytes, Values]:
        """Return the rows of a call that have no answer."""
        answers = self._rows.get(call.served, {})
        return {key: row for key, row in call.rows.items() if key not in answers}

    def find(self, served: Served, rows: dict[bytes, Values], fail: Fail | None) -> dict[bytes, Any]:
        """Return the predictions for the rows of a call.

        Parameters
        ----------
        fail
            Makes the error for rows that have no answer; None notes the call as wanted, and a placeholder stands for
            their predictions.

        Raises
        ------
        ServedError
            The model refuses them, or there is no answer.
        """
        call = Call(self.model_id, served, rows)
        if call.key in self._refused:
            raise ServedError(self._refused[call.key])
        answers = self._rows.get(served, {})
        if not rows.keys() <= answers.keys():
            if fail is not None:
                raise fail(served.url)
            self.wanted.setdefault(call.key, call)
        # Some draws depend on predictions: the last one is nearer to the truth than an even one.
        stand_in = self._last.get(served) or placeholder(served)
        return {key: answers.get(key, stand_in) for key in rows}


Fail = Callable[[str], ServedError]
"""Makes the error for an address whose answers are not there."""

_CURRENT: ContextVar[tuple[Answers, Fail | None] | None] = ContextVar("answers", default=None)


@contextmanager
def answering(answers: Answers, fail: Fail | None = None) -> Iterator[None]:
    """Let served models answer from here, inside the block.

    Parameters
    ----------
    fail
        As for `Answers.find`.
    """
    token = _CURRENT.set((answers, fail))
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def offline() -> Iterator[None]:
    """Keep served models inside the block from sending requests.

    It is meant for a process whose configuration names no address. Stored states may hold such a model all the same:
    one that was configured, or allowed, before.
    """
    with answering(Answers(), UnnamedError):
        yield


def current_answers() -> tuple[Answers, Fail | None] | None:
    """Return the answers in use here; None if models send requests."""
    return _CURRENT.get()
