"""What XGBoost, LightGBM and CatBoost say of their models; none of the three is imported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...errors import ModelError


def library_of(model: Any) -> str | None:
    """Return xgboost, lightgbm or catboost, where a model or estimator is of one of them."""
    for one in type(model).__mro__:
        root = one.__module__.split(".")[0]
        if root in ("xgboost", "lightgbm", "catboost"):
            return root
    return None


def booster_of(model: Any) -> Any:
    """Return the booster in an estimator of LightGBM or XGBoost; any other model itself."""
    for name in ("booster_", "get_booster"):
        found = getattr(model, name, None)
        if found is not None:
            return found() if callable(found) else found
    return model


def columns_of(model: Any) -> list[str] | None:
    """Return the columns of a fitted model in order; None where it was fitted without names."""
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


def categorical_of(model: Any) -> list[str]:
    """Return the columns that are asked for in pandas' dtype `category`.

    Raises
    ------
    ModelError
        A release of XGBoost before 3.1 does not keep its categories: what it predicts would depend on the batch.
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
        line = next(one for one in booster.model_to_string().splitlines() if one.startswith("feature_infos="))
        infos = line.partition("=")[2].split(" ")
        # Numbers have a range, [0:1]; categories a list of codes, 0:1; a column of one value has none.
        found = [
            name
            for name, info in zip(booster.feature_name(), infos, strict=True)
            if info != "none" and not info.startswith("[")
        ]
        return found if len(found) == len(known) else []
    return []  # CatBoost takes text as it is


def objective_of(booster: Any) -> str:
    """Return what a booster was trained for, in its library's own word."""
    library = library_of(booster)
    if library == "xgboost":
        return str(json.loads(booster.save_config())["learner"]["objective"]["name"])
    if library == "lightgbm":
        lines: Sequence[str] = booster.model_to_string().splitlines()
        return next((one[len("objective=") :].split(" ")[0] for one in lines if one.startswith("objective=")), "")
    return str(booster.get_all_params().get("loss_function", ""))
