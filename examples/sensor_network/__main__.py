"""Runs the experiment: `python -m examples.sensor_network`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from attributary_agents.cli.progress import progress
from attributary_agents.demo.brokers import broker
from attributary_agents.demo.page import Page
from attributary_agents.errors import AttributaryError

from .experiment import Verdict, judge
from .network import KINDS, Network, make_network
from .running import OnKafka, without_kafka


def main(argv: Sequence[str] | None = None) -> int:
    """Run it for each seed, print the verdicts; return 0 where every faulty sensor was first, and else 1."""
    chosen = _parser().parse_args(argv)
    verdicts: list[Verdict] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attributary-sensors-")))
        running = None if chosen.broker == "none" else stack.enter_context(broker(chosen.broker))
        page = stack.enter_context(closing(Page())) if chosen.page and running is not None else None
        if page is not None:
            print(f"page: {page.address}")
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            network = make_network(seed, chosen.sensors, stuck=chosen.stuck)
            with progress(f"seed {seed}", len(network.readings)) as shown:
                if running is None:
                    events = without_kafka(network, shown)
                else:
                    last = seed == chosen.seed + chosen.seeds - 1
                    events = OnKafka(running, folder, seed, page if last else None).run(network, shown)
            its = judge(events, network)
            verdicts += its
            print(table(seed, its), flush=True)
            if chosen.plot is not None and seed == chosen.seed:
                _draw(events, network, chosen.plot)
        print(summary(verdicts))
        if page is not None:
            print(f"page: {page.address}; Ctrl-C ends it", flush=True)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            with suppress(KeyboardInterrupt):
                signal.pause()
    return 0 if all(verdict.rank == 1 for verdict in verdicts) else 1


def table(seed: int, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts on the faults of one network as lines."""
    lines = [f"seed {seed}: mean importance over the whole fault, in the unit of the score"]
    lines.append(f"  {'explainer':<10}{'fault':<8}{'sensor':<8}{'rank':>4}{'importance':>12}   next")
    lines += [
        f"  {one.explainer:<10}{one.fault.kind:<8}{one.fault.sensor:<8}{one.rank:>4}{one.importance:>12.4f}   "
        f"{one.next_sensor} {one.next_one:.4f}"
        for one in verdicts
    ]
    return "\n".join(lines)


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return how many faulty sensors were first, by explainer, and which were not."""
    lines = []
    for name in sorted({verdict.explainer for verdict in verdicts}):
        its = [verdict for verdict in verdicts if verdict.explainer == name]
        missed = [verdict for verdict in its if verdict.rank > 1]
        of = ", ".join(f"{kind} {sum(one.fault.kind == kind for one in missed)}" for kind in KINDS)
        lines.append(
            f"{name}: {len(its) - len(missed)} of {len(its)} faulty sensors first"
            + (f"; missed: {of}" if missed else "")
        )
    return "\n".join(lines)


def _draw(events: list[dict[str, Any]], network: Network, path: Path) -> None:
    from .drawing import draw

    draw(events, network, path)
    print(f"drawn: {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.sensor_network", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, kafka, HOST:PORT, or none: without Kafka")
    parser.add_argument("--seed", type=int, default=1, help="of the first network")
    parser.add_argument("--seeds", type=int, default=1, help="so many networks, one after the other")
    parser.add_argument("--sensors", type=int, default=29, help="in the network; at least 5")
    parser.add_argument(
        "--stuck", choices=("lowest", "held"), default="lowest", help="at which reading a sensor is stuck"
    )
    parser.add_argument("--plot", type=Path, help="draw the first run to this file (.svg, .png)")
    parser.add_argument("--page", action="store_true", help="serve the page of the last run until Ctrl-C")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AttributaryError as error:
        sys.exit(f"examples.sensor_network: {error}")
