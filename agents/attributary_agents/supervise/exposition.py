"""Merges what several workers of one machine export into one exposition, in which each series stands once.

Series of models and of partitions stay as they are: whichever worker has the model exports the same ones. While one
moves two may show it, and then those of the worker that is further on count, as a whole. All other series are of a
process, and get the label `worker`.

`prometheus_client`'s own way to merge processes adds up files of counters; ours are read off live state at each scrape,
and move between processes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

_HEAD = re.compile(r"# (?:HELP|TYPE|UNIT) (\S+)")
_NAME = re.compile(r"[^\s{]+")
_VALUE = re.compile(r'[^\s{]+(?:\{(?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+\})? (\S+)')
# In a label's value each quote stands behind a backslash, so that this matches no value.
_MODEL = re.compile(r'[{,]model_id="((?:[^"\\]++|\\.)*+)"')
_PARTITION = re.compile(r'[{,]partition="([^"]*)".*[{,]topic="([^"]*)"')
_PROGRESS = ("attributary_model_observations_total{", "attributary_records_consumed_total{")
"""Counters by which it is known whose model, and whose partition, is further on."""

END = "# EOF"
"""Last line of an exposition in the OpenMetrics format."""

Owned = tuple[str, ...]
"""What series can move with: a model, (id,), or a partition, (number, topic)."""


_Sample = tuple[int, Owned | None, str]
"""The worker that exports a series, what the series can move with, if anything, and its line."""


def merge(expositions: Mapping[int, str]) -> str:
    """Return the merged exposition, without `END`.

    Parameters
    ----------
    expositions
        Number of each worker to its exposition, all of one format: Prometheus' text or OpenMetrics.
    """
    heads: dict[str, list[str]] = {}
    samples: defaultdict[str, list[_Sample]] = defaultdict(list)
    progress: defaultdict[Owned, dict[int, float]] = defaultdict(dict)
    """How far each worker is that shows a model or a partition."""
    for worker, text in expositions.items():
        family = ""
        first: set[str] = set()
        for line in text.split("\n"):
            if line.startswith("#"):
                if head := _HEAD.match(line):
                    family = head[1]
                    if family not in heads:
                        heads[family] = []
                        first.add(family)
                    if family in first:
                        heads[family].append(line)
            elif line:
                if (owned := _owned(line)) is None:
                    samples[family].append((worker, None, _of_worker(worker, line)))
                    continue
                samples[family].append((worker, owned, line))
                shown = progress[owned]
                if line.startswith(_PROGRESS) and (found := _VALUE.match(line)):
                    shown[worker] = float(found[1])
                elif worker not in shown:
                    shown[worker] = -1.0
    shown_by = {owned: min(of, key=lambda worker: (-of[worker], worker)) for owned, of in progress.items()}
    return "".join(f"{line}\n" for line in _lines(heads, samples, shown_by))


def _lines(
    heads: Mapping[str, list[str]], samples: Mapping[str, list[_Sample]], shown_by: Mapping[Owned, int]
) -> Iterator[str]:
    for family, lines in heads.items():
        yield from lines
        for worker, owned, line in samples.get(family, ()):
            if owned is None or shown_by[owned] == worker:
                yield line


def _owned(line: str) -> Owned | None:
    """Return what a series belongs to, by its labels; None for a process."""
    if model := _MODEL.search(line):
        return (model[1],)
    if partition := _PARTITION.search(line):
        return partition[1], partition[2]
    return None


def _of_worker(worker: int, line: str) -> str:
    """Return the sample with the label `worker`."""
    named = _NAME.match(line)
    end = named.end() if named else 0
    label = f'worker="{worker}"'
    if line[end : end + 1] == "{":
        return f"{line[:end]}{{{label},{line[end + 1 :]}"
    return f"{line[:end]}{{{label}}}{line[end:]}"
