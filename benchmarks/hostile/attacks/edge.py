"""What comes in from outside: batches that unpack to gigabytes, names, connections, transactions that stay open."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import time
import unicodedata
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from support.kafka import produce, read_all
from support.processes.forked import fork_command
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from benchmarks.hostile.lab import Found, attack

from ..bombs import CODECS, RECORD_BYTES, bomb, send_made
from ..lab import LOGISTIC, Lab

GIB = 2**30
MAX_REQUEST_BYTES = 100 * 2**20
"""The broker's socket.request.max.bytes by default."""
SIZES = {"700 MB": 700_000_000, "3 GB": 3_000_000_000}
SHORT_SIZES = {"700 MB": 700_000_000, "1.5 GB": 1_500_000_000}
"""Less for the broker to unpack, and more than the worker may have, too."""
_GOOD = 50


def _good(n: int = _GOOD) -> list[tuple[bytes, bytes, list[Any]]]:
    return [(b"m", json.dumps({"x": {"a": i % 7, "b": i % 3}, "y": i % 2 == 0}).encode(), []) for i in range(n)]


def _letters(lab: Lab, topic: str) -> list[str]:
    letters = read_all(lab.broker.bootstrap, topic)
    return [(dict(letter.headers)["attributary-dlq-reason"] or b"").decode() for letter in letters]


async def _take_larger(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        most = {"max.message.bytes": str(90 * 2**20)}  # of a request the broker takes 100 MB
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=most)])
    finally:
        await admin.close()


