"""Consumes by quixstreams, predicts and learns."""

from __future__ import annotations

from typing import Any

from quixstreams import Application

from benchmarks.scale.subjects.common import Steps, Window, settings


def main() -> None:
    """Run until it is ended."""
    given = settings()
    window, steps = Window(given["first"], given["last"]), Steps(given["model"], given["n_samples"])
    app = Application(
        broker_address=given["brokers"],
        consumer_group=given["group"],
        auto_offset_reset="earliest",
        loglevel="ERROR",
        state_dir=given["folder"],
    )
    topic = app.topic(given["topic"], key_deserializer="bytes", value_deserializer="bytes")

    def take(value: bytes, key: Any, _timestamp: int, _headers: Any) -> None:
        steps(key, value)
        window.note()

    app.dataframe(topic).update(take, metadata=True)
    app.run()


if __name__ == "__main__":
    main()
