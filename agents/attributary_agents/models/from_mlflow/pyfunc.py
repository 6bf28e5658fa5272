"""Models of MLflow's flavour python_function, explainable and storable."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attributary_explainers import as_batch


class PyfuncPredict:
    """Predicts rows by the object that a flavour's loader has made.

    Parameters
    ----------
    model
        That object, or the `PythonModel` in it: what is stored is its pickle.
    columns
        Names of the columns to their types in pandas, in the order of the signature; None: those of the rows.
    """

    def __init__(self, model: Any, columns: dict[str, str] | None) -> None:
        self.model, self.columns = model, columns

    def __call__(self, rows: Sequence[Any]) -> list[Any]:
        """Predict a label or a number for each row."""
        import pandas as pd

        table = pd.DataFrame.from_records([dict(row) for row in rows])
        if self.columns is not None:
            table = table.reindex(columns=list(self.columns))
            for name, kind in self.columns.items():
                if kind != "object" and not table[name].isna().any():
                    table[name] = table[name].astype(kind)
        found = self._predict(table)
        if isinstance(found, pd.DataFrame):
            found = found.iloc[:, 0]
        return list(found.tolist() if hasattr(found, "tolist") else found)

    def _predict(self, table: Any) -> Any:
        predict = self.model.predict
        if "context" in inspect.signature(predict).parameters:
            return predict(None, table)
        return predict(table)


def pyfunc_model(folder: Path) -> Any:
    """Return the model of a folder as a callable of many rows."""
    from mlflow import pyfunc

    loaded = pyfunc.load_model(str(folder))
    inner = loaded._model_impl
    model = getattr(inner, "python_model", None) or inner
    for name, value in list(getattr(model, "__dict__", {}).items()):
        if type(value).__module__.split(".")[0] == "mlflow":  # what MLflow notes of it, and predicting does not need
            delattr(model, name)
    signature = loaded.metadata.signature
    columns = None
    if signature is not None and signature.inputs is not None and signature.inputs.has_input_names():
        kinds = signature.inputs.pandas_types()
        columns = {
            name: str(getattr(kind, "name", kind))
            for name, kind in zip(signature.inputs.input_names(), kinds, strict=True)
        }
    return as_batch(PyfuncPredict(model, columns))


def is_pyfunc(model: Any) -> bool:
    """Return whether a model was made by `pyfunc_model`."""
    return isinstance(getattr(model, "function", None), PyfuncPredict)
