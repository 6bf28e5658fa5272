"""Workers come and go, in order and at once, while observations flow and somebody scrapes them all."""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from benchmarks.chaos.lab.fleet import Fleet, Member
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import observations, raw_config


class Scraper(threading.Thread):
    """Scrapes all workers at once, every second, and writes down which of them exports which model."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(name="scraper", daemon=True)
        self._fleet = fleet
        self._done = threading.Event()
        self.n_scrapes = 0
        self.together: dict[str, int] = defaultdict(int)
        """Model id to scrapes in a row in which several workers export it, up to now."""
        self.overlaps: list[tuple[float, str, list[int], int]] = []
        """When, which model, which workers, and the how manieth scrape in a row."""

    def run(self) -> None:
        """Called by `start`, in the thread."""
        with ThreadPoolExecutor(8) as pool:
            while not self._done.wait(1.0):
                members = list(self._fleet.members)
                exported = list(pool.map(Member.models, members))
                self.n_scrapes += 1
                for model_id in self._fleet.config.models:
                    by = [i for i, models in enumerate(exported) if model_id in models]
                    self.together[model_id] = self.together[model_id] + 1 if len(by) > 1 else 0
                    if len(by) > 1:
                        self.overlaps.append((self._fleet.lab.elapsed_s, model_id, by, self.together[model_id]))

    def stop(self) -> None:
        """Scrape no more."""
        self._done.set()
        self.join()


def run(lab: Lab) -> None:
    """Two workers, then three, then one, restarted in turn by SIGTERM and SIGKILL; no model is in two for long."""
    rounds, n = (1, 1_500) if lab.short else (5, 60_000)
    with Fleet(lab, raw_config(lab.bootstrap, "rolling", session_timeout_s=2.0)) as fleet:
        scraper = Scraper(fleet)
        codes: list[int] = []
        fleet.start(2)
        sender = fleet.start_sending(observations(n, lab.seed), n / (25.0 * rounds))
        scraper.start()
        try:
            for i in range(rounds):
                _round(lab, fleet, codes, last=i == rounds - 1)
            sender.finish()
            fleet.wait_drained()
        finally:
            scraper.stop()
        lab.check("SIGTERM ends a worker cleanly", not any(codes), f"exit codes {codes}")
        for when, model_id, by, times in scraper.overlaps:
            lab.note(f"at {when:.1f} s workers {by} both export {model_id}, scrape {times} in a row")
        longest = max((times for *_, times in scraper.overlaps), default=0)
        seen = f"{len(scraper.overlaps)} overlaps in {scraper.n_scrapes} scrapes, at most {longest} in a row"
        lab.check("no model in two workers for more than a scrape", longest <= 1 and scraper.n_scrapes > 10, seen)
        fleet.conclude()


def _round(lab: Lab, fleet: Fleet, codes: list[int], *, last: bool) -> None:
    for i, member in enumerate(fleet.members[:2]):
        _between(lab, fleet)
        codes.append(member.stop())
        member.start()
        lab.note(f"SIGTERM to worker {i}, and started again")
    if len(fleet.members) == 2:
        fleet.add()
    else:
        fleet.members[2].start()
    lab.note("a third worker")
    for i in lab.random.sample(range(3), 1 if lab.short else 3):
        _between(lab, fleet)
        fleet.members[i].kill()
        fleet.members[i].start()
        lab.note(f"SIGKILL to worker {i}, and started again")
    _between(lab, fleet)
    codes.append(fleet.members[2].stop())
    fleet.members[1].kill()
    lab.note("one is left")
    _between(lab, fleet)
    if not last:
        fleet.members[1].start()


def _between(lab: Lab, fleet: Fleet) -> None:
    # Sometimes in the middle of the rebalance that the last step began, sometimes after it.
    if lab.random.random() < 0.7:
        fleet.wait_ready()
    fleet.pause(lab.random.uniform(0.2, 2.0))
