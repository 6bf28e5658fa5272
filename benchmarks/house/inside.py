"""The measured process of `walk`: it has the product of one checkout on its path."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from river.forest import ARFClassifier

from attributary_explainers import IncrementalPFI, IncrementalSAGE

from .checkout import PACKAGES, definer, package_folder
from .count import Recorder, Walk, summary

FEATURES, TREES, SEED = 10, 3, 1
MODEL_ID, TOPIC = "m", "attributary.observations.v1"
START_MS = 1_700_000_000_000

Row = tuple[dict[str, float], bool]


def rows() -> Iterator[Row]:
    """Yield rows of ten numbers, of which four make the label."""
    rng = random.Random(SEED)
    while True:
        x = {f"f{n}": rng.random() for n in range(FEATURES)}
        yield x, x["f0"] + x["f1"] * x["f2"] + x["f3"] > 1.2


def explain_one(explainer_class: Callable[..., Any], recorder: Recorder, warm_up: int, n: int) -> list[Walk]:
    """Return the walks of the last `n` calls of `explain_one`, beside a forest that learns from each row."""
    model = ARFClassifier(n_models=TREES, seed=SEED)
    explainer = explainer_class(model, seed=SEED)
    walks = []
    for i, (x, y) in zip(range(warm_up + n), rows(), strict=False):
        if i < warm_up:
            explainer.explain_one(x, y)
        else:
            walks.append(recorder.walk(lambda x=x, y=y: explainer.explain_one(x, y)))  # type: ignore[misc]
        model.learn_one(x, y)
    return walks


def record(checkout: Path, recorder: Recorder, warm_up: int, n: int, events: int) -> list[Walk]:
    """Return the walks of those of the last `n` records that publish so many events.

    What a worker does with a record is no public name: its parts are found by the names of what defines them.
    """
    agents = package_folder(checkout, "attributary_agents")
    partition_class, record_class, parse_config = (
        getattr(import_module(definer(agents, name)), name) for name in ("Partition", "Record", "parse_config")
    )
    forest = {"class": "river.forest.ARFClassifier", "params": {"n_models": TREES, "seed": SEED}}
    # Every tenth record publishes an event of each explainer; model change is watched, as it is by default.
    settings = {"model": forest, "explainers": {"pfi": {}, "sage": {}}, "publish": {"every": 10}}
    partition = partition_class(TOPIC, 0, parse_config({"models": {MODEL_ID: settings}}), lambda _key: None)
    walks = []
    for i, (x, y) in zip(range(warm_up + n), rows(), strict=False):
        value = json.dumps({"x": x, "y": y}).encode()
        sent = record_class(TOPIC, 0, i, START_MS + i, MODEL_ID.encode(), value)
        if i < warm_up:
            partition.handle(sent)
            continue
        published: list[Any] = []
        walk = recorder.walk(lambda sent=sent, out=published: out.extend(partition.handle(sent)))  # type: ignore[misc]
        if len(published) == events:
            walks.append(walk)
    if not walks:
        raise SystemExit(f"no record of the last {n} has published {events} events: count more with --observations")
    return walks


def main(argv: list[str]) -> int:
    """Print the walks: the checkout, the observations before, and those that are counted are the arguments."""
    checkout, warm_up, n = Path(argv[0]).resolve(), int(argv[1]), int(argv[2])
    folders = [str(package_folder(checkout, package)) for package in PACKAGES]
    found = import_module("attributary_explainers").__path__[0]
    if found not in folders:
        raise SystemExit(f"Python imports the product from {found}, not from {checkout}")
    recorder = Recorder(folders)
    for explainer in (IncrementalPFI, IncrementalSAGE):
        walks = explain_one(explainer, recorder, warm_up, n)
        print("\n".join(summary(f"{explainer.__name__}.explain_one", walks, list(PACKAGES))))
    for events in (0, 2):
        walks = record(checkout, recorder, warm_up, n, events)
        print("\n".join(summary(f"a record that publishes {events} events", walks, list(PACKAGES))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
