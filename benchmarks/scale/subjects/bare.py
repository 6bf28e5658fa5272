"""Runs a Faust agent that does nothing, with the worker's settings of Faust: what the framework takes by itself."""

from __future__ import annotations

import sys
from typing import Any

import faust

from benchmarks.scale.subjects.common import Window, settings


def main() -> None:
    """Run until it is ended."""
    given = settings()
    window = Window(given["first"], given["last"])
    app = faust.App(
        given["group"],
        broker=f"kafka://{given['brokers']}",
        store="memory://",
        datadir=given["folder"],
        topic_partitions=given["partitions"],
        topic_disable_leader=True,
        topic_allow_declare=False,
        web_enabled=False,
        stream_wait_empty=False,
        stream_buffer_maxsize=256,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=4_000_000,
        broker_max_poll_records=1000,
        broker_commit_every=2**31 - 1,
        worker_redirect_stdouts=False,
    )
    topic = app.topic(given["topic"], key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def nothing(stream: Any) -> None:
        async for _event in stream.noack().events():
            window.note()

    app.agent(topic)(nothing)
    sys.argv = ["bare", "worker", "--without-web", "-l", "error"]
    app.main()


if __name__ == "__main__":
    main()
