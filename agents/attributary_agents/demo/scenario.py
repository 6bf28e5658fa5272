"""Chooses what `attributary demo` plays: Agrawal's credit data with a drift, or a file, and a model that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..kafka.producing import encode_value
from ..replay.files import open_source

DRIFT_AT = 5000
TOTAL = 10_000
_MAX_CLASSES = 20


@dataclass(frozen=True)
class DemoStream:
    """Holds the observations that the demo plays, and what kind of task they are.

    Attributes
    ----------
    title
        One line about the stream.
    n
        Number of observations; None where it is not known beforehand.
    classification
        Whether the target is a class.
    categories
        Whether some feature is text.
    """

    title: str
    n: int | None
    classification: bool
    categories: bool
    _values: Any

    def values(self) -> Iterator[bytes]:
        """Yield the records' values in order."""
        return (encode_value(value) for value in self._values())


def agrawal(limit: int | None) -> DemoStream:
    """Return Agrawal's function 1 for the first half, function 2 from then on: elevel takes over from salary."""
    total = limit or TOTAL
    drift_at = min(DRIFT_AT, total // 2)

    def values() -> Iterator[dict[str, Any]]:
        from river.datasets import synth  # takes a second to import: only the demo needs it

        first = synth.Agrawal(classification_function=1, seed=1).take(drift_at)
        second = synth.Agrawal(classification_function=2, seed=2).take(total - drift_at)
        return ({"x": x, "y": y} for x, y in chain(first, second))

    title = f"Agrawal's credit data: the true rule changes from function 1 to 2 at observation {drift_at:,}"
    return DemoStream(title.replace(",", " "), total, True, False, values)


def from_file(path: Path, target: str | None, limit: int | None) -> DemoStream:
    """Return the rows of a CSV, JSON-lines or Parquet file; the target's values tell whether it is a classification.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    source = open_source(path, target)
    rows = list(islice(source.values(), 1000))
    categories = any(isinstance(value, str) for row in rows for value in (row.get("x") or {}).values())
    sample = [row.get("y") for row in rows]
    numbers = all(isinstance(y, (int, float)) and not isinstance(y, bool) for y in sample if y is not None)
    classification = not numbers or (
        len(set(sample)) <= _MAX_CLASSES and all(float(y).is_integer() for y in sample if y is not None)
    )
    n = source.n_rows if source.n_rows is not None else sum(1 for _ in source.values())
    kind = "classification" if classification else "regression"
    title = f"{path.name}: {kind} of {source.target}"
    return DemoStream(
        title,
        min(n, limit) if limit else n,
        classification,
        categories,
        lambda: islice(source.values(), limit),
    )


def demo_config(stream: DemoStream, model_id: str, broker: str, port: int) -> dict[str, Any]:
    """Return the configuration of the demo's worker: an adaptive random forest, iPFI, changes as by default."""
    forest = "ARFClassifier" if stream.classification else "ARFRegressor"
    params: dict[str, Any] = {"n_models": 10, "seed": 1}
    if stream.categories and not stream.classification:
        params["leaf_prediction"] = "mean"  # the linear models in its leaves by default cannot multiply text
    return {
        "kafka": {
            "brokers": [broker],
            "group": "attributary-demo",
            "partitions": 1,
            "instance_id": "demo",  # the embedded broker holds static members only
        },
        "models": {
            model_id: {
                "model": {"class": f"river.forest.{forest}", "params": params},
                "alpha": 0.004,
                "explainers": {"pfi": {"n_samples": 2}},
                "publish": {"every": 50},
            }
        },
        "checkpoint": {"interval_s": 5},
        "web": {"port": port},
    }
