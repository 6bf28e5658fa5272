"""A model as users write one for MLflow, without a library that knows it."""

from __future__ import annotations

from typing import Any

from mlflow.pyfunc import PythonModel


class Threshold(PythonModel):  # type: ignore[misc]  # MLflow is untyped for us
    """Says yes where the first column is above a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def predict(self, context: Any, model_input: Any, params: dict[str, Any] | None = None) -> list[str]:
        assert list(model_input.columns) == ["a", "b"]
        return ["yes" if value > self.limit else "no" for value in model_input["a"]]
