"""Endless streams for `attributary demo-stream`, with known drifts.

Their rules change at known observations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

from attributary_topics import InvalidRecordError, decode_json

from ..config.settings import Config
from ..errors import AttributaryError
from ..kafka.observations import encode_value
from ..kafka.readers import topic_reader

N_RULES = 10
"""Agrawal's classification functions, 0 to 9."""

_TAIL = 2000
"""Records at the end of each partition in which the last one of a model is looked for."""


@dataclass(frozen=True)
class DriftStream:
    """Agrawal's credit data for a model, with rules that change.

    Observations and drifts are the same every time.

    Attributes
    ----------
    model_id
        Key of the records.
    rules
        Agrawal's classification functions, one after the other and again from the start. One rule: no drift.
    first, every
        The rule changes at observation `first`, and after every so many from then on. Observations count from 1.
    """

    model_id: str
    rules: tuple[int, ...]
    first: int
    every: int

    @classmethod
    def parse(cls, text: str, *, first: int, every: int) -> DriftStream:
        """Read a stream from `MODEL=RULES`, such as `credit=1,2`.

        Raises
        ------
        AttributaryError
            The text does not have this form, or a rule is none of Agrawal's.
        """
        model_id, separator, rules = text.partition("=")
        known = {str(rule): rule for rule in range(N_RULES)}
        found = [known.get(rule.strip()) for rule in rules.split(",")]
        if not (model_id and separator) or None in found:
            raise AttributaryError(
                f"{text!r} is no stream: say MODEL=RULES, rules being numbers from 0 to {N_RULES - 1}, such as "
                "credit=1,2 (two rules in turn) or loans=1 (no drift)"
            )
        return cls(model_id, tuple(rule for rule in found if rule is not None), first, every)

    def rule(self, observation: int) -> int:
        """Return the rule of the n-th observation."""
        return self.rules[self._segment(observation) % len(self.rules)]

    def drifts_at(self, observation: int) -> bool:
        """Return whether the rule changes at the n-th observation."""
        return observation > 1 and self.rule(observation) != self.rule(observation - 1)

    def values(self, after: int = 0) -> Iterator[bytes]:
        """Yield endlessly the record values after observation number `after`.

        Each has its own number as `observation`, a field beside `x` and `y` that a worker does not read.
        """
        from river.datasets import synth  # takes a second to import: only the producer needs it

        done = after
        for segment in count(self._segment(after + 1)):
            start = 0 if segment == 0 else self.first - 1 + (segment - 1) * self.every
            end = self.first - 1 + segment * self.every
            rule = self.rules[segment % len(self.rules)]
            seed = random.Random(f"{self.model_id}/{segment}").getrandbits(32)
            rows = synth.Agrawal(classification_function=rule, seed=seed)
            for x, y in islice(rows, done - start, end - start):
                done += 1
                yield encode_value({"x": x, "y": y, "observation": done})

    def _segment(self, observation: int) -> int:
        return 0 if observation < self.first else 1 + (observation - self.first) // self.every


async def last_sent(config: Config, streams: list[DriftStream]) -> dict[str, int]:
    """Return the number of each model's last observation in the topic.

    It is 0 where none of the topic's latest records is the model's.

    Raises
    ------
    PreflightError
        The broker cannot be reached or refuses.
    """
    found = dict.fromkeys((stream.model_id for stream in streams), 0)
    async with topic_reader(config.kafka, config.kafka.topics.observations) as reader:
        async for batch in reader.present(last=_TAIL):
            for record in batch:
                model_id = (record.key or b"").decode(errors="replace")
                if model_id in found and (number := _number(record.value)):
                    found[model_id] = max(number, found[model_id])
    return found


def _number(value: bytes | None) -> int:
    try:
        data = decode_json(value or b"")
    except InvalidRecordError:
        return 0
    number = data.get("observation") if isinstance(data, dict) else None
    return number if isinstance(number, int) else 0
