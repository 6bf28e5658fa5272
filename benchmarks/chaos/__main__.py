"""Break workers and brokers while observations flow, on a real Apache Kafka, and compare with an undisturbed run.

    python -m benchmarks.chaos                    # all scenarios but the soak
    python -m benchmarks.chaos --short            # all in small, the soak too
    python -m benchmarks.chaos kills pause        # some
    python -m benchmarks.chaos soak --minutes 60  # as long as wanted, with a slope for all that could grow
    python -m benchmarks.chaos --list

What was done and compared stands in build/chaos/report.md, with the logs of what failed. Exit code 1 when a scenario
fails. Moments are drawn from the seed; how far a worker has got by then is up to the machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from attributary_agents.demo.brokers import BrokerError
from benchmarks.chaos.compare import report
from benchmarks.chaos.lab.brokers import ChaosBroker, Nodes
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.scenarios.registry import ON_REQUEST, SCENARIOS, describe, run
from benchmarks.process import of_all_cpu_s

FOLDER = Path(__file__).resolve().parents[2] / "build" / "chaos"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"default: all but {', '.join(ON_REQUEST)}")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--seed", type=int, default=1, help="of observations and moments (default 1)")
    parser.add_argument("--short", action="store_true", help="as in the tests: fewer and smaller")
    parser.add_argument("--minutes", type=float, help="of the soak (default 60, with --short 0.6)")
    parser.add_argument("--keep", action="store_true", help="keep logs and the broker's data also where all passed")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the report, emptied first (build/chaos)")
    args = parser.parse_args(argv)
    if unknown := [name for name in args.scenarios if name not in SCENARIOS]:
        parser.error(f"no scenario {', '.join(unknown)}: there are {', '.join(SCENARIOS)}")
    return args


def default(*, short: bool) -> list[str]:
    """The scenarios that are run where none is named."""
    return [name for name in SCENARIOS if short or name not in ON_REQUEST]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenarios one after the other; write the report and print the table."""
    args = parse(argv)
    if args.list:
        for name in SCENARIOS:
            print(f"{name:12} {describe(name)}{'  (only by its name)' if name in ON_REQUEST else ''}")
        return 0
    console = Console(stderr=True)
    out: Path = args.out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    labs: list[Lab] = []
    costs: dict[str, report.Cost] = {}
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    try:
        with (
            closing(ChaosBroker(out / "broker")) as broker,
            closing(Nodes(out / "nodes")) as nodes,
            Progress(*columns, console=console) as bar,
        ):
            for name in args.scenarios or default(short=args.short):
                task = bar.add_task(name, total=None)

                def show(text: str, task: object = task, name: str = name) -> None:
                    line = text.replace("\n", " ")
                    bar.update(task, description=f"{name:12} {line[:100]}")  # type: ignore[arg-type]
                    if not console.is_terminal:
                        console.print(f"{name}: {line}", markup=False, highlight=False, soft_wrap=True)

                lab = Lab(name, broker, nodes, out / name, args.seed, args.short, show, args.minutes)
                before_s = of_all_cpu_s()
                run(lab)
                labs.append(lab)
                costs[name] = report.Cost(lab.elapsed_s, of_all_cpu_s() - before_s)
                show(f"{'PASS' if lab.passed else 'FAIL'}, {costs[name]}")
                bar.update(task, total=1, completed=1)
                report.write(labs, out / "report.md", seed=args.seed, short=args.short, costs=costs)
    except BrokerError as error:
        console.print(str(error), markup=False)
        return 2
    if not args.keep:
        logs = [lab.folder for lab in labs if lab.passed]
        for folder in (out / "broker", *logs, *([out / "nodes"] if len(logs) == len(labs) else [])):
            shutil.rmtree(folder, ignore_errors=True)
    Console(width=None if sys.stdout.isatty() else 200).print(report.table(labs))
    print(f"report: {out / 'report.md'}")
    return 0 if all(lab.passed for lab in labs) else 1


if __name__ == "__main__":
    sys.exit(main())
