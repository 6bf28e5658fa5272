"""Loading of the model in a folder that MLflow has written.

Where there is a way, it is loaded as the library that made it knows it.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ...errors import DeploymentError, told
from ..artefacts import load_artefact
from .pyfunc import pyfunc_model
from .registry import EXTRA

logger = logging.getLogger(__name__)

NATIVE = ("sklearn", "xgboost", "lightgbm", "catboost", "onnx", "pytorch")
"""Flavours that give the model itself, with its probabilities; of several the first."""

PYFUNC = "python_function"


def load_folder(name: str, folder: Path, allowed: Sequence[str], *, in_full: bool = True) -> Any:
    """Load the model in a folder that MLflow has written.

    This runs code, unless the model is of skops or ONNX: load only what you trust.

    Parameters
    ----------
    name
        What it is called in messages.
    allowed
        As for `load_artefact`.
    in_full
        Whether messages may hold the texts of exceptions that are not ours.

    Raises
    ------
    DeploymentError
        It cannot be loaded; the message says what to do.
    """
    flavours = _flavours(name, folder)
    native = next((flavour for flavour in NATIVE if flavour in flavours), None)
    try:
        if native is not None:
            return _load_native(name, native, folder, flavours[native], allowed, in_full)
        if PYFUNC not in flavours:
            raise DeploymentError(f"{name}: it has only the flavours {', '.join(flavours)}; save one of {_names()}")
        found = _quietly(pyfunc_model, folder)
    except (DeploymentError, MemoryError):
        raise
    except ImportError as error:
        raise DeploymentError(f"{name}: {_not_installed(error)}") from error
    except Exception as error:  # loading runs code of the model's: anything may come of it
        raise DeploymentError(f"{name}: {told(error, in_full)}") from error
    logger.warning("%s: %s", name, labels_only(flavours))
    return found


def labels_only(flavours: Sequence[str] | dict[str, Any] = ()) -> str:
    """Return a warning for models of the python_function flavour alone.

    It says what such a model lacks.
    """
    others = ", ".join(one for one in flavours if one != PYFUNC)
    beside = f", beside {others}, which cannot be read here" if others else ""
    return (
        f"it has the flavour python_function alone{beside}: it predicts labels or numbers and no probabilities, so its "
        "loss is a coarse one, and `loss` has to be named"
    )


def _flavours(name: str, folder: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load((folder / "MLmodel").read_text(encoding="utf-8"))["flavors"]
        return {str(flavour): dict(settings) for flavour, settings in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
        raise DeploymentError(f"{name}: its file MLmodel cannot be read ({type(error).__name__})") from None


def _load_native(
    name: str, flavour: str, folder: Path, settings: dict[str, Any], allowed: Sequence[str], in_full: bool
) -> Any:
    # Files of skops and ONNX by our own reader: MLflow trusts whatever types a skops file itself asks for.
    file = settings.get("pickled_model") if flavour == "sklearn" else settings.get("data")
    if flavour == "onnx" or (flavour == "sklearn" and settings.get("serialization_format") == "skops"):
        path = (folder / str(file)).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise DeploymentError(f"{name}: {file}: expected a file of the model's folder", "wrong_artefact")
        of_kind = f"model{'.skops' if flavour == 'sklearn' else '.onnx'}"
        try:
            return load_artefact(of_kind, path.read_bytes(), allowed, in_full=in_full)
        except DeploymentError as error:
            error.args = (f"{name}: {error}",)
            raise
    module = importlib.import_module(f"mlflow.{flavour}")
    return _quietly(module.load_model, str(folder))


def _quietly(load: Any, *given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of requirements, mostly, which differ a little
        return load(*given)


def _not_installed(error: ImportError) -> str:
    package = (error.name or "").split(".")[0]
    if package == "mlflow" and importlib.util.find_spec("mlflow") is None:
        return EXTRA
    return f"{error}: install the package {package!r} that it needs, or put its module on PYTHONPATH"


def _names() -> str:
    return ", ".join((*NATIVE, PYFUNC))
