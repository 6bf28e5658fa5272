"""Models in ONNX files, evaluated by onnxruntime in a thread."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from ...errors import ModelError
from ...missing import is_missing
from ...typing import Features, Output
from ..batch import number_array, per_row, table
from .base import TrainedModel, by_class, check_probabilities
from .native import first_line

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


_NUMBERS = ("tensor(float)", "tensor(double)", "tensor(float16)")
_LABELS = ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)")


class Outputs:
    """Which output is read, and how.

    Parameters
    ----------
    outputs
        As onnxruntime describes them: name, type and shape.
    classes
        Labels of the columns of probabilities; None looks into the graph.
    content
        The file, to look into.

    Raises
    ------
    ModelError
        It gives nothing that is understood; the message says what to do.
    """

    def __init__(self, outputs: Sequence[Any], classes: Iterable[Any] | None, content: bytes) -> None:
        given = None if classes is None else tuple(classes)
        maps = [one for one in outputs if one.type.startswith("seq(map(")]
        labels = [one for one in outputs if one.type in _LABELS]
        numbers = [one for one in outputs if one.type in _NUMBERS]
        if len(numbers) > 1:
            numbers = [one for one in numbers if "prob" in one.name.lower()] or numbers
        if len(maps) + len(numbers) > 1 or len(labels) > 1 or not (maps or numbers or labels):
            raise ModelError(
                f"it gives {', '.join(f'{one.name} ({one.type})' for one in outputs)}: expected a label and "
                "probabilities, a label, or one output of numbers; convert the model without the others"
            )
        # Where classes are given, the label that the file names may be of others: it is the most probable one then.
        self.label: str | None = labels[0].name if labels and (given is None or not (maps or numbers)) else None
        self.is_regressor = not labels and not maps and given is None
        self.has_probabilities = bool(maps or numbers) and not self.is_regressor
        self.name: str = (maps or numbers or labels)[0].name
        self.classes = given
        if not numbers:
            return
        width = numbers[0].shape[1] if len(numbers[0].shape) == 2 else None
        if self.is_regressor:
            if isinstance(width, int) and width > 1:
                raise ModelError(
                    f"its output {self.name!r} has {width} columns and no labels: a classifier needs their names in "
                    "order, classes: [low, high]; of several numbers, convert the model with one"
                )
            return
        if given is None:
            self.classes = _classes(content, is_text=labels[0].type == "tensor(string)", width=width)
        n = len(self.classes or ())
        if isinstance(width, int) and n != width and (width, n) != (1, 2):
            raise ModelError(f"its output {self.name!r} has {width} columns, and there are {n} classes: name each")


def _classes(content: bytes, is_text: bool, width: Any) -> tuple[Any, ...]:
    """Return the only list of labels in the graph that fits the outputs."""
    wanted = "name them in the order of the columns, classes: [low, high]"
    try:
        onnx = importlib.import_module("onnx")
    except ImportError as error:
        raise ModelError(
            f"the file does not say its classes without the package onnx: pip install onnx, or {wanted}"
        ) from error
    graph = onnx.load_model_from_string(content).graph
    found: dict[tuple[Any, ...], None] = {}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name.startswith("classlabels"):
                found[tuple(one.decode() for one in attribute.strings) if is_text else tuple(attribute.ints)] = None
    if not any(found):
        for one in graph.initializer:
            if one.name.startswith("classes"):
                values = onnx.numpy_helper.to_array(one).tolist()
                found[tuple(one.decode() if isinstance(one, bytes) else one for one in values)] = None
    fitting = [
        labels
        for labels in found
        if labels
        and (not isinstance(width, int) or len(labels) == width or (width == 1 and len(labels) == 2))
        and all(isinstance(label, str) == is_text for label in labels)
    ]
    if len(fitting) != 1:
        raise ModelError(f"its graph names {'several lists of' if fitting else 'no'} classes: {wanted}")
    return fitting[0]


REMEDY = "pip install 'attributary[onnx]'"

_NO_FOLDER = "/nonexistent"
"""Where numbers are looked for that a file keeps outside of itself: nowhere, for anybody may have written the path."""


class OnnxModel(TrainedModel):
    """The model in an ONNX file, as skl2onnx or torch.onnx writes it.

    Numbers are handed over in the type that the file asks for, which is nearly always float32: predictions, losses and
    importances are as precise as that, seven digits. A feature that a row lacks is NaN, where its input takes
    floats.

    Its columns are

    1. of a file with an input per feature, as skl2onnx makes it of a pipeline with mixed columns: the names of the
       inputs, which are of numbers, text or booleans;
    2. of a file with one table as its input: `features`; else what the file says of itself, a JSON list under the key
       `attributary.features` of its metadata; else the features of the first row that is seen, in its order.

    It is a classifier where the file gives a label, or probabilities and there are classes: those of `classes`, of
    the metadata's `attributary.classes`, or that the nodes of the graph name. One column of probabilities and two
    classes are the probability of the second. A file that gives one column of numbers is a regressor.

    Copies, and models loaded from the same bytes, share one session as long as one of them exists.

    Parameters
    ----------
    content
        What is in the file.
    features, classes
        See above.

    Raises
    ------
    ModelError
        onnxruntime is not installed, or cannot read the file, or what it takes or gives is not understood; the message
        says what to do.
    """

    def __init__(
        self, content: bytes, features: Iterable[Any] | None = None, classes: Iterable[Any] | None = None
    ) -> None:
        self._file = _File.of(content)
        session = self._file.session
        said = session.get_modelmeta().custom_metadata_map
        if classes is None:
            classes = _listed(said, "attributary.classes")
        named = features if features is not None else _listed(said, "attributary.features")
        self._inputs = Inputs(session.get_inputs(), named)
        self._outputs = Outputs(session.get_outputs(), classes, content)
        super().__init__(self._inputs.names or named, self._outputs.classes, self._inputs.n_columns)
        self.kind = "regressor" if self._outputs.is_regressor else "classifier"
        self.has_probabilities = self._outputs.has_probabilities

    @property
    def title(self) -> str:
        """How messages call it."""
        return "the ONNX model"

    @property
    def content(self) -> bytes:
        """Bytes of the file."""
        return self._file.content

    @property
    def feature_kinds(self) -> Mapping[Any, str]:
        """Kind of each feature: number, category or boolean."""
        return self._inputs.kinds(self.features or ())

    def predict_many(self, rows: Sequence[Features], output: Output) -> list[Any]:
        """Return a prediction per row, by a single call of onnxruntime.

        Raises
        ------
        ModelError
            A value is not of the kind that the input takes, or the model fails on the rows.
        """
        feeds = self._inputs.feeds(rows, self.columns(rows))
        name = self._outputs.label if output == "label" and self._outputs.label else self._outputs.name
        try:
            found = self._file.session.run([name], feeds)[0]
        except Exception as error:
            raise ModelError(f"the ONNX model fails: {first_line(error)}") from error
        if isinstance(found, list):  # a ZipMap
            return found if self.classes is None else self._named(found, self.classes)
        if found.dtype == object or found.ndim == 1 or name == self._outputs.label:
            found = found.reshape(-1)
        if name == self._outputs.label:
            return per_row(found, len(rows))
        found = found.astype(np.float64)
        if self.kind == "regressor":
            return per_row(found, len(rows))
        classes = self.classes or ()
        check_probabilities(self.title, found, "save it with a Softmax, or for one column a Sigmoid, as its last step")
        return by_class(found, len(rows), classes)

    def _named(self, found: list[dict[Any, float]], classes: tuple[Any, ...]) -> list[dict[Any, float]]:
        if found and found[0].keys() != set(classes):
            raise ModelError(
                f"{self.title} gives probabilities of {_quoted(found[0])}, and classes names {_quoted(classes)}: leave "
                "classes out, or name the same"
            )
        return [{label: row[label] for label in classes} for row in found]

    def try_memory(self) -> None:
        """Predict a row of zeros, as a small file may take all memory.

        Raises
        ------
        MemoryError
            It takes more than there is. Whatever else goes wrong may be the zeros' fault, and is passed over.
        """
        names = self.features or tuple(range(self.n_columns or 1))
        values = {"number": 0, "category": "", "boolean": False}
        row = {name: values[self.feature_kinds.get(name, "number")] for name in names}
        feeds = self._inputs.feeds([row], names)
        try:
            self._file.session.run([self._outputs.name], feeds)
        except Exception as error:
            if _is_of_memory(error):
                raise MemoryError from error

    def __repr__(self) -> str:
        return f"OnnxModel({len(self.content)} bytes, features={self.features!r}, classes={self.classes!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.content, "features": self.features, "classes": self.classes, "seen": self._seen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        OnnxModel.__init__(self, state["content"], state["features"], state["classes"])
        self._seen = state["seen"]

    def __deepcopy__(self, _memo: dict[int, Any]) -> OnnxModel:
        copy = object.__new__(type(self))
        vars(copy).update(vars(self))  # nothing in it changes but the order that is seen, which is replaced
        return copy


class _File:
    """A file's content and its session, opened once per process."""

    _open: ClassVar[WeakValueDictionary[bytes, _File]] = WeakValueDictionary()

    def __init__(self, content: bytes) -> None:
        runtime = _runtime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", _NO_FOLDER)
        try:
            self.session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            if _is_of_memory(error):
                raise MemoryError from error
            raise ModelError(_said(error, runtime)) from error
        self.content = content

    @classmethod
    def of(cls, content: bytes) -> _File:
        """Return the file of this content that is open, or open it."""
        digest = hashlib.sha256(content).digest()
        found = cls._open.get(digest)
        if found is None:
            found = cls._open[digest] = cls(content)
        return found


