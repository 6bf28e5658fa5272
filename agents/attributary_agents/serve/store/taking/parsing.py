"""Reads what a record of an output topic says, and refuses what is no such record, whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attributary_topics import MAX_MODEL_ID_BYTES, InvalidRecordError

from ..rows import SCALARS

Floats = NDArray[np.float64]

MOST_FEATURES = 20_000
"""Features of an event beyond which it is passed over."""

MOST_TEXT = 2_000
"""Characters of a name of a version, explainer, removal or loss beyond which an event is passed over."""

_LARGEST_INT = 2**53
_KEPT_NAMES = 2_000_000  # of all explainers that are remembered together
_NUMBERS = frozenset((float, int, type(None)))


@dataclass(frozen=True, slots=True)
class Importance:
    """Holds what the store keeps of an importance event.

    Attributes
    ----------
    names
        Of the features, in the order of their code points; `importance` and `half_width` are in that order.
    scalars
        In the order of `SCALARS`.
    quality
        Value and reference of each metric, (n_metrics, 2), in the order of `quality_names`.
    """

    model_id: str
    version: str
    explainer: str
    removal: str
    loss: str
    loss_unit: str
    loss_largest: float | None
    alpha: float
    mode: str | None
    observation: int
    n_observations: int
    names: tuple[str, ...]
    importance: Floats
    half_width: Floats
    scalars: tuple[float | None, ...]
    quality_names: tuple[str, ...]
    quality: Floats


class Parser:
    """Reads importance events; names of an explainer that stay the same are not sorted again."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], tuple[str, ...]] = {}
        self._n_names = 0

    def importance(self, model_id: str, event: Mapping[str, Any]) -> Importance:
        """Return what an event says.

        Raises
        ------
        InvalidRecordError
            It is no importance event.
        """
        features = mapping_of(event, "features")
        if len(features) > MOST_FEATURES:
            raise InvalidRecordError("wrong_type", "features", f"at most {MOST_FEATURES}", len(features))
        explainer = text_of(event, "explainer")
        names = self._names_of(model_id, explainer, features)
        try:
            values = [features[name].get("importance") for name in names]
            widths = [features[name].get("half_width") for name in names]
        except AttributeError:
            raise InvalidRecordError("wrong_type", "features", "objects", None) from None
        quality = event.get("quality")
        quality = quality if isinstance(quality, dict) else {}
        metrics = tuple(sorted(quality))
        return Importance(
            model_id,
            text_of(event, "model_version"),
            explainer,
            text_of(event, "removal"),
            text_of(event, "loss"),
            text_of(event, "loss_unit"),
            number_of(event, "loss_largest"),
            number_of(event, "alpha") or 0.0,
            event["mode"] if event.get("mode") in ("unlabelled", "mirror", "anomaly") else None,
            count_of(event, "observation"),
            count_of(event, "n_observations"),
            names,
            floats_of(values, "importance"),
            floats_of(widths, "half_width"),
            tuple([number_of(event, name) for name in SCALARS]),
            metrics,
            floats_of([number for name in metrics for number in _pair(quality[name])], "quality").reshape(-1, 2),
        )

    def _names_of(self, model_id: str, explainer: str, features: Mapping[str, Any]) -> tuple[str, ...]:
        names = self._names.get((model_id, explainer), ())
        if len(names) != len(features) or not features.keys() >= set(names):
            names = tuple(sorted(features))
            if self._n_names + len(names) > _KEPT_NAMES:
                self._names.clear()
                self._n_names = 0
            self._names[model_id, explainer] = names
            self._n_names += len(names) + 1
        return names


def _pair(figure: Any) -> tuple[Any, Any]:
    if not isinstance(figure, dict):
        raise InvalidRecordError("wrong_type", "quality", "objects", figure)
    return figure.get("value"), figure.get("reference")


def model_id_of(model_id: str) -> str:
    """Return a model id; raise InvalidRecordError where no model can have it."""
    if not model_id or len(model_id.encode("utf-8", "replace")) > MAX_MODEL_ID_BYTES:
        raise InvalidRecordError("wrong_type", "key", "a model id", model_id[:80])
    try:
        model_id.encode()
    except UnicodeEncodeError:
        raise InvalidRecordError("wrong_type", "key", "a model id", None) from None
    return model_id


def mapping_of(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object that an event has under a name."""
    value = event.get(name)
    if not isinstance(value, dict):
        raise InvalidRecordError("wrong_type", name, "an object", value)
    return value


def text_of(event: Mapping[str, Any], name: str) -> str:
    """Return a text that an event has under a name."""
    value = event.get(name)
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise InvalidRecordError("wrong_type", name, f"a text of at most {MOST_TEXT} characters", None)
    return value


def count_of(event: Mapping[str, Any], name: str) -> int:
    """Return a number of observations that an event has under a name."""
    value = event.get(name)
    if type(value) is not int or not -_LARGEST_INT < value < _LARGEST_INT:
        raise InvalidRecordError("wrong_type", name, "an integer", value)
    return value


def number_of(event: Mapping[str, Any], name: str) -> float | None:
    """Return a number that an event has under a name; None where it has none."""
    value = event.get(name)
    if type(value) not in _NUMBERS:
        raise InvalidRecordError("wrong_type", name, "a number or null", None)
    return None if value is None else float(value)


def floats_of(values: Sequence[Any], name: str) -> Floats:
    """Return numbers as an array, NaN for null."""
    if not _NUMBERS.issuperset(map(type, values)):
        raise InvalidRecordError("wrong_type", name, "numbers or null", None)
    return np.array(values, np.float64)  # None becomes NaN
