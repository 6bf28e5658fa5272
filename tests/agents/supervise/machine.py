"""A supervisor of small processes, run as a program: each does what its word says, and writes what happens to a file.

The words: `stays` until SIGTERM; `fails` with exit code 1 twice, and stays then; `dies` by SIGKILL once, and stays
then; `always` fails; `leaves` with exit code 0 once, and stays then; `fault` is a user's; `hangs` whatever it is told;
`waits` at SIGTERM until there is a file `go`, a minute at most; `spoils` its stop by exit code 1; `last` stays until
all others have stopped.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import attributary_agents.cli  # noqa: F401 - first, as in a command: half of the imports are left out
from attributary_agents.errors import AttributaryError
from attributary_agents.logs import configure_logging
from attributary_agents.supervise import Restarts, Role, Supervisor

FAILURES = {"fails": 2, "dies": 1, "leaves": 1, "always": sys.maxsize}


def note(folder: Path, text: str) -> None:
    """Write one line, at once."""
    with (folder / "events").open("a") as file:
        file.write(f"{text}\n")


def work(folder: Path, word: str) -> int:
    """Be a process of the word."""
    note(folder, f"{word} begins {os.getpid()}")
    begun = sum(line.startswith(f"{word} begins") for line in (folder / "events").read_text().splitlines())
    if begun <= FAILURES.get(word, 0):
        if word == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return int(word != "leaves")
    if word == "fault":
        raise AttributaryError("set web.port to another one")

    def stop(number: int, _frame: object) -> None:
        note(folder, f"{word} hears {signal.Signals(number).name}")
        if word == "hangs":
            return
        until = time.monotonic() + 60
        while word == "waits" and not (folder / "go").exists() and time.monotonic() < until:
            time.sleep(0.01)
        note(folder, f"{word} stops")
        raise SystemExit(int(word == "spoils"))

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGUSR1, lambda *_: note(folder, f"{word} hears SIGUSR1"))
    note(folder, f"{word} stays")
    while True:
        time.sleep(1000)


def main(folder: Path, stop_within_s: float, first_s: float, *words: str) -> int:
    """Run the supervisor; return its exit code."""
    configure_logging("INFO", "supervisor")
    roles = [Role(word, partial(work, folder, word), outlives_others=word == "last") for word in words]
    restarts = partial(Restarts, first_s, max(first_s, 0.1), most=4)
    return Supervisor(roles, stop_within_s, lambda n, times: note(folder, f"{words[n]} again {times}"), restarts).run()


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:]))
    except AttributaryError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
