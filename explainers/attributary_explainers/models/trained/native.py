"""Reads XGBoost, LightGBM and CatBoost models without importing any."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import ModelError
from ...typing import Features


def library_of(model: Any) -> str | None:
    """Return a model's library: xgboost, lightgbm, catboost or None."""
    for one in type(model).__mro__:
        root = one.__module__.split(".")[0]
        if root in ("xgboost", "lightgbm", "catboost"):
            return root
    return None


def booster_of(model: Any) -> Any:
    """Return the booster in an XGBoost or LightGBM estimator, or the model."""
    for name in ("booster_", "get_booster"):
        found = getattr(model, name, None)
        if found is not None:
            return found() if callable(found) else found
    return model


def columns_of(model: Any) -> list[str] | None:
    """Return a fitted model's columns in order; None if it has no names."""
    booster, library = booster_of(model), library_of(model)
    if library == "xgboost":
        names = booster.feature_names
    elif library == "lightgbm":
        names = booster.feature_name()
    else:
        names = booster.feature_names_
    names = [] if names is None else list(map(str, names))
    # What LightGBM and CatBoost call columns that have no names.
    if names in ([f"Column_{i}" for i in range(len(names))], [str(i) for i in range(len(names))]):
        return None
    return names


def as_written(names: Iterable[Any]) -> list[Any]:
    """Return names as LightGBM writes them down: with _ for a space."""
    return [name.replace(" ", "_") if isinstance(name, str) else name for name in names]


def as_in_rows(names: Sequence[Any], rows: Sequence[Features]) -> Sequence[Any]:
    """Return LightGBM's column names as rows spell them, with spaces."""
    if all(name in rows[0] for name in names):
        return names
    found = {key.replace(" ", "_"): key for row in rows for key in row if isinstance(key, str) and " " in key}
    return [found.get(name, name) for name in names]


def categorical_of(model: Any) -> list[str]:
    """Return the columns that are asked for in pandas' dtype `category`.

    Raises
    ------
    ModelError
        The model does not say which they are, or a release of XGBoost before 3.1 does not keep its categories: what it
        predicts would depend on the batch.
    """
    booster, library = booster_of(model), library_of(model)
    if library == "xgboost":
        kinds = booster.feature_types or ()
        found = [name for name, kind in zip(booster.feature_names or (), kinds, strict=False) if kind == "c"]
        if found and not hasattr(booster, "get_categories"):
            raise ModelError(
                f"this release of XGBoost does not keep the categories of {', '.join(found)}: fit and explain the "
                "model with XGBoost 3.1 or later, or encode them in a pipeline"
            )
        return found
    if library == "lightgbm":
        known: list[Any] = booster.pandas_categorical or []
        return _of_dtype_category(booster, len(known)) if known else []
    return []  # CatBoost takes text as it is


def _of_dtype_category(booster: Any, n: int) -> list[str]:
    # LightGBM keeps the categories, in the order of their columns, and not of which columns they are. Of what it has
    # seen, numbers have a range, [0:1]; categories a list of codes, 0:1; a column of one value has none.
    infos = dict(zip(booster.feature_name(), header_of(booster)["feature_infos"].split(" "), strict=True))
    coded = [name for name, info in infos.items() if info != "none" and not info.startswith("[")]
    for found in (coded, [name for name, info in infos.items() if info == "none" or name in coded]):
        if len(found) == n:
            return found
    raise ModelError(
        f"LightGBM does not keep which {n} of its columns were of pandas' dtype category: fit it with all categories "
        "in that dtype, and without columns of a single value"
    )


def a_category_of(model: Any, name: str) -> Any:
    """Return a category that XGBoost has seen in a column."""
    booster = booster_of(model)
    saved = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]
    trees = saved.get("gbtree", saved)  # of dart they are one level down
    kept = trees["model"]["cats"]["enc"][booster.feature_names.index(name)]
    if "offsets" not in kept:
        return kept["values"][0]
    return bytes(byte % 256 for byte in kept["values"][: kept["offsets"][1]]).decode()


def has_text_columns(model: Any) -> bool:
    """Return whether a CatBoost model has categories, so takes no floats."""
    return library_of(model) == "catboost" and bool(model.is_fitted() and model.get_cat_feature_indices())


def objective_of(booster: Any) -> str:
    """Return the name of a booster's objective, without its parameters."""
    library = library_of(booster)
    if library == "xgboost":
        return str(json.loads(booster.save_config())["learner"]["objective"]["name"])
    if library == "lightgbm":
        return header_of(booster).get("objective", "").split(" ")[0]
    return str(booster.get_all_params().get("loss_function", "")).split(":")[0]


def header_of(booster: Any) -> dict[str, str]:
    """Return LightGBM's header of a model, written before its trees."""
    text, _, _ = booster.model_to_string(num_iteration=1).partition("\n\nTree=")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def first_line(error: Exception) -> str:
    """Return an error's first line without addresses or library codes."""
    before = r"^(\[\S+\] \S+?:\d+: |\[ONNXRuntimeError\] : \d+ : \w+ : )"
    lines = [re.sub(before, "", line) for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
