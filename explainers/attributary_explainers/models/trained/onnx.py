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

from ...errors import ModelError
from ...typing import Features, Output
from ..batch import per_row
from .base import TrainedModel, by_class, check_probabilities
from .native import first_line
from .onnx_inputs import Inputs
from .onnx_outputs import Outputs

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
