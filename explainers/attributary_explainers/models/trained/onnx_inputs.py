"""Inputs of an ONNX file, and the conversion of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ModelError
from ...missing import is_missing
from ...typing import Features
from ..batch import number_array, table

_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}
_ONE = 1


class Inputs:
    """The inputs of a file: a table, or a column for each feature.

    Parameters
    ----------
    inputs
        As onnxruntime describes them: name, type and shape.
    features
        Names that the columns of the one table have; of several inputs they have to be those of the inputs.

    Raises
    ------
    ModelError
        An input is neither a table nor a column; the message says what to do.
    """

    def __init__(self, inputs: Sequence[Any], features: Iterable[Any] | None) -> None:
        self._types = {one.name: _type(one) for one in inputs}
        self._ranks = {one.name: _rank(one, len(inputs) > 1, features is not None) for one in inputs}
        self.names: tuple[str, ...] | None = None
        """Of several inputs, what they are called."""
        self.n_columns: int | None = None
        """Of the one table; None where any number will do."""
        if len(inputs) > 1:
            self.names = tuple(self._types)
            if features is not None and set(features) != set(self.names):
                raise ModelError(
                    f"the file has an input for each of {', '.join(self.names)}, and features names "
                    f"{', '.join(map(str, features))}: leave features out"
                )
            self.n_columns = len(self.names)
            return
        (one,) = inputs
        width = one.shape[-1] if len(one.shape) == 2 else (_ONE if len(one.shape) == 1 else None)
        self.n_columns = width if isinstance(width, int) else None
        if self.n_columns == _ONE and features is None:
            self.names = (one.name,)

    def kinds(self, features: Sequence[Any]) -> Mapping[Any, str]:
        """Return number, category or boolean for each feature."""
        if len(self._types) > 1:
            return {name: _KINDS.get(kind, "number") for name, kind in self._types.items()}
        (kind,) = self._types.values()
        return dict.fromkeys(features, _KINDS.get(kind, "number"))

    def feeds(self, rows: Sequence[Features], columns: Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the inputs that onnxruntime gets for the rows.

        Raises
        ------
        ModelError
            A value is not of the kind that its input takes; the message names the feature.
        """
        feeds = {}
        for name, kind in self._types.items():
            names = columns if len(self._types) == 1 else (name,)
            found = _array(table(rows, names), names, kind)
            feeds[name] = found.reshape(-1) if self._ranks[name] == 1 else found
        return feeds


_KINDS = {np.object_: "category", np.bool_: "boolean"}


def _array(values: list[list[Any]], names: Sequence[Any], kind: Any) -> npt.NDArray[Any]:
    if kind is np.object_:
        return _texts(values, names)
    encoder = "convert the pipeline with its encoder, so that the file has an input for text"
    found = number_array(values, names, f"the ONNX model takes numbers only; {encoder}")
    if issubclass(kind, np.floating):
        with np.errstate(over="ignore"):
            made = found.astype(kind)
        _check(names, np.isinf(made) & np.isfinite(found), found, f"a number that {np.dtype(kind).name} can hold")
        return made
    _check(names, np.isnan(found), found, "a value (`missing` can give one, where there is none)")
    with np.errstate(invalid="ignore"):
        made = found.astype(kind)
    _check(names, made != found, found, "a boolean" if kind is np.bool_ else "a whole number")
    return made


def _texts(values: list[list[Any]], names: Sequence[Any]) -> npt.NDArray[Any]:
    found = np.empty((len(values), len(names)), dtype=object)
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if not isinstance(value, str):
                got = "none (`missing` can give one)" if is_missing(value) else f"{value!r}"
                raise ModelError(f"expected a text as feature {names[j]!r} of the ONNX model, got {got}")
            found[i, j] = value
    return found


def _check(names: Sequence[Any], wrong: npt.NDArray[np.bool_], found: npt.NDArray[Any], expected: str) -> None:
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ModelError(f"expected {expected} as feature {names[j]!r} of the ONNX model, got {found[i, j]}")


def _type(one: Any) -> Any:
    if one.type not in _TYPES:
        raise ModelError(f"its input {one.name!r} is a {one.type}: expected one of {', '.join(_TYPES)}")
    return _TYPES[one.type]


def _rank(one: Any, is_one_of_several: bool, is_named: bool) -> int:
    shape = one.shape
    if not shape:
        if is_one_of_several or is_named:
            return 2
        raise ModelError(
            f"its input {one.name!r} has an unknown shape: name the columns in order, features: [a, b, …], or convert "
            "the model with the shape [None, number of columns]"
        )
    if len(shape) > 2:
        raise ModelError(
            f"its input {one.name!r} has {len(shape)} dimensions: expected rows and columns of features; put the "
            "model behind a reshape, or give a factory that calls it"
        )
    if isinstance(shape[0], int):
        raise ModelError(
            f"its input {one.name!r} takes exactly {shape[0]} row{'s' if shape[0] != 1 else ''} at a time: convert the "
            "model with an open first dimension, as [None, 3] for skl2onnx or dynamic_axes for torch.onnx"
        )
    if is_one_of_several and len(shape) == 2 and shape[1] not in (1, None) and isinstance(shape[1], int):
        raise ModelError(
            f"its input {one.name!r} has {shape[1]} columns beside other inputs: expected one input for all columns, "
            "or one for each"
        )
    return len(shape)
