"""Loading of models from files, by the ending of the file's name.

Where a file cannot be loaded, the error says what to do about it.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import pickle
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import PurePosixPath
from typing import Any

from attributary_explainers import ExplainerError, load_model

from ...errors import DeploymentError, NotAllowedError, told
from .columns import Columns

logger = logging.getLogger(__name__)

_UNNAMED = Columns()

_EXTRA = ("sklearn", "skops", "joblib")
"""Packages that the extra `sklearn` installs."""

_OTHER_FORMATS = (pickle.UnpicklingError, EOFError, KeyError, struct.error, zipfile.BadZipFile, zlib.error)
"""What is raised by bytes that no writer of the format has written."""

_MADE_WITH = re.compile(rb"_sklearn_version.{1,200}?(\d+\.\d+(?:\.\d+)?)", re.DOTALL)


_NATIVE = {
    ".json": ("XGBoost", "xgboost", "xgboost.Booster(model_file={name!r})"),
    ".ubj": ("XGBoost", "xgboost", "xgboost.Booster(model_file={name!r})"),
    ".txt": ("LightGBM", "lightgbm", "lightgbm.Booster(model_file={name!r})"),
    ".cbm": ("CatBoost", "catboost", "catboost.CatBoost().load_model({name!r})"),
}
"""Endings of the files that libraries write in formats of their own: the library, its module, and what reads them."""


def check_ending(name: str) -> None:
    """Raise DeploymentError if files with this ending cannot be read.

    The message says what to do instead.
    """
    if (ending := _ending(name)) in _FORMATS:
        return
    expected = f"{name}: expected a file that ends in {', '.join(_FORMATS)}"
    if ending in _NATIVE:
        library, module, read = _NATIVE[ending]
        file = PurePosixPath(name)
        target = file.with_suffix(".joblib").name
        command = f"import joblib, {module}; joblib.dump({read.format(name=file.name)}, {target!r})"
        raise DeploymentError(
            f"{expected}; of {library}'s own format make one in Python, in the same folder: {command}"
        )
    raise DeploymentError(expected)


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def load_artefact(
    name: str, content: bytes, allowed: Sequence[str], columns: Columns = _UNNAMED, *, in_full: bool = True
) -> Any:
    """Load the model in a file.

    Except for skops and ONNX this runs code in the file: load only what you trust.

    Parameters
    ----------
    name
        Name of the file: `.skops`, `.joblib`, `.onnx`, or `.pkl` as `dump_model` or `pickle` writes it.
    allowed
        Packages, modules or types that a skops file may hold beside those that skops trusts: `control.allowed`.
    columns
        What is said of its columns and classes.
    in_full
        Whether messages may hold the texts of exceptions that are not ours.

    Raises
    ------
    DeploymentError
        It cannot be read; the message says what to do.
    NotAllowedError
        It holds types that are not allowed; nothing has been loaded then.
    """
    check_ending(name)
    kind, load = _FORMATS[_ending(name)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = load(_File(name, content, allowed, columns))
            columns.check(model)
        except (NotAllowedError, MemoryError):
            raise
        except (DeploymentError, ExplainerError) as error:
            raise DeploymentError(f"{name}: {error}") from error
        except ImportError as error:
            raise DeploymentError(f"{name}: {_not_installed(error, content)}") from error
        except Exception as error:  # unpickling runs code of the file's: anything may come of it
            raise DeploymentError(_unreadable(name, kind, content, error, in_full)) from error
    for one in caught:
        if (made_with := getattr(one.message, "original_sklearn_version", None)) is None:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        else:
            logger.warning("%s: %s", name, _releases(made_with))
            break
    return model


@dataclass(frozen=True)
class _File:
    name: str
    content: bytes
    allowed: Sequence[str]
    columns: Columns


def _onnx(file: _File) -> Any:
    return file.columns.onnx(file.content)


def _pickle(file: _File) -> Any:
    return file.columns.name(load_model(file.content))


def _joblib(file: _File) -> Any:
    import joblib  # type: ignore[import-untyped]  # an extra: most users have no scikit-learn

    return file.columns.name(joblib.load(io.BytesIO(file.content)))


def _skops(file: _File) -> Any:
    from skops import io as skops_io  # type: ignore[import-untyped]  # an extra, too

    odd = skops_io.get_untrusted_types(data=file.content)
    refused = [kind for kind in odd if not _is_allowed(kind, file.allowed)]
    if refused:
        raise NotAllowedError(f"{file.name} holds types not allowed: {', '.join(refused)}; add them to control.allowed")
    return file.columns.name(skops_io.loads(file.content, trusted=odd))


_FORMATS: dict[str, tuple[str, Callable[[_File], Any]]] = {
    ".skops": ("skops file", _skops),
    ".joblib": ("joblib file", _joblib),
    ".pkl": ("pickle", _pickle),
    ".pickle": ("pickle", _pickle),
    ".onnx": ("ONNX file", _onnx),
}


def _is_allowed(kind: str, allowed: Sequence[str]) -> bool:
    return any(f"{kind}.".startswith(f"{prefix.rstrip('.')}.") for prefix in allowed)


def _not_installed(error: ImportError, content: bytes) -> str:
    package = (error.name or "").split(".")[0]
    if package in _EXTRA and importlib.util.find_spec(package) is None:
        return f"{package} is not installed: pip install 'attributary[sklearn]'"
    if package == "sklearn" and (made_with := _made_with(content)):
        return f"{error}. {_releases(made_with)}"
    return f"{error}: install the package {package!r} that it needs, or put its module on PYTHONPATH"


def _unreadable(name: str, kind: str, content: bytes, error: Exception, in_full: bool) -> str:
    said = told(error, in_full)
    made_with = _made_with(content)
    if made_with is not None and made_with != _installed():
        return f"{name}: {said}. {_releases(made_with)}"
    if isinstance(error, AttributeError) and "__main__" in str(error):
        return f"{name}: {said}. Define the class in a module that can be imported, not in a script or notebook"
    is_other = isinstance(error, _OTHER_FORMATS)
    if is_other or (kind == "pickle" and not content.startswith(b"\x80")):
        return f"{name} is no {kind} ({said}): save the model again, or give the file the ending of its format"
    return f"{name}: {said}"


def _made_with(content: bytes) -> str | None:
    """Return the scikit-learn release that wrote a file, or None if unknown."""
    if zipfile.is_zipfile(file := io.BytesIO(content)):
        with zipfile.ZipFile(file) as archive:
            content = archive.read("schema.json") if "schema.json" in archive.namelist() else b""
    found = _MADE_WITH.search(content)
    return found[1].decode() if found else None


def _releases(made_with: str) -> str:
    here = _installed()
    return (
        f"it was made with scikit-learn {made_with}, and {here} is installed here: install scikit-learn=={made_with}, "
        f"or train and save the model with {here}"
    )


def _installed() -> str:
    return version("scikit-learn") if importlib.util.find_spec("sklearn") else "none"