def _runtime() -> ModuleType:
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ModelError(f"onnxruntime is not installed: {REMEDY}") from error


def _said(error: Exception, runtime: ModuleType) -> str:
    """Explain why onnxruntime cannot read a file, and name the remedy."""
    text, here = str(error), f"onnxruntime {runtime.__version__}"
    if found := re.search(r"Opset (\d+) is under.*domain (\S+) is till opset (\d+)", text, re.DOTALL):
        return (
            f"the file is of opset {found[1]} of {found[2]}, and {here} knows those up to {found[3]}: convert the "
            f"model with target_opset={found[3]}, or install a newer onnxruntime"
        )
    if found := re.search(r"IR version: (\d+), max supported IR version: (\d+)", text):
        return (
            f"the file is of the format's version {found[1]}, and {here} reads those up to {found[2]}: install a newer "
            f"onnxruntime, or set ir_version = {found[2]} before the model is saved"
        )
    if found := re.search(r"(\S+:\S+?)(?:\(\S*\))? is not a registered function/op", text):
        return f"it needs the operator {found[1]}, which {here} has not: convert the model to the standard operators"
    if "xternal data" in text or "model_path must not be empty" in text:
        return "its numbers are in another file: save it in one, onnx.save_model(model, path) as onnx.load returns it"
    if "protobuf parsing failed" in text or "No graph was found" in text:
        return "it is no ONNX file: save the model again, or give the file the ending of its format"
    return f"{here} cannot read it: {first_line(error)}"


def _is_of_memory(error: Exception) -> bool:
    return "bad_alloc" in str(error) or "Failed to allocate" in str(error)


def _quoted(labels: Iterable[Any]) -> str:
    return ", ".join(map(repr, labels))


def _listed(said: Mapping[str, str], key: str) -> list[Any] | None:
    if key not in said:
        return None
    try:
        found = json.loads(said[key])
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise ModelError(f'its metadata {key} is {said[key]!r}: expected a JSON list, as ["a", "b"]')
    return found
