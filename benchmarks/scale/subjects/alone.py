"""Runs the model, and the product's explainers of it, over made observations: what neither Kafka nor the worker takes.

The packages are those on the path of the process, of this checkout or of another one.
"""

from __future__ import annotations

import json
import time
from statistics import median

from attributary_explainers import Explainers, IncrementalPFI
from benchmarks.scale.records import observation
from benchmarks.scale.subjects.common import make_model, settings

BLOCK = 100


def main() -> None:
    """Print the microseconds that River's model takes, and those of the explained one: medians of blocks in turns."""
    given = settings()
    pool = [observation(i, given["features"]) for i in range(1000)]
    model, explained = make_model(given["model"]), make_model(given["model"])
    explainers = Explainers(explained, {"pfi": IncrementalPFI(explained, n_samples=given["n_samples"], seed=1)})
    alone: list[float] = []
    ours: list[float] = []
    for begin in range(0, given["last"], BLOCK):
        rows = [pool[i % len(pool)] for i in range(begin, begin + BLOCK)]
        began = time.process_time()
        for row in rows:
            model.predict_proba_one(row["x"])
            model.learn_one(row["x"], row["y"])
        alone.append(time.process_time() - began)
        began = time.process_time()
        for row in rows:
            explainers.predict(row["x"])
            explainers.explain(row["y"])
            explained.learn_one(row["x"], row["y"])
        ours.append(time.process_time() - began)
    half = len(alone) // 2  # the first ones fill the reservoir and grow the model
    found = {"model_us": 1e6 * median(alone[half:]) / BLOCK, "explained_us": 1e6 * median(ours[half:]) / BLOCK}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
