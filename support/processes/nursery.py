"""A process that imports what a worker imports, once, and forks workers: a start costs what comes after the imports.

It has no thread and no connection. A request is a line of JSON on stdin, and so is the answer on stdout: `{"start":
{"argv": [...], "out": PATH, "err": PATH, "env": {...}, "cwd": PATH}}` is answered by `{"pid": N}`, `{"end": N}` by
`{"status": N}`, negative for a signal, as soon as that process has ended. A worker ends with the nursery, and the
nursery with whoever started it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import threading
from typing import Any

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def serve() -> list[str]:
    """Answer requests until stdin ends; return only in a worker: its command line."""
    import attributary_agents.cli
    import attributary_agents.run  # noqa: F401

    if (n := threading.active_count()) > 1:
        raise RuntimeError(f"{n} threads after the imports: a fork would have their locks")
    prctl, here = ctypes.CDLL(None).prctl, os.getpid()
    gc.collect()
    gc.freeze()
    requests, answers = os.dup(0), os.dup(1)
    waiting = b""
    while part := os.read(requests, 65_536):
        *lines, waiting = (waiting + part).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "end" in request:
                _, status = os.waitpid(request["end"], 0)
                answer = {"status": os.waitstatus_to_exitcode(status)}
            elif pid := os.fork():
                answer = {"pid": pid}
            else:
                os.close(requests)
                os.close(answers)
                prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
                if os.getppid() != here:  # it ended before the line above took effect
                    os._exit(1)
                return _begin(request["start"])
            os.write(answers, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def _begin(start: dict[str, Any]) -> list[str]:
    os.setsid()
    out, err = (os.open(start[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for name in ("out", "err"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(start["env"])
    os.chdir(start["cwd"])
    argv: list[str] = start["argv"]
    return argv


if __name__ == "__main__":
    sys.argv = ["attributary", *serve()]
    __package__ = ""  # so that it names itself as the installed command does
    from attributary_agents.cli import main

    main()
