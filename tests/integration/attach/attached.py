"""What a page says is run: its configuration with the address of a test's broker, a worker, what commands print."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result
from support.kafka import read_all
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics

PAGES = Path(__file__).resolve().parents[3] / "docs" / "attach"

_FILE = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"^.* It relies (?:more|less) on .*$", re.MULTILINE)
_numbers = itertools.count(1)


def shown(page: str, file: str) -> dict[str, Any]:
    """Return a configuration that a page shows."""
    files = dict(_FILE.findall((PAGES / page).read_text()))
    raw: dict[str, Any] = yaml.safe_load(files[file])
    return raw


def _named(sentence: str) -> set[str]:
    """Return whether the model relies more or less on it, and the feature named first, of each."""
    return set(re.findall(r"(?:more|less) on \w+", sentence))


class Attached:
    """A configuration whose own topics are there, and what becomes of it.

    Parameters
    ----------
    raw
        The configuration; where the brokers are, names of its own, and how long is waited are put in.
    folder
        For files.
    """

    def __init__(self, raw: dict[str, Any], broker: Broker, folder: Path) -> None:
        name = f"attached{next(_numbers)}"
        self.raw = raw
        raw["kafka"] |= {"brokers": [broker.bootstrap], "group": name, "topic_prefix": name, "session_timeout_s": 6.0}
        raw["checkpoint"] = {"interval_s": 1}
        for source in raw["sources"].values():
            source["merge_wait"] = "30s"  # a busy machine may bring nothing of a partition for a second
        self.config = parse_config(raw)
        self.bootstrap = broker.bootstrap
        create_topics(self.config)
        self.path = folder / f"{name}.yaml"
        self.path.write_text(yaml.safe_dump(raw))
        self.worker = WorkerProcess(raw, folder)

    def run(self, *arguments: str) -> Result:
        """Return what a command prints with the configuration."""
        return CliRunner().invoke(cli, [*arguments, "-c", str(self.path)])

    def records(self, *arguments: str) -> list[dict[str, Any]]:
        """Return what a command prints as JSON, a line each."""
        done = self.run(*arguments, "--json")
        assert done.exit_code == 0, (done.output, done.exception)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def importance(self, model_id: str) -> dict[str, Any]:
        """Return the last importance event of a model."""
        (event,) = self.records("importance", model_id)
        return event

    def importance_until(self, model_id: str, at_most: int) -> dict[str, Any]:
        """Return the last importance event of a model that is of so many observations at most."""
        found = read_all(self.bootstrap, self.config.kafka.topics.importances)
        events = [json.loads(one.value) for one in found if one.key == model_id.encode()]
        last: dict[str, Any] = [event for event in events if event["observation"] <= at_most][-1]
        return last

    @staticmethod
    def most_important(event: dict[str, Any]) -> str:
        """Return the feature that an importance event names first."""
        features = event["features"]
        return max(features, key=lambda name: float(features[name]["importance"]))

    def check_told(self, model_id: str, page: str, n_before: int) -> None:
        """Assert that a change is told soon after n_before observations, and of the feature that the page shows."""
        incidents = self.records("incidents", model_id, "--last", "100")
        (one,) = [one for one in incidents if abs(one["since"]["observation"] - n_before) <= 30]
        (sentence,) = _SENTENCE.findall((PAGES / page).read_text())
        assert one["what"] in ("changed", "worse")
        named = _named(one["sentence"])
        assert named
        assert named <= _named(sentence)

    def changed(self, model_id: str) -> dict[str, float]:
        """Return the features that a model's incidents name, with what each gained as it was said last."""
        gained: dict[str, float] = {}
        for revision in self.records("incidents", model_id, "--revisions", "--last", "100"):
            for feature, change in revision["features"].items():
                if change["significant"]:
                    gained[feature] = change["delta"]
        return gained

    def samples(self, metric: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the series of a metric, of a worker that may be slow to answer."""
        found = wait_for("the worker answers", lambda: self.worker.metrics() or self.worker.exit_code is not None)
        assert isinstance(found, dict), self.worker.log_tail
        return found.get(f"attributary_{metric}", {})

    def by(self, metric: str, *labels: str, **given: str) -> Counter[Any]:
        """Return a metric's sums by one label, or by several, over the series with the given ones."""
        sums: Counter[Any] = Counter()
        for key, value in self.samples(metric).items():
            of_one = dict(key)
            if given.items() <= of_one.items():
                found = tuple(of_one[label] for label in labels)
                sums[found[0] if len(found) == 1 else found] += int(value)
        return +sums

    def wait_accepted(self, n: int) -> None:
        """Wait until n records have been taken from the mapper, and fail with the log where they are not."""

        def taken() -> bool:
            assert self.worker.exit_code is None, self.worker.log_tail
            return self.by("origin_records_total", "outcome")["accepted"] >= n

        try:
            wait_for(f"{n} records are taken", taken, 180)
        except AssertionError as error:
            counts = {name: self.by(name, "outcome") for name in ("origin_records_total", "source_records_total")}
            raise AssertionError(f"{error}\n{counts}\n{self.worker.log_tail}") from None

    def dead_letters(self) -> list[str]:
        """Return the reason of each dead letter."""
        found = read_all(self.bootstrap, self.config.kafka.topics.dead_letters)
        return [dict(one.headers)["attributary-dlq-reason"].decode() for one in found]

    def account(self, model_id: str) -> dict[str, int]:
        """Return what became of a model's observations and labels, by the metrics."""
        labels = self.by("labels_total", "outcome", model_id=model_id)
        expired = self.by("observations_expired_total", "reason", model_id=model_id)
        return {
            **{f"labels_{outcome}": n for outcome, n in labels.items()},
            **{f"expired_{reason}": n for reason, n in expired.items()},
            "observed": self.by("observations_observed_total", "model_id")[model_id],
            "waiting": self.by("observations_waiting", "model_id")[model_id],
            "early": self.by("labels_early", "model_id")[model_id],
        }
