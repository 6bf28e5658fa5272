"""What `topics create` does on three healthy nodes of Kafka.

python -m benchmarks.cluster topics --times 50
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from aiokafka.admin import AIOKafkaAdminClient
from click.testing import CliRunner
from support.cluster import KafkaCluster

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.kafka.topics import topic_specs


class Outcome(NamedTuple):
    """How a command ended, what it said and how long it took."""

    code: int
    said: str
    seconds: float


def create_once(cluster: KafkaCluster, folder: Path, name: str) -> Outcome:
    """Run `attributary topics create` for topics that no broker has heard of, and delete them."""
    raw = {
        "kafka": {"brokers": cluster.brokers, "group": name, "topic_prefix": name},
        "models": {"credit": {"model": {"class": "river.naive_bayes.GaussianNB"}}},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(raw))
    began = time.perf_counter()
    done = CliRunner().invoke(cli, ["topics", "create", "-c", str(path)])
    seconds = time.perf_counter() - began
    asyncio.run(_delete(cluster, [spec.name for spec in topic_specs(parse_config(raw))]))
    return Outcome(done.exit_code, f"{done.output}{done.exception or ''}", seconds)


async def _delete(cluster: KafkaCluster, names: list[str]) -> None:
    # So that the fiftieth run meets the same cluster as the first one.
    admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    await admin.start()
    try:
        await admin.delete_topics(names)
    finally:
        await admin.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Create topics on three healthy nodes, again and again; return 0 where it worked every time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster topics", description=__doc__)
    parser.add_argument("--times", type=int, default=50, help="how often, with other names each time (default 50)")
    times: int = parser.parse_args(argv).times
    with tempfile.TemporaryDirectory() as name, KafkaCluster(Path(name) / "cluster") as cluster:
        outcomes = []
        for n in range(1, times + 1):
            outcomes.append(create_once(cluster, Path(name), f"fresh{n}"))
            if outcomes[-1].code:
                print(f"run {n}: exit {outcomes[-1].code}: {outcomes[-1].said}", flush=True)
    good = sum(one.code == 0 for one in outcomes)
    seconds = sorted(one.seconds for one in outcomes)
    print(
        f"topics create on three healthy nodes: {good} of {times} end with 0; "
        f"{seconds[len(seconds) // 2]:.1f} s in the middle, {seconds[-1]:.1f} s at most"
    )
    return 0 if good == times else 1
