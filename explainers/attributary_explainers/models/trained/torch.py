"""Modules of PyTorch, evaluated without gradients, by a thread."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import InvalidParameterError
from ...typing import Features, Output
from ..batch import number_array, per_row, table
from .base import TrainedModel, by_class, check_probabilities, is_of_second


def is_module(model: Any) -> bool:
    """Return whether a model is a `torch.nn.Module`, without importing torch."""
    return any(
        (one.__module__, one.__qualname__) == ("torch.nn.modules.module", "Module") for one in type(model).__mro__
    )


class TorchModel(TrainedModel):
    """A `torch.nn.Module` whose columns are named.

    It is put into `eval` mode, evaluated without gradients, and given all rows at once as a tensor (rows, columns) of
    the type and on the device of its first parameter, or of float32 where it has none. A call takes one thread; other
    calls keep their number of threads.

    `dump_model` stores its class, by name, and its numbers as arrays of numpy: loading runs nothing of torch that could
    run code which somebody has written into a stored state.

    Parameters
    ----------
    module
        Takes a tensor (rows, columns); returns one (rows,) or (rows, 1) of a regressor, and of a classifier one (rows,
        classes), or (rows,) or (rows, 1) with the probability of the second class.
    features
        Names of its columns, in order. Numbers only; what a row lacks is NaN.
    classes
        Labels of a classifier in the order of its outputs; None: a regressor.
    logits
        Whether a classifier returns logits, as for `CrossEntropyLoss` and `BCEWithLogitsLoss`, and not probabilities.

    Raises
    ------
    InvalidParameterError
        `module` is no module, or `features` or `classes` names nothing or something twice.
    """

    def __init__(
        self, module: Any, features: Iterable[Any], classes: Iterable[Any] | None = None, *, logits: bool = False
    ) -> None:
        if not is_module(module):
            raise InvalidParameterError("module", "a torch.nn.Module", module)
        super().__init__(features, classes)
        self.module, self.logits = module.eval(), logits
        self.kind = "regressor" if self.classes is None else "classifier"
        self.has_probabilities = self.classes is not None

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"the module {type(self.module).__name__}"

    def predict_many(self, rows: Sequence[Features], output: Output) -> list[Any]:
        """Return a prediction per row, by a single call of the module.

        Raises
        ------
        ModelError
            A value is no number, or the module returns another shape than its classes say, or no probabilities.
        """
        torch: Any = importlib.import_module("torch")
        names, advice = self.columns(rows), "encode it before the module, in a class with forward(table) of its own"
        given = number_array(table(rows, names), names, advice)
        first = next(iter(self.module.parameters()), None)
        kind, device = (torch.float32, "cpu") if first is None else (first.dtype, first.device)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.inference_mode():
                found = self.module(torch.from_numpy(given).to(device=device, dtype=kind))
                found = found.to(device="cpu", dtype=torch.float64).numpy()
        finally:
            torch.set_num_threads(threads)
        if self.classes is None:
            return per_row(found, len(rows))
        if self.logits:
            found = _sigmoid(found) if is_of_second(found, len(rows), self.classes) else _softmax(found)
        else:
            check_probabilities(self.title, found, "say TorchModel(..., logits=True), or put a softmax at its end")
        return by_class(found, len(rows), self.classes)

    def __repr__(self) -> str:
        return f"TorchModel({type(self.module).__name__}, features={self.features!r}, classes={self.classes!r})"


def _sigmoid(found: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-found))


def _softmax(found: Any) -> Any:
    raised = np.exp(found - found.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)
