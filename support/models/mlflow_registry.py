"""A registry of MLflow on SQLite, with models of scikit-learn in it: for tests, and for the benchmark of its price."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")


class MlflowRegistry:
    """A database in a folder, and beside it the folders of the models that are registered there.

    Parameters
    ----------
    folder
        An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        from mlflow import MlflowClient

        self.folder, self.path = folder, folder / "registry.db"
        self.uri = f"sqlite:///{self.path}"
        self.client = MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)
        self._n = 0

    def save(self, model: Any, flavour: str = "sklearn", **given: Any) -> Path:
        """Write the model into a folder of its own, as MLflow does, and return it."""
        from importlib import import_module

        self._n += 1
        path = self.folder / f"model-{self._n}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            named = {"python_model" if flavour == "pyfunc" else f"{_KEY.get(flavour, 'model')}": model}
            requirements: list[str] = []
            import_module(f"mlflow.{flavour}").save_model(
                path=str(path), pip_requirements=requirements, **named, **given
            )
        return path

    def register(self, name: str, folder: Path) -> str:
        """Register a folder as the next version of a model, and return that version."""
        from mlflow.exceptions import MlflowException

        try:
            self.client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        return str(self.client.create_model_version(name, source=str(folder)).version)

    def point(self, name: str, alias: str, version: str) -> None:
        """Let an alias name this version from now on."""
        self.client.set_registered_model_alias(name, alias, version)


_KEY = {"sklearn": "sk_model", "xgboost": "xgb_model", "lightgbm": "lgb_model", "onnx": "onnx_model"}
