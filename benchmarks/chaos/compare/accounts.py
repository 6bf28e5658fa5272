"""Whether every record of topics that are not ours is accounted for, to the unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from support.kafka import read_all
from support.states import Stored, stored

from attributary_agents.config.settings import Config
from attributary_explainers.monitor.joiner import Joiner
from benchmarks.chaos.compare.compare import is_of_mapper
from benchmarks.chaos.lab.attached import PARTITIONS, fate
from benchmarks.chaos.lab.lab import Check

_DEAD, _PASSED = "dead letter", "passed over"


def accounts(bootstrap: str, config: Config) -> Iterator[Check]:
    """Check that each visit and outcome is taken once, passed over or a dead letter, and that labels balance."""
    prefix, found = config.kafka.topic_prefix, stored(config)
    records = {name: read_all(bootstrap, f"{prefix}-{name}") for name in PARTITIONS}
    wanted = {name: Counter(fate(name, one.value) for one in ones) for name, ones in records.items()}
    yield _taken(found, wanted)
    yield from _of_models(found, wanted)
    bad = {
        f"{prefix}-{name}:{one.partition}:{one.offset}": one.value
        for name, ones in records.items()
        for one in ones
        if fate(name, one.value) == _DEAD
    }
    yield _letters(read_all(bootstrap, config.kafka.topics.dead_letters), bad)


def _taken(found: Stored, wanted: dict[str, Counter[str]]) -> Check:
    counts = sum((counters.origins.counts for counters, _ in found.checkpoints.values()), Counter[str]())
    usable = sum(n for one in wanted.values() for what, n in one.items() if what not in (_DEAD, _PASSED))
    total = sum(one.total() for one in wanted.values())
    passed, dead = (sum(one[what] for one in wanted.values()) for what in (_PASSED, _DEAD))
    return Check(
        "every record of the sources is taken once",
        counts["accepted"] == usable,
        f"{total} = {counts['accepted']} accepted + {passed} passed over + {dead} dead letters; "
        f"{counts['repeat']} repeats and {counts['early']} early ones dropped",
    )


def _of_models(found: Stored, wanted: dict[str, Counter[str]]) -> Iterator[Check]:
    ids = (wanted["visits"].keys() | wanted["outcomes"].keys()) - {_DEAD, _PASSED}
    joiners = {name: state.late.labels for name, state in found.models.items() if state.late and state.late.labels}
    faults, total = [], Counter[str]()
    for name in sorted(ids):
        if (joiner := joiners.get(name)) is None:
            faults.append(f"{name} has no state")
            continue
        total.update(vars(joiner.counts) | {"waiting": joiner.n_waiting, "early": joiner.n_early})
        seen, due = joiner.counts.observed, wanted["visits"][name]
        if seen != due:
            faults.append(f"{name}: {seen} observed of {due}")
        if joiner.counts.labels != wanted["outcomes"][name]:
            faults.append(f"{name}: {joiner.counts.labels} labels of {wanted['outcomes'][name]}")
        faults += [f"{name}: {fault}" for fault in unbalanced(joiner)]
    said = (
        f"{total['observed']} = {total['joined']} + {total['waiting']} + {total['expired_ttl']} "
        f"+ {total['expired_cap']}; "
        f"{total['labels']} = {total['joined']} + {total['early']} + {total['orphaned']} + {total['duplicate']} "
        f"+ {total['late']}, in {len(ids)} models"
    )
    yield Check(
        "observed = joined + waiting + expired, labels = joined + early + orphaned + duplicate + late",
        not faults,
        "; ".join(faults[:5]) or said,
    )
    least = 0.8 * total["observed"]
    kinds = ("expired_ttl", "orphaned", "duplicate", "late")
    missed = [kind for kind in kinds if not total[kind]]
    yield Check(
        "most labels find their observation, and some of each kind do not",
        total["joined"] > least and not missed,
        f"{total['joined']} of {total['observed']} joined" + (f"; none {', '.join(missed)}" if missed else ""),
    )


def unbalanced(joiner: Joiner) -> list[str]:
    """Say which accounts of observations and labels do not balance."""
    counts = joiner.counts
    ends = counts.joined + joiner.n_waiting + counts.expired_ttl + counts.expired_cap
    labels = counts.joined + joiner.n_early + counts.orphaned + counts.duplicate + counts.late
    return [
        f"{what} {n}, accounted for {accounted}"
        for what, n, accounted in (("observed", counts.observed, ends), ("labels", counts.labels, labels))
        if n != accounted
    ]


def _letters(records: list[Any], bad: dict[str, bytes | None]) -> Check:
    """Whether the mapper's dead letters are those of the bad records, each at least once, duplicates equal."""
    found: dict[str, tuple[Any, Any]] = {}
    faults, n = [], 0
    for record in filter(is_of_mapper, records):
        n += 1
        name = dict(record.headers)["attributary-dlq-id"].decode()
        letter = record.value, tuple(record.headers)
        if found.setdefault(name, letter) != letter:
            faults.append(f"{name} came twice with other bytes")
    faults += [f"{name} is missing" for name in bad.keys() - found.keys()]
    faults += [f"{name} should not be" for name in found.keys() - bad.keys()]
    faults += [f"{name} has another value" for name in bad.keys() & found.keys() if bad[name] != found[name][0]]
    said = f"{len(bad)}, {n - len(found)} duplicates equal in every byte"
    return Check("dead letters of the mapper", not faults, "; ".join(faults[:3]) or said)
