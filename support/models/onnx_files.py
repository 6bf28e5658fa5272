"""Models as files of ONNX, and small graphs that are written by hand."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from skl2onnx import to_onnx

OPSET = 18


def converted(estimator: Any, table: Any, *, metadata: Mapping[str, str] | None = None, **options: Any) -> bytes:
    """The file that skl2onnx writes of a fitted estimator.

    Parameters
    ----------
    table
        What it was fitted on: an array, which becomes one input of float32, or a data frame, an input per column.
    metadata
        What the file is to say of itself.
    options
        Of skl2onnx, as `zipmap=False`.
    """
    sample = table[:1].astype(np.float32) if isinstance(table, np.ndarray) else table[:1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = to_onnx(estimator, sample, target_opset={"": OPSET, "ai.onnx.ml": 3}, options=options or None)
    return with_metadata(model, metadata or {})


def with_metadata(model: Any, metadata: Mapping[str, str]) -> bytes:
    """The file of a model that says this of itself."""
    helper.set_model_props(model, dict(metadata))
    return bytes(model.SerializeToString())


def graph(
    nodes: Sequence[Any],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
) -> Any:
    """A model of these nodes; inputs and outputs by name: type and shape, constants by name: an array."""
    made = helper.make_graph(
        list(nodes),
        "made",
        [helper.make_tensor_value_info(name, *one) for name, one in inputs.items()],
        [helper.make_tensor_value_info(name, *one) for name, one in outputs.items()],
        [
            helper.make_tensor(name, TensorProto.FLOAT, list(value.shape), value.ravel().tolist())
            for name, value in (constants or {}).items()
        ],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def linear(
    weights: Sequence[Sequence[float]], shape: Any = (None, "columns"), name: str = "x", last: str | None = None
) -> Any:
    """A model that multiplies its table with weights, and puts the result through one more operator."""
    w = np.array(weights, dtype=np.float32)
    given = [None if one is None else (w.shape[0] if one == "columns" else one) for one in shape]
    nodes = [helper.make_node("MatMul", [name, "w"], ["z" if last else "y"])]
    if last:
        nodes.append(helper.make_node(last, ["z"], ["y"]))
    out = (TensorProto.FLOAT, [None, w.shape[1]])
    return graph(nodes, {name: (TensorProto.FLOAT, given)}, {"y": out}, {"w": w})
