"""Runs `attributary run` and notes when what happens, in seconds of processor time: a script of its own.

python watched.py NOTES run --config FILE
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from pathlib import Path
from typing import Any

from attributary_agents.cli.main import main
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.view import WorkerView

BEAT_S = 0.002
COUNTED = 100
"""Observations after which the number that is handled is noted again."""
NOTED_S = 0.02


class Notes:
    """Appends notes to a file, each with the time and the process' processor time.

    Parameters
    ----------
    path
        One JSON object a line.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def note(self, what: str, **more: Any) -> None:
        """Write a line."""
        line = {"what": what, "at": time.monotonic(), "cpu": time.process_time(), **more}
        self._file.write(json.dumps(line) + "\n")


class Said(logging.Handler):
    """Notes what the worker says about being ready and restored."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        """Note a line."""
        text = record.getMessage()
        if text.startswith(("ready:", "restored ")):
            self._notes.note(text.partition(" ")[0].strip(":"), text=text)


def watch(notes: Notes) -> None:
    """Have observations, checkpoints, pauses of the event loop and the peak of memory noted."""
    handle, record_checkpoint, run = Partition.handle, WorkerView.record_checkpoint, asyncio.BaseEventLoop.run_forever
    last = [0.0, 0]

    def handled(self: Partition, record: Any) -> Any:
        now = time.monotonic()
        if not last[1]:
            notes.note("first observation")
        elif now - last[0] > NOTED_S:
            notes.note("observations paused", seconds=now - last[0])
        last[1] += 1
        result = handle(self, record)
        last[0] = time.monotonic()
        if last[1] % COUNTED == 0:
            notes.note("handled", n=last[1])
        return result

    def recorded(self: WorkerView, seconds: float) -> None:
        notes.note("checkpoint", seconds=seconds)
        record_checkpoint(self, seconds)

    async def beat() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(BEAT_S)
            if (late := time.monotonic() - began - BEAT_S) > NOTED_S:
                notes.note("loop paused", seconds=late)

    def run_forever(self: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            beats.append(self.create_task(beat()))
        run(self)

    beats: list[asyncio.Task[None]] = []
    Partition.handle = handled  # type: ignore[method-assign]
    WorkerView.record_checkpoint = recorded  # type: ignore[method-assign]
    asyncio.BaseEventLoop.run_forever = run_forever  # type: ignore[method-assign]
    logging.getLogger("attributary_agents").addHandler(Said(notes))


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    written = Notes(Path(sys.argv.pop(1)))
    watch(written)
    written.note("start", import_s=time.process_time())
    try:
        main()
    finally:
        written.note("end", peak_bytes=_peak_bytes())
