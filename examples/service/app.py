"""Answers who takes a bank's offer, learns from labels that come later, and shows what its model relies on.

    uvicorn examples.service.app:app

With MONITOR_KAFKA=localhost:9092 its events go to Kafka, too. With MONITOR_SNAPSHOT=monitor.pickle it goes on where it
was stopped or, if it was killed, where it was MONITOR_SNAPSHOT_S=60 seconds before at most.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from pydantic import BaseModel
from river import forest

from attributary_explainers import Monitor

monitor = Monitor(topic_prefix=os.environ.get("MONITOR_PREFIX", "attributary"))
monitor.add("bank", forest.ARFClassifier(n_models=3, seed=1), learn=True, label_ttl_s=30 * 86_400)
registry = CollectorRegistry()
registry.register(monitor.collector)


@asynccontextmanager
async def to_kafka(brokers: str) -> AsyncIterator[None]:
    """Give every event to a producer of aiokafka, whose loop is the service's."""
    from aiokafka import AIOKafkaProducer

    loop = asyncio.get_running_loop()
    async with AIOKafkaProducer(bootstrap_servers=brokers) as producer:

        def publish(topic: str, key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
            sending = producer.send_and_wait(topic, value, key=key, headers=headers)
            asyncio.run_coroutine_threadsafe(sending, loop).result(30)

        monitor.publish_to(publish)
        yield


writing = threading.Lock()


def write_snapshot(path: Path) -> None:
    """Write what the monitor knows; a process that is killed meanwhile leaves the file as it was."""
    with writing:
        beside = path.with_name(f"{path.name}.new")
        beside.write_bytes(pickle.dumps(monitor.snapshot()))
        beside.replace(path)


async def write_snapshots(path: Path) -> None:
    """Write what the monitor knows again and again, in a thread: the larger the models, the longer that takes."""
    while True:
        await asyncio.sleep(float(os.environ.get("MONITOR_SNAPSHOT_S", "60")))
        try:
            await asyncio.to_thread(write_snapshot, path)
        except OSError as error:
            logging.getLogger(__name__).warning("the snapshot stays as it was: %s", error)


@asynccontextmanager
async def kept(path: Path) -> AsyncIterator[None]:
    """Go on where the service was stopped, and keep what it knows for the next time."""
    if path.is_file():
        monitor.restore(pickle.loads(path.read_bytes()))
    task = asyncio.create_task(write_snapshots(path))
    yield
    task.cancel()
    await asyncio.to_thread(write_snapshot, path)


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Restore before the first request; at the end take what waits, publish it, and keep what is known."""
    async with AsyncExitStack() as stack:
        if snapshot := os.environ.get("MONITOR_SNAPSHOT"):
            await stack.enter_async_context(kept(Path(snapshot)))
        if brokers := os.environ.get("MONITOR_KAFKA"):
            await stack.enter_async_context(to_kafka(brokers))
        yield
        await asyncio.to_thread(monitor.close)


app = FastAPI(lifespan=lifespan)


class Customer(BaseModel):
    """Whom the bank asks about: features are numbers and texts."""

    id: str
    x: dict[str, float | int | str | bool | None]


class Outcome(BaseModel):
    """What the customer has said."""

    id: str
    y: str


@app.post("/predict")
def predict(customer: Customer) -> dict[str, str | float | None]:
    """Answer at once; the features wait for the label."""
    chances = monitor.predict_proba("bank", customer.x, id=customer.id)
    return {"id": customer.id, "yes": chances.get("yes")}


@app.post("/label", status_code=202)
def label(outcome: Outcome) -> None:
    """Take a label; it is scored, explained and learnt behind this answer."""
    monitor.label("bank", outcome.id, outcome.y)


@app.get("/importances")
def importances() -> dict[str, dict[str, float]]:
    """Say what the model relies on now."""
    return monitor.importances("bank")


@app.get("/metrics")
def metrics() -> Response:
    """Serve what Prometheus scrapes."""
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
