"""What an observation of a served model costs, by how its rows are asked for: `python -m benchmarks.models.served`.

The server runs in a process of its own on this machine and takes a given time for each request beside its model. The
ways are: a worker that looks ahead; one request for each observation, as in a notebook; one request for each row; and
the same model in the worker's own process.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import orjson
from sklearn.tree import DecisionTreeClassifier
from support.models.served_models import ServedModels

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.models.artefacts.served.answers import Answers, answering
from attributary_agents.models.factory import make_model
from attributary_agents.worker.endpoints import Endpoints, EndpointsView
from attributary_agents.worker.lookahead import MOST_RECORDS, Lookahead
from attributary_agents.worker.observations import HANDLE_S
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record, record_from_client
from attributary_explainers import as_batch

TOPIC = "observations"
Row = dict[str, Any]


def trained(n_features: int) -> DecisionTreeClassifier:
    rng = random.Random(7)
    X = [[rng.uniform(-1, 1) for _ in range(n_features)] for _ in range(2000)]
    return DecisionTreeClassifier(max_depth=8, random_state=1).fit(X, [row[0] + 0.3 * row[1] > 0 for row in X])


def own_model(n_features: int) -> Any:
    """The same model in this process."""
    features = [f"f{k}" for k in range(n_features)]
    return as_batch(trained(n_features).predict_proba, features=features, classes=[False, True])


def _serve(n_features: int, takes_s: float, told: Connection) -> None:
    model = trained(n_features)

    def predict(rows: list[Row]) -> list[list[float]]:
        found: list[list[float]] = model.predict_proba([list(row.values()) for row in rows]).tolist()
        return found

    with ServedModels({"tree": predict}) as server:
        server.takes_s = takes_s
        told.send(server.address("tree"))
        told.recv()
        told.send((server.n_requests["tree"], server.n_rows["tree"]))


@contextmanager
def serving(n_features: int, takes_s: float) -> Iterator[tuple[str, Callable[[], tuple[int, int]]]]:
    """Yield an address, and what ends the server and returns its requests and rows."""
    ours, its = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(n_features, takes_s, its), daemon=True)
    process.start()

    def end() -> tuple[int, int]:
        ours.send(None)
        found: tuple[int, int] = ours.recv()
        return found

    try:
        yield ours.recv(), end
    finally:
        process.terminate()
        process.join()


def config_of(model: dict[str, Any], n_features: int) -> Config:
    settings = {
        "model": model,
        "learn": False,
        "features": {f"f{k}": "number" for k in range(n_features)},
        "explainers": {"pfi": {"n_samples": 5}, "sage": {"n_samples": 5}},
    }
    return parse_config({"models": {"m": settings}})


def records(n: int, n_features: int) -> list[Any]:
    rng = random.Random(3)
    made = []
    for offset in range(n):
        x = {f"f{k}": rng.uniform(-1, 1) for k in range(n_features)}
        value = orjson.dumps({"x": x, "y": x["f0"] > 0})
        made.append(
            SimpleNamespace(
                topic=TOPIC,
                partition=0,
                offset=offset,
                timestamp=0,
                timestamp_type=0,
                key=b"m",
                value=value,
                headers=(),
            )
        )
    return made


async def look_ahead(config: Config, waiting: list[Any]) -> None:
    """Handle the records as a worker does, without Kafka."""
    partition = Partition(TOPIC, 0, config, lambda _key: None)
    endpoints = Endpoints(config, EndpointsView())
    lookahead, at = Lookahead(partition, endpoints), 0
    while at < len(waiting):
        upcoming = waiting[at : at + MOST_RECORDS]
        copy, began, n_before = lookahead.copy(upcoming), time.monotonic(), at
        assert copy is not None
        with lookahead.answering(copy):
            for one in upcoming:
                if not lookahead.is_answered(one, copy):
                    break
                partition.handle(record_from_client(one))
                at += 1
                if time.monotonic() - began >= HANDLE_S:
                    break
        if at == n_before:
            await lookahead.fetch(upcoming)
    assert partition.counters.used == len(waiting)
    endpoints.close()


def at_once(config: Config, waiting: list[Any]) -> None:
    """Handle the records one after another, each of which asks and waits."""
    partition = Partition(TOPIC, 0, config, lambda _key: None)
    for one in waiting:
        partition.handle(Record(TOPIC, 0, one.offset, 0, one.key, one.value))
    assert partition.counters.used == len(waiting)


def row_by_row(config: Config, waiting: list[Any]) -> None:
    """Ask for each row that the records want by itself."""
    partition = Partition(TOPIC, 0, config, lambda _key: None)
    model, answers = make_model(config.models["m"]), Answers()
    for one in waiting:
        answers.wanted.clear()
        with answering(answers):
            partition.handle(Record(TOPIC, 0, one.offset, 0, one.key, one.value))
        for call in answers.wanted.values():
            for row in call.rows.values():
                model.predict_many([dict(zip(model.features or (), row, strict=True))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", type=int, default=1000)
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--takes", type=float, default=5.0, help="milliseconds that a request takes beside its model")
    given = parser.parse_args()
    n, n_features = given.observations, given.features
    few = max(n // 50, 10)
    print(
        f"{n} observations of {n_features} features, PFI and SAGE of 5 draws; a request takes {given.takes:g} ms more"
    )
    print(f"{'way':34} {'obs/s':>8} {'CPU ms/obs':>11} {'requests/obs':>13} {'rows/obs':>9}")
    ways: list[tuple[str, int, Callable[[Config, list[Any]], object] | None]] = [
        ("looked ahead, as a worker does", n, lambda config, waiting: asyncio.run(look_ahead(config, waiting))),
        ("one request for each observation", max(n // 5, 10), at_once),
        ("one request for each row", few, row_by_row),
        ("in the worker's own process", n, None),
    ]
    for name, n_taken, way in ways:
        waiting = records(n_taken, n_features)
        with serving(n_features, given.takes / 1000) as (address, end):
            model = {"served": address, "input": "x", "output": "predictions", "classes": [False, True]}
            if way is None:
                own = {"factory": f"{__spec__.name}:own_model", "params": {"n_features": n_features}}
                config, way = config_of(own, n_features), at_once
            else:
                config = config_of(model, n_features)
            way(config, waiting[:5])  # compiles and imports
            began, cpu = time.perf_counter(), time.process_time()
            way(config, waiting)
            took, busy = time.perf_counter() - began, time.process_time() - cpu
            n_requests, n_rows = end()
        per = f"{n_requests / n_taken:13.2f} {n_rows / n_taken:9.1f}" if n_requests else f"{'-':>13} {'-':>9}"
        print(f"{name:34} {n_taken / took:8.0f} {1000 * busy / n_taken:11.2f} {per}", flush=True)


if __name__ == "__main__":
    main()
