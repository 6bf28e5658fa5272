"""Runs several workers of a group on this machine, a process each.

Each reads its configuration from standard input, for secrets are erased from the environment, and stops when that ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .config.settings import Config
from .errors import AttributaryError
from .logs import configure_logging
from .models.subprocess.memory import memory_there_is, processors
from .run import run_worker
from .worker.signals import STOP

logger = logging.getLogger(__name__)

FAULT = 2  # exit code of a worker that no restart mends: a user's fault
LONGEST_WAIT_S, SETTLED_AFTER_S = 60.0, 300.0  # before a start; until earlier endings are forgotten

_BOOTSTRAP = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); import attributary_agents.cli; "  # River, leanly
    "from attributary_agents.supervisor import be_worker; sys.exit(be_worker())"
)


class Worker(NamedTuple):
    """Command of a worker, its first wait, and its limit of restarts."""

    name: str
    argv: Sequence[str]
    given: bytes = b""
    wait_s: float = 1.0
    most_in_a_row: int = 10


def run_workers(config: Config, asked: int | str, *, wait: bool = True) -> int:
    """Run the given number of workers; return the exit code.

    With `auto`, one for each processor.
    """
    most = config.kafka.partitions
    if (n := min(processors(), most) if isinstance(asked, str) else asked) > most:
        raise AttributaryError(
            f"--workers {n}: kafka.partitions is {most}, and a partition is at one worker at a time: {n - most} of "
            f"them would have nothing to do. Run {most} or fewer, or add partitions and set kafka.partitions"
        )
    if n == 1:
        return run_worker(config, wait=wait)
    configure_logging(config.log.level, "supervisor")
    given = {f"worker {number}": as_one_of(config, number, n) for number in range(n)}
    argv, path = (sys.executable, "-c", _BOOTSTRAP), pickle.dumps(sys.path)
    workers = [Worker(name, (*argv, name), path + pickle.dumps((own, name, wait))) for name, own in given.items()]
    return supervise(workers, config.watchdog.stop_within_s)


def as_one_of(config: Config, number: int, n: int) -> Config:
    """Return the configuration of worker `number` of `n`.

    It has a port, a name and a part of memory of its own.
    """
    kafka, web, control = config.kafka, config.web, config.control
    if web.port:  # 0 takes any
        web = web.model_copy(update={"port": web.port + number})
    if kafka.instance_id is not None:
        kafka = kafka.model_copy(update={"instance_id": f"{kafka.instance_id}.{number}"})
    if control.build_memory is None and (there_is := memory_there_is()) is not None:
        control = control.model_copy(update={"build_memory": max(there_is // 2 // n, 300_000_000)})
    return config.model_copy(update={"kafka": kafka, "web": web, "control": control})


def be_worker() -> int:
    """Run the worker that standard input describes; return the exit code."""

    def stop_with_supervisor() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    config, name, wait = pickle.load(sys.stdin.buffer)
    threading.Thread(target=stop_with_supervisor, daemon=True).start()
    try:
        return run_worker(config, name, wait=wait)
    except AttributaryError as error:
        logger.critical("%s", error)
        return FAULT


def supervise(workers: Sequence[Worker], stop_within_s: float) -> int:
    """Keep all workers until a signal, then stop them; return the exit code."""
    heard: list[int] = []
    for number in STOP:
        signal.signal(number, lambda number, _frame: heard.append(number))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # for a worker: it would end us
    running: dict[str, subprocess.Popen[bytes]] = {}
    kept = [_keep(worker, running) for worker in workers]
    code = 0
    while not heard and not code:
        code = max(next(one) for one in kept)
        time.sleep(0.1)
    stop_by = time.monotonic() + stop_within_s + 1.0  # then what is left is killed
    logger.info("%d workers stop", len(running))
    for process in running.values():
        process.terminate()
    for name, process in running.items():
        try:
            ended = process.wait(max(stop_by - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            ended = process.wait()
        if ended not in (0, -signal.SIGTERM):  # by which one ends that has not begun
            logger.error("%s %s", name, _told(ended))
            code = code or 1
    return code


def _keep(worker: Worker, running: dict[str, subprocess.Popen[bytes]]) -> Iterator[int]:
    """Keep restarting a worker; yield 0 meanwhile, then an exit code.

    It yields 0 for as long as starting the worker again helps.
    """
    n = 0
    while True:
        began = time.monotonic()
        # In a group of its own: Ctrl-C is the supervisor's.
        process = running[worker.name] = subprocess.Popen(worker.argv, stdin=subprocess.PIPE, process_group=0)
        logger.info("%s is process %d", worker.name, process.pid)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended at once
            process.stdin.write(worker.given)
            process.stdin.flush()
        while (ended := process.poll()) is None:
            yield 0
        del running[worker.name]
        n = 1 + n * (time.monotonic() - began < SETTLED_AFTER_S)
        how = f"{worker.name} {_told(ended)}" + f", {n} times in a row" * (n > 1)
        if ended == FAULT or n >= worker.most_in_a_row:
            logger.critical("%s: all stop. Mend what its log says and start them again; nothing is lost", how)
            yield FAULT if ended == FAULT else 1
        wait_s = min(worker.wait_s * 2 ** (n - 1), LONGEST_WAIT_S)
        logger.error("%s; it starts again in %g s", how, wait_s)
        due = time.monotonic() + wait_s
        while time.monotonic() < due:
            yield 0


def _told(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
