"""Consumes by confluent-kafka, predicts and learns: the loop that one writes by hand."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer

from benchmarks.scale.subjects.common import Steps, Window, encode_event, settings

AT_ONCE = 500


def main() -> None:
    """Run until it is ended."""
    given = settings()
    window, steps = Window(given["first"], given["last"]), Steps(given["model"], given["n_samples"])
    every = given["every"]
    consumer = Consumer(
        {"bootstrap.servers": given["brokers"], "group.id": given["group"], "auto.offset.reset": "earliest"}
    )
    producer = Producer({"bootstrap.servers": given["brokers"]})
    consumer.subscribe([given["topic"]])
    n = 0
    while True:
        for message in consumer.consume(AT_ONCE, 0.05):
            if message.error():
                raise RuntimeError(message.error())
            key, value, offset = message.key(), message.value(), message.offset()
            assert key is not None
            assert value is not None
            assert offset is not None
            found = steps(key, value)
            n += 1
            if every and n % every == 0:
                producer.produce(given["events"], encode_event(offset, found))
                producer.poll(0)
            window.note()


if __name__ == "__main__":
    main()
