"""Reads the hold-out of a model from a file."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from attributary_explainers.monitor.settings import Holdout

from ..errors import SourceError
from .source import open_source

MOST_ROWS = 50_000


@lru_cache(maxsize=8)
def read_holdout(path: Path, target: str | None, features: tuple[str, ...] | None) -> Holdout:
    """Return the labelled rows of a file, once per process.

    Parameters
    ----------
    target
        As for `open_source`.
    features
        Columns that the model reads; None: all but the target.

    Raises
    ------
    SourceError
        The file cannot be read, lacks a feature, or has more than 50 000 rows.
    """
    source = open_source(path, target)
    if source.count() > MOST_ROWS:
        raise SourceError(f"{path} has more than {MOST_ROWS} rows: as many, drawn at random, say as much")
    rows: list[tuple[dict[str, Any], Any]] = []
    for value in source.objects():
        x = value.get("x")
        if not isinstance(x, dict):
            continue
        if not rows and (missing := [name for name in features or () if name not in x]):
            raise SourceError(f"{path} lacks the features {', '.join(missing)}: it has {', '.join(map(str, x))}")
        rows.append((x if features is None else {name: x.get(name) for name in features}, value.get("y")))
    digest = sha256(path.read_bytes() + repr((target, features)).encode()).hexdigest()
    return Holdout(rows, f"{path.name} {digest[:16]}")
