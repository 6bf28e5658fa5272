"""Outputs of an ONNX file: labels, probabilities or numbers."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import ModelError

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
