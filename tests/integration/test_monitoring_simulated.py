"""Hours of the demo's streams in seconds: what the shipped rules say of a stream that drifts, and of one that does not.

A worker's own parts explain one observation per simulated second; its Collector is read as by a scrape every 15 s; and
`promtool test rules` evaluates every shipped rule over that, with its own clock. Two hours and not half an hour, as
some rules compare with an hour ago.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest
import yaml
from support.compose import Compose, image_environment
from support.monitoring import promtool

from attributary_agents.config.reading import load_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.endless_stream import DriftStream
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_agents.worker.view import PartitionView, WorkerView

pytestmark = [pytest.mark.long, pytest.mark.prometheus, pytest.mark.timeout(600)]
SCRAPE_S = 15
AREAS = ("incident", "quality")
COMPOSE = Compose()
RULES = sorted(COMPOSE.on_host("prometheus", "/etc/prometheus/rules").glob("*.yml"))
FIRST, EVERY = int(COMPOSE.env["FIRST_DRIFT"]), int(COMPOSE.env["DRIFT_EVERY"])


def test_a_stream_without_drift_raises_no_alert_in_two_hours(tmp_path: Path) -> None:
    assert raised(tmp_path, COMPOSE.env["LOANS_STREAM"], hours=2) == {}


def test_a_stream_with_drift_raises_one_alert_when_it_is_confirmed_until_it_is_over(tmp_path: Path) -> None:
    found = raised(tmp_path, COMPOSE.env["CREDIT_STREAM"], hours=2)
    assert found.keys() == {"AttributaryModelIncident"}
    first, *_, last = minutes = found["AttributaryModelIncident"]
    assert minutes == [*range(first, last + 1)], "it does not flap"
    # A window of 1000 observations from the onset on, and one observation is one second.
    assert FIRST + 1000 <= 60 * first <= FIRST + 1500
    assert last < 119


def raised(folder: Path, stream: str, *, hours: float) -> dict[str, list[int]]:
    """Alert to the minutes at which it fires; of the alerts about models."""
    config = load_config(COMPOSE.on_host("worker-1", image_environment()["ATTRIBUTARY_CONFIG"]))
    series = scraped(config, DriftStream.parse(stream, first=FIRST, every=EVERY), int(3600 * hours))
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    rules = [rule for group in groups for rule in group["rules"]]
    alerts = [rule["alert"] for rule in rules if rule.get("labels", {}).get("area") in AREAS]
    assert len(alerts) == 4
    minutes = range(1, int(60 * hours))
    test = {
        "rule_files": [str(path) for path in RULES],
        "evaluation_interval": f"{SCRAPE_S}s",
        "tests": [
            {
                "interval": f"{SCRAPE_S}s",
                "input_series": [{"series": name, "values": " ".join(values)} for name, values in series.items()],
                "alert_rule_test": [
                    {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": []}
                    for minute in minutes
                    for alert in alerts
                ],
            }
        ],
    }
    path = folder / "test.yml"
    path.write_text(yaml.safe_dump(test))
    done = promtool("test", "rules", path)
    said = done.stdout + done.stderr
    found: dict[str, list[int]] = {}
    # Of each alert that fires and was expected not to, at each time: its name, and the time as Go writes it.
    for alert, hour, minute in re.findall(r"alertname: ?(\w+), time: ?(?:(\d+)h)?(\d+)m", said):
        found.setdefault(alert, []).append(60 * int(hour or 0) + int(minute))
    assert (done.returncode == 0) == (not found), said[-3000:]
    return found


def scraped(config: Config, stream: DriftStream, n: int) -> dict[str, list[str]]:
    """Series to its values, one per scrape, `_` where it is absent."""
    topic = config.kafka.topics.observations
    partition = Partition(topic, 0, config, lambda _key: None)
    collector = AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))
    series: dict[str, list[str]] = {}
    for i, value in enumerate(islice(stream.values(), n)):
        partition.handle(Record(topic, 0, i, 1000 * i, stream.model_id.encode(), value))
        if i % SCRAPE_S == 0:
            for family in collector.collect():
                for sample in family.samples:
                    labels = {**sample.labels, "job": "attributary", "instance": "worker-1:6066"}
                    pairs = [f'{key}="{labels[key]}"' for key in sorted(labels)]
                    name = f"{sample.name}{{{','.join(pairs)}}}"
                    values = series.setdefault(name, [])
                    values += ["_"] * (i // SCRAPE_S - len(values)) + [repr(float(sample.value))]
    return series
