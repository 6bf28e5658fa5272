"""The measured process of `events` for what no configuration publishes: the values of iMDI and iPDP on a stream."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from river.forest import ARFClassifier
from river.tree import HoeffdingTreeRegressor

from attributary_explainers import IncrementalMDI, IncrementalPDP

EVERY = 250


def rows(path: Path) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the rows of a CSV file whose last column is a number; a cell that is no number is text."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cells = {name: _cell(text) for name, text in row.items()}
            _, y = cells.popitem()
            yield cells, y


def _cell(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def main(argv: list[str]) -> int:
    """Write the values at every so many observations: `forest` or `tree`, the stream and the file are the arguments."""
    kind, stream, out = argv
    forest = kind == "forest"
    model = ARFClassifier(n_models=3, seed=1) if forest else HoeffdingTreeRegressor()
    mdi, pdp = IncrementalMDI(model), IncrementalPDP(model, label=1 if forest else None, alpha=0.01, seed=1)
    with Path(out).open("w", encoding="utf-8") as file:
        for n, (x, number) in enumerate(rows(Path(stream)), start=1):
            y = int(number) if forest else number
            mdi.explain_one(x, y)
            pdp.explain_one(x, y)
            if n % EVERY == 0:
                file.write(json.dumps({"observation": n, "mdi": mdi.importance, "pdp": pdp.update()}) + "\n")
            model.learn_one(x, y)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