def _bombs(lab: Lab, codec: str) -> Found:
    raw, config = lab.configure({"m": LOGISTIC})
    bootstrap, topic = lab.broker.bootstrap, config.kafka.topics.observations
    asyncio.run(_take_larger(bootstrap, topic))
    refused, sent, passed, unavailable = [], 0, 0, 0
    sizes = SHORT_SIZES if lab.short else SIZES
    produce(bootstrap, topic, _good())
    for name, n_bytes in sizes.items():
        data, n_records = bomb(codec, n_bytes), -(-n_bytes // RECORD_BYTES)
        try:
            if len(data) > MAX_REQUEST_BYTES:  # it closes the connection, and clients try again for a minute
                raise MessageSizeTooLargeError
            asyncio.run(send_made(bootstrap, topic, data, n_records))
            sent += 1
            passed += n_records - 1
        except (KafkaError, OSError) as error:
            refused.append(f"{name} ({len(data) / 1e6:.1f} MB packed: {type(error).__name__})")
        produce(bootstrap, topic, _good())
    ended, n = 0, _GOOD * (1 + len(sizes))
    for more in (0, _GOOD):  # and after a restart
        produce(bootstrap, topic, _good(more))
        n += more
        with lab.worker(raw) as worker:
            resource.prlimit(worker.pid, resource.RLIMIT_DATA, (GIB, GIB))
            try:
                worker.wait_consumed(n + sent, timeout_s=60)
                unavailable = worker.total("records_unavailable_total")
                ended += worker.stop() != 0
            except (RuntimeError, TimeoutError) as error:
                (lab.folder / "error.txt").write_text(str(error))
                ended += 1
    reasons = _letters(lab, config.kafka.topics.dead_letters)
    used = n + sent - len(reasons)
    figure = f"ended {ended} of 2 times; {len(reasons)} dead letters of {sent} bombs; {used} of {n} others handled"
    if refused:
        figure += f"; the broker refuses {', '.join(refused)}"
    is_told = reasons == ["batch_too_large"] * sent and unavailable == passed
    return Found(figure, held=not ended and sent > 0 and is_told)


for _codec in CODECS:
    attack(
        f"bomb-{_codec}",
        f"700 MB and 3 GB of zeros, packed by {_codec}, to a worker of 1 GiB",
    )(lambda lab, codec=_codec: _bombs(lab, codec))  # type: ignore[misc]

FORGED = "2\n2026-01-01 00:00:00,000 ERROR attributary_agents.forged: all models are lost\r\x1b[31m\u202e\x9b\x85"


def _odd(text: str) -> int:
    return sum(unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp") and one not in "\n\t" for one in text)


def _printed(lab: Lab, config_path: Path, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "attributary_agents.cli", *args, "--config", str(config_path)],
        capture_output=True,
        cwd=lab.folder,
        check=False,
        timeout=60,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def _printed_by_fork(lab: Lab, config_path: Path, *args: str) -> str:
    output = lab.folder / f"{'-'.join(args)}.txt"
    fork_command([*args, "--config", str(config_path)], log=output).wait(60)
    return output.read_text(errors="replace")


@attack("names", "a line's end, escape sequences and changes of direction in names; passwords in URLs")
def names(lab: Lab) -> Found:
    """Send features, versions and an incident whose names forge lines; read the log and what the commands print."""
    raw, config = lab.configure({"m": {**LOGISTIC, "publish": {"every": 20, "min_observations": 10}}})
    bootstrap, topics = lab.broker.bootstrap, config.kafka.topics
    x = {FORGED: 1.5, "b": 2}
    odd: list[tuple[bytes, bytes, list[Any]]]
    odd = [(b"m", json.dumps({"x": {**x, "b": i % 3}, "y": i % 2 == 0}).encode(), []) for i in range(100)]
    produce(bootstrap, topics.observations, odd)
    versions: list[tuple[bytes, bytes, list[Any]]] = [
        (b"m", json.dumps({"version": name, "model": LOGISTIC["model"]}).encode(), [])
        for name in ("3\u202e\u2066 all models are lost", FORGED)  # the second is refused
    ]
    incident = {"id": FORGED, "life": FORGED, "severity": FORGED, "since": {"time": "\x1b[2J"}, "sentence": FORGED}
    produce(bootstrap, topics.incidents, [(b"m", json.dumps(incident).encode(), [])])
    with lab.worker(raw) as worker:
        worker.wait_consumed(100, timeout_s=60)
        produce(bootstrap, topics.models, versions, partition=0)
        worker.wait_consumed(102, timeout_s=30)
        produce(bootstrap, topics.observations, odd)
        worker.wait_consumed(202, timeout_s=60)
        worker.stop()
    path = worker.config_path
    said = {"log": worker.log.read_text(errors="replace")}
    run = _printed_by_fork if lab.short else _printed
    for args in (("incidents",), ("models", "list"), ("incidents", "m", "--last", "5")):
        said[" ".join(args)] = run(lab, path, *args)
    path.write_text(path.read_text() + "state:\n  url: s3://user:sesame@bucket/states\n")
    said["config show"] = run(lab, path, "config", "show")
    lines = [line for text in said.values() for line in text.splitlines()]
    forged = sum(line.startswith("2026-01-01 00:00:00,000") for line in lines)
    n_odd, shown = sum(map(_odd, said.values())), sum("sesame" in text for text in said.values())
    named = sum("all models are lost" in text for text in said.values())
    figure = f"{forged} forged lines, {n_odd} control characters, {shown} passwords, in {len(said)} outputs"
    return Found(f"{figure}, {named} of which name it", held=not (forged or n_odd or shown) and named >= 3)


def _modes(folder: Path) -> Iterator[tuple[str, int]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.name, stat.S_IMODE(path.stat().st_mode)


@attack("modes", "another user of the machine reads what a replay and an export write")
def modes(lab: Lab) -> Found:
    """Replay a file and export a state under an open umask."""
    raw, config = lab.configure({"m": LOGISTIC})
    produce(lab.broker.bootstrap, config.kafka.topics.observations, _good(200))
    with lab.worker(raw) as worker:
        worker.wait_consumed(200, timeout_s=60)
        worker.stop()
    rows = lab.folder / "rows.jsonl"
    rows.write_text("\n".join(json.dumps({"a": i % 7, "b": i % 3, "y": i % 2 == 0}) for i in range(50)))
    out = lab.folder / "out"
    before = os.umask(0)
    try:
        said = _printed(lab, worker.config_path, "replay", str(rows), "--target", "y", "--out", str(out))
        out.mkdir(exist_ok=True)
        said += _printed(lab, worker.config_path, "models", "export", "m", str(out / "m.state"))
    finally:
        os.umask(before)
    (lab.folder / "said.txt").write_text(said)
    found = dict(_modes(out))
    others = [name for name, mode in found.items() if mode & 0o077]
    return Found(f"{len(others)} of {len(found)} files", held=not others and len(found) == 6)


def _livez(worker: WorkerProcess) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/livez", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


@attack("connections", "300 connections, half of which drip, beyond the limit of files of the worker")
def connections(lab: Lab) -> Found:
    """Ask /livez ten times over some seconds while all of them stay open."""
    raw, config = lab.configure({"m": LOGISTIC})
    topic = config.kafka.topics.observations
    produce(lab.broker.bootstrap, topic, _good())
    with lab.worker(raw) as worker, ExitStack() as stack:
        worker.wait_consumed(_GOOD, timeout_s=60)
        opened = len(list(Path(f"/proc/{worker.pid}/fd").iterdir()))
        resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (opened + 20, opened + 20))
        idle = []
        for _ in range(300):
            idle.append(stack.enter_context(socket.create_connection(("127.0.0.1", worker.port), timeout=5)))
        answered = 0
        for _ in range(10):
            for one in idle[::2]:
                with suppress(OSError):
                    one.send(b"G")
            answered += _livez(worker)
            time.sleep(0.3)
        produce(lab.broker.bootstrap, topic, _good())
        worker.wait_consumed(2 * _GOOD, timeout_s=30)
        code = worker.stop()
    return Found(
        f"/livez answers {answered} of 10 times, the worker ends with {code}", held=answered == 10 and not code
    )


async def _hold(bootstrap: str, topic: str, worker: WorkerProcess) -> float:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic, transaction_timeout_ms=120_000)
    await producer.start()
    try:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, _good(1)[0][1], b"m", 0)
        await asyncio.to_thread(produce, bootstrap, topic, _good())

        def is_told() -> bool:
            return "has not ended" in worker.log.read_text(errors="replace")

        await asyncio.to_thread(wait_for, "the line", is_told, 40.0)
        held_s = worker.total("transaction_open_seconds")
        await producer.abort_transaction()
        return held_s
    finally:
        await producer.stop()


@attack("transaction", "a producer that leaves its transaction open")
def transaction(lab: Lab) -> Found:
    """Hold a partition up, and let it go."""
    raw, config = lab.configure({"m": LOGISTIC})
    topic = config.kafka.topics.observations
    produce(lab.broker.bootstrap, topic, _good())
    with lab.worker(raw) as worker:
        worker.wait_consumed(_GOOD, timeout_s=60)
        held_s = asyncio.run(_hold(lab.broker.bootstrap, topic, worker))
        worker.wait_consumed(2 * _GOOD, timeout_s=30)
        wait_for("the end", lambda: "has ended after" in worker.log.read_text(errors="replace"), 10.0)
        worker.stop()
    lines = [line for line in worker.log.read_text().splitlines() if ".open_transactions: " in line]
    named = [f"{topic}[0]: " in line and f"offset {_GOOD}" in line for line in lines[:2]]
    figure = f"{len(lines)} lines that name partition and offset, metric at {held_s} s, all behind it handled"
    return Found(figure, held=named == [True, True] and held_s >= 14)
