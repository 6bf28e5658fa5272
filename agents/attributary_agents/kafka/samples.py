"""Samples of each model's last observations, for a rehearsal."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from ..config.settings import Config
from .reading import topic_reader

MOST = 20_000
"""Offsets at the end of each partition beyond which nothing is read."""

_FURTHER = 4


async def read_sample(config: Config, model_ids: Collection[str], n: int) -> dict[str, list[bytes]]:
    """Return the values of each model's last observations, by model id.

    They are in the order of their partition. Reads from further and further back until each model has its records, up
    to `MOST` offsets of each partition.

    Parameters
    ----------
    n
        Records of each model; fewer where the ends of the partitions have fewer.

    Raises
    ------
    PreflightError
        The brokers cannot be reached.
    """
    last, n_before = min(n * len(config.models), MOST), -1
    async with topic_reader(config.kafka, config.kafka.topics.observations) as reader:
        while True:
            found: dict[str, deque[bytes]] = {model_id: deque(maxlen=n) for model_id in model_ids}
            n_read = 0
            async for batch in reader.present(last):
                n_read += len(batch)
                for record in batch:
                    model_id = config.finder.id_of_key(record.key) or ""
                    for name in {model_id, config.finder.template_of(model_id) or model_id} & found.keys():
                        found[name].append(record.value or b"")
            is_full = all(len(values) == n for values in found.values())
            if is_full or last == MOST or n_read == n_before:  # the last: there is nothing further back
                return {model_id: list(values) for model_id, values in found.items()}
            last, n_before = min(_FURTHER * last, MOST), n_read
