"""`attributary demo-stream`: plays streams with known drifts into the observations topic, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from itertools import islice

import click

from ..config.settings import Config
from ..demo.endless_stream import DriftStream, last_sent
from ..errors import AttributaryError, PreflightError
from .commands import Numbers, check_model_id, config_option, say
from .progress import not_acknowledged


@click.command("demo-stream")
@config_option
@click.option(
    "--stream",
    "specs",
    multiple=True,
    required=True,
    metavar="MODEL=RULES",
    help="Play these rules of Agrawal (0 to 9) in turns for a model: credit=1,2. A single rule never drifts. Give it "
    "once per model.",
)
@click.option(
    "--first",
    type=click.IntRange(min=2),
    default=3000,
    show_default=True,
    help="Let the first drift happen at this observation.",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=12_000,
    show_default=True,
    help="Let this many observations pass between later drifts.",
)
@click.option(
    "--rate",
    type=Numbers(min=0, min_open=True),
    default=100.0,
    show_default=True,
    help="Send at most this many observations per second and model.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="End after so many observations of each model. [default: never]"
)
@click.option(
    "--wait",
    "wait_s",
    type=Numbers(min=0),
    default=120.0,
    show_default=True,
    help="Wait at most this many seconds for the broker and the topic.",
)
def demo_stream(
    config: Config, specs: tuple[str, ...], first: int, every: int, rate: float, limit: int | None, wait_s: float
) -> None:
    """Send Agrawal's credit data, whose true rule changes at known observations, until Ctrl-C or SIGTERM.

    The observations are the same every time. A second run goes on after the last one that is in the topic. Each drift
    is logged with the number of its observation, which is also the model's own count.

    \b
        attributary demo-stream --stream credit=1,2 --rate 200
    """
    from ..kafka.clients import client_log_muted

    streams = [DriftStream.parse(spec, first=first, every=every) for spec in specs]
    ids = [stream.model_id for stream in streams]
    for name in ids:
        check_model_id(config, name)
    if twice := {name for name in ids if ids.count(name) > 1}:
        raise AttributaryError(f"{', '.join(sorted(twice))}: give each model one --stream")
    _wait_for_topic(config, wait_s)
    with client_log_muted("aiokafka.producer"):
        sent = asyncio.run(_play(config, streams, rate, limit))
    say(f"{sent} observations sent to {config.kafka.topics.observations}")


def _wait_for_topic(config: Config, wait_s: float) -> None:
    from ..kafka.topics import check_topics

    deadline = time.monotonic() + wait_s
    while True:
        try:
            return check_topics(config, config.kafka.topics.observations)
        except PreflightError as error:
            if time.monotonic() > deadline:
                raise
            _say(f"waiting: {error}")
        time.sleep(min(2.0, wait_s))


async def _play(config: Config, streams: list[DriftStream], rate: float, limit: int | None) -> int:
    from ..kafka.observations import produce

    after = await last_sent(config, streams)
    sent = dict.fromkeys(after, 0)
    sending = []
    for stream in streams:
        n = after[stream.model_id]
        _say(f"{stream.model_id}: from observation {n + 1} on, rule {stream.rule(n + 1)}")
        values = islice(stream.values(n), None if limit is None else max(limit - n, 0))
        sending.append(
            produce(
                config, stream.model_id, values, rate=rate, progress=_counted(stream, n, sent), silent=_waits(stream)
            )
        )
    playing = asyncio.gather(*sending)
    # The first process of a container has no default action for SIGTERM: it would be killed after the grace period.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await playing
    return sum(sent.values())


def _counted(stream: DriftStream, after: int, sent: dict[str, int]) -> Callable[[int], None]:
    """Return a function that notes how many are in the topic, and logs each drift."""

    def progress(n_sent: int) -> None:
        sent[stream.model_id] = n_sent
        n = after + n_sent
        if stream.drifts_at(n):
            _say(f"{stream.model_id}: drift at observation {n}, from rule {stream.rule(n - 1)} to {stream.rule(n)}")

    return progress


def _waits(stream: DriftStream) -> Callable[[float, int], None]:
    """Return a function that logs that the brokers are silent."""

    def silent(seconds: float, n: int) -> None:
        _say(f"{stream.model_id}: {not_acknowledged(seconds, n)}")

    return silent


def _say(line: str) -> None:
    say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", err=True)
