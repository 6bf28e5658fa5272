"""Runs `attributary demo`: a broker, topics, a worker and a stream.

It shows the events that the worker publishes.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from attributary_topics import decode_json

from ..config.environment import forget_settings
from ..config.reading import parse_config
from ..config.settings import Config
from ..files.source import Source
from ..kafka.observations import produce
from ..kafka.readers import topic_reader
from ..kafka.topics import create_topics
from .brokers import broker
from .local_broker import free_port
from .page import MISSING, Page
from .processes import start_child, stop_child
from .scenario import DemoStream, agrawal, demo_config, from_file
from .view import LiveView, PlainView, View

STOP_TIMEOUT_S = 30.0


class _StoppedError(Exception):
    """Ends the demo after Ctrl-C or SIGTERM."""


class _WorkerDiedError(Exception):
    """Ends the demo because the worker's process has ended by itself."""


def run_demo(
    *,
    source: Source | None,
    model_id: str,
    limit: int | None,
    broker_spec: str,
    port: int,
    plain: bool,
    exit_at_end: bool,
    with_page: bool = True,
) -> int:
    """Run the demo until it is stopped; return the exit code.

    The address of the page is said before all else, and once more where it stays when all has been handled.

    Raises
    ------
    AttributaryError
        The file, the broker or the port is not usable.
    """
    forget_settings()
    console = Console()
    stream = agrawal(limit) if source is None else from_file(source, limit)
    view: View
    view = PlainView(console, stream.n) if plain or not console.is_terminal else LiveView(console, stream.n)
    with _signals_raise(), contextlib.ExitStack() as stack:
        try:
            page = stack.enter_context(contextlib.closing(Page())) if with_page and Page.can_be_served() else None
            if page is not None:
                view.say(f"page: {page.address}")
            elif with_page:
                view.say(MISSING)
            view.say(stream.title)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attributary-demo-")))
            running = stack.enter_context(broker(broker_spec))
            key = folder / "state.key"
            key.write_text(secrets.token_hex(32))
            settings = demo_config(stream, model_id, running.bootstrap, port or free_port())
            served = {} if page is None else {"serve": page.settings(folder)}
            config = parse_config({**settings, **served, "state": {"key_file": str(key)}}, "demo")
            create_topics(config)
            path = folder / "demo.yaml"
            path.write_text(yaml.safe_dump(config.model_dump(mode="json", by_alias=True)))
            if page is not None:
                page.start(path)  # before what may take a minute: whoever follows the address finds it
            log = folder / "worker.log"
            child = start_child([sys.executable, "-m", "attributary_agents.cli", "run", "--config", path], log=log)
            stack.callback(stop_child, child, STOP_TIMEOUT_S)
            view.say(f"{running.name} broker at {running.bootstrap}; worker {child.pid} is joining")
            stack.enter_context(view)
            asyncio.run(_watch(config, stream, model_id, view, child, page, exit_at_end))
        except (_StoppedError, KeyboardInterrupt):
            view.say("stopping")
        except _WorkerDiedError:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            view.say(f"the worker ended by itself; the end of its log:\n{tail}")
            return 1
    return 0


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    # SIGTERM as Ctrl-C, so that there is one way out and it passes every `finally`. A second signal on the way is
    # ignored: the children have their own time limits.
    def stop(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _watch(
    config: Config, stream: DemoStream, model_id: str, view: View, child: Any, page: Page | None, exit_at_end: bool
) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    producer = asyncio.create_task(produce(config, model_id, stream.values()))
    tasks = [
        producer,
        asyncio.create_task(_follow(config, view)),
        asyncio.create_task(_poll(config, view, child, page, producer, exit_at_end)),
        asyncio.create_task(stopped.wait()),
    ]
    try:
        pending = set(tasks)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
                if task is tasks[2]:
                    return
                if task is tasks[3]:
                    raise _StoppedError
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(config: Config, view: View) -> None:
    """Show the importances and incidents that arrive on their topics."""
    topics = config.kafka.topics
    async with topic_reader(config.kafka, topics.importances, topics.incidents) as reader:
        async for batch in reader.to_come():
            for record in batch:
                event = decode_json(record.value)
                if record.topic == topics.incidents:
                    if event["reason"] != "lasts":  # it goes on as it was, which is no news
                        view.incident(event)
                elif event["explainer"] == "pfi":
                    view.importance(event)


async def _poll(
    config: Config, view: View, child: Any, page: Page | None, producer: asyncio.Task[int], exit_at_end: bool
) -> None:
    """Show the worker's counters; report when everything sent is handled."""
    url = f"http://{config.web.host}:{config.web.port}/metrics"
    said = False
    while True:
        await asyncio.sleep(0.5)
        if child.poll() is not None:
            raise _WorkerDiedError
        if page is not None and (why := page.ended()) is not None:
            view.say(f"{why}\nthe demo goes on without it")
        handled, reasons = await asyncio.to_thread(_scrape, url)
        dead_letters = sum(reasons.values())
        view.counts(handled, dead_letters)
        if producer.done() and handled >= producer.result() and not said:
            said = True
            await asyncio.sleep(1.0)  # what the last observations published is on its way
            view.end()
            brokers = ", ".join(config.kafka.brokers)
            view.say(
                f"all {handled} observations handled: {handled - dead_letters} explained, {dead_letters} dead letters; "
                f"metrics at {url}; topics {config.kafka.topic_prefix}.* at {brokers}"
            )
            if reasons:
                counts = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
                view.say(f"dead letters by reason: {counts}; each says why in {config.kafka.topics.dead_letters}")
            if exit_at_end:
                return
            if page is not None and page.is_served:
                view.say(f"page: {page.address}")
            view.say("Ctrl-C ends the demo")


def _scrape(url: str) -> tuple[int, dict[str, int]]:
    """Return the number of records consumed, and dead letters by reason.

    Both are empty while the worker does not answer yet.
    """
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
    except OSError:
        return 0, {}
    consumed = sum(sample.value for sample in families["attributary_records_consumed"].samples)
    letters: Counter[str] = Counter()
    for sample in families["attributary_dead_letters"].samples:
        letters[sample.labels["reason"]] += int(sample.value)
    return int(consumed), +letters
