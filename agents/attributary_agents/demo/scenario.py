"""The demo's stream, Agrawal's credit data or a file, and its model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from ..files.source import Source
from ..kafka.observations import encode_value

DRIFT_AT = 5000
TOTAL = 10_000
_MAX_CLASSES = 20


@dataclass(frozen=True)
class DemoStream:
    """Observations that the demo plays, and the kind of their task.

    Attributes
    ----------
    title
        One line about the stream.
    n
        Number of observations; None where it is not known beforehand.
    classification
        Whether the target is a class.
    """

    title: str
    n: int | None
    classification: bool
    _values: Any

    def values(self) -> Iterator[bytes]:
        """Yield the records' values in order."""
        return (encode_value(value) for value in self._values())


def agrawal(limit: int | None) -> DemoStream:
    """Return Agrawal's credit data with a drift from function 1 to 2.

    The drift is in the middle, at observation 5000 at the latest. From there on elevel takes over from salary.
    """
    total = limit or TOTAL
    drift_at = min(DRIFT_AT, total // 2)

    def values() -> Iterator[dict[str, Any]]:
        from river.datasets import synth  # takes a second to import: only the demo needs it

        first = synth.Agrawal(classification_function=1, seed=1).take(drift_at)
        second = synth.Agrawal(classification_function=2, seed=2).take(total - drift_at)
        return ({"x": x, "y": y} for x, y in chain(first, second))

    title = f"Agrawal's credit data: the true rule changes from function 1 to 2 at observation {drift_at:,}"
    return DemoStream(title.replace(",", " "), total, True, values)


def from_file(source: Source, limit: int | None) -> DemoStream:
    """Return a file's rows as a stream for the demo.

    The file is CSV, JSON lines or Parquet. The target's values tell whether it is a classification.

    Raises
    ------
    SourceError
        The file is damaged further on.
    """
    rows = list(islice(source.objects(), 1000))
    sample = [row.get("y") for row in rows]
    numbers = all(isinstance(y, (int, float)) and not isinstance(y, bool) for y in sample if y is not None)
    classification = not numbers or (
        len(set(sample)) <= _MAX_CLASSES and all(float(y).is_integer() for y in sample if y is not None)
    )
    kind = "classification" if classification else "regression"
    title = f"{source.path.name}: {kind} of {source.target}"
    return DemoStream(
        title,
        source.count(limit),
        classification,
        lambda: islice(source.values(), limit),
    )


def demo_config(stream: DemoStream, model_id: str, broker: str, port: int) -> dict[str, Any]:
    """Return the configuration of the demo's worker.

    It has an adaptive random forest, iPFI, and changes as by default.
    """
    forest = "ARFClassifier" if stream.classification else "ARFRegressor"
    params: dict[str, Any] = {"n_models": 10, "seed": 1}
    if not stream.classification:
        # The linear models that leaves have by default cannot multiply text, and numbers of any scale ruin them.
        params["leaf_prediction"] = "mean"
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
