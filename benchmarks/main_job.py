"""The main job on real input: elec2 through real Kafka and `attributary run`, and against `attributary replay`.

    make elec2                       # all 45 312 rows
    make elec2 ARGS="--rows 20000"
    make elec2 ARGS="--data made"    # on a made stand-in (benchmarks/data/README.md)

Prints what was counted, when vicprice became important, the change explanations, and whether the worker's events
equal the replay's, value for value. Exit code 1 when one of these does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import yaml
from rich.console import Console
from rich.progress import Progress
from support.kafka import read_all
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import broker
from attributary_agents.files.source import open_source
from attributary_agents.kafka.observations import encode_value, produce
from attributary_agents.kafka.topics import create_topics
from benchmarks.data import ELEC2_DRIFT, ELEC2_ROWS, FOLDER, NoDataError, data_path
from benchmarks.data.made import DATA_HELP, choose_folder

MODEL_ID = "elec2"


def main_job_config(brokers: str) -> dict[str, Any]:
    """An adaptive random forest of ten trees with iPFI, iSAGE and the change explainer."""
    features = ("date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")
    return {
        "kafka": {"brokers": [brokers], "group": "main-job", "topic_prefix": "main-job", "partitions": 2},
        "models": {
            MODEL_ID: {
                "model": {"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}},
                "features": dict.fromkeys(features, "number"),
                "alpha": 0.002,
                "explainers": {"pfi": {"n_samples": 1}, "sage": {"n_samples": 3}},
                "change": {},
                "publish": {"every": 200},
            }
        },
        "checkpoint": {"interval_s": 5},
    }


@dataclass(frozen=True)
class MainJobResult:
    """What the run left behind."""

    rows: int
    consumed: int
    explained: int
    dead_letters: int
    exit_code: int
    importances: list[dict[str, Any]]
    incidents: list[dict[str, Any]]
    replayed_importances: list[dict[str, Any]]
    replayed_incidents: list[dict[str, Any]]
    drift: int = ELEC2_DRIFT
    """0-based row from which vicprice is no longer constant."""

    def importance(self, explainer: str, feature: str, *, after_drift: bool) -> list[float]:
        """The published importances of a feature before the drift, or from it on."""
        return [
            event["features"][feature]["importance"]
            for event in self.importances
            if event["explainer"] == explainer and (event["observation"] > self.drift) == after_drift
        ]

    @property
    def equals_replay(self) -> bool:
        """Whether worker and replay published the same, but for the partition and the times of the records."""
        return [*map(_of_file, self.importances), *map(_of_file, self.incidents)] == [
            *map(_of_file, self.replayed_importances),
            *map(_of_file, self.replayed_incidents),
        ]


def _of_file(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without what a row of a file does not have: a partition, and the time of its record."""
    same = {**event, "source": event["source"]["offset"]}
    if "id" in event:  # the offset and the place among the events of that observation
        same |= {"id": event["id"].rsplit(":", 2)[1:], "since": {**event["since"], "time": None}}
    return same


def run_main_job(
    data: Path,
    rows: int,
    bootstrap: str,
    folder: Path,
    *,
    drift: int = ELEC2_DRIFT,
    progress: Callable[[int], None] | None = None,
) -> MainJobResult:
    """Send `rows` rows through Kafka into a worker process, replay them beside it, and read the topics.

    Parameters
    ----------
    drift
        0-based row of `data` from which vicprice is no longer constant.
    """
    raw = main_job_config(bootstrap)
    config = parse_config(raw)
    create_topics(config)
    with WorkerProcess(raw, folder) as worker:
        replaying = _start_replay(data, rows, raw, folder)
        values = (encode_value(value) for value in islice(open_source(data).values(), rows))
        sent = asyncio.run(produce(config, MODEL_ID, values))
        worker.wait_consumed(sent, timeout_s=3600, progress=progress)
        consumed = worker.total("records_consumed_total")
        explained = worker.total("model_observations_total")
        dead_letters = worker.total("dead_letters_total")
        exit_code = worker.stop()
    if replaying.wait() != 0:
        raise RuntimeError("the replay failed")
    topics = config.kafka.topics
    return MainJobResult(
        rows=rows,
        consumed=consumed,
        explained=explained,
        dead_letters=dead_letters,
        exit_code=exit_code,
        importances=_read(bootstrap, topics.importances),
        incidents=_read(bootstrap, topics.incidents),
        replayed_importances=_lines(folder / "replay" / "importances.jsonl"),
        replayed_incidents=_lines(folder / "replay" / "incidents.jsonl"),
        drift=drift,
    )


def _start_replay(data: Path, rows: int, config: dict[str, Any], folder: Path) -> Popen[bytes]:
    path = folder / "replay.yaml"
    path.write_text(yaml.safe_dump(config))
    argv = [sys.executable, "-m", "attributary_agents.cli", "replay", str(data)]
    argv += ["--config", str(path), "--out", str(folder / "replay"), "--limit", str(rows)]
    return Popen(argv, stdout=DEVNULL)


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as lines:
        return [json.loads(line) for line in lines]


def _read(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """The events on a topic, one for each CloudEvents id, in the order of their observations."""
    records = read_all(bootstrap, topic)
    events = {dict(record.headers)["ce_id"]: json.loads(record.value) for record in records}
    return sorted(events.values(), key=lambda event: event["observation"])


def report(result: MainJobResult) -> list[tuple[str, bool]]:
    """What must hold, in words with the figures, and whether it does."""
    before = result.importance("pfi", "vicprice", after_drift=False)
    after = result.importance("pfi", "vicprice", after_drift=True)
    lines = [
        (
            f"{result.rows} sent = {result.consumed} consumed = {result.explained} explained + "
            f"{result.dead_letters} dead letters",
            result.rows == result.consumed == result.explained + result.dead_letters,
        ),
        (
            f"vicprice's iPFI before row {result.drift}: "
            f"{min(before):.4f} to {max(before):.4f} in {len(before)} events",
            max(map(abs, before)) == 0.0,
        ),
        (
            f"worker = replay, by value: {len(result.importances)} importances, {len(result.incidents)} revisions",
            result.equals_replay,
        ),
        (f"the worker ended with exit code {result.exit_code}", result.exit_code == 0),
    ]
    if after:
        text = f"vicprice's iPFI after it: last {after[-1]:.4f}, largest {max(after):.4f} in {len(after)} events"
        lines.insert(2, (text, max(after) > 0 and after[-1] > 0))
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ELEC2_ROWS, help="rows of elec2 to send (default: all)")
    parser.add_argument("--data", default=str(FOLDER), help=DATA_HELP)
    parser.add_argument("--broker", default="kafka", help="kafka, embedded or HOST:PORT (default: kafka)")
    args = parser.parse_args(argv)
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="attributary-main-job-") as name:
        folder = Path(name)
        try:
            data = data_path("elec2", choose_folder(args.data, folder / "data"))
        except NoDataError as error:
            console.print(f"{error}: give its folder with --data")
            return 2
        with broker(args.broker) as running, Progress(console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("explained", total=args.rows)
            result = run_main_job(
                data, args.rows, running.bootstrap, folder, progress=lambda n: bar.update(task, completed=n)
            )
    lines = report(result)
    for incident in result.incidents:
        print(f"      {incident['sentence']}")
    for explainer in ("pfi", "sage"):
        last = next(event for event in reversed(result.importances) if event["explainer"] == explainer)
        top = ", ".join(f"{name} {feature['importance']:.4f}" for name, feature in list(last["features"].items())[:5])
        print(f"      {explainer} at {last['observation']}: {top}")
    for text, holds in lines:
        print(f"{'ok' if holds else 'FAIL':4}  {text}")
    return 0 if all(holds for _, holds in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
