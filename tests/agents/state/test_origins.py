"""Which mapped records are taken: exact over any history of kills, losses, zombies and repeats, by random histories."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import hypothesis
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.state import deduplication as module
from attributary_agents.state.deduplication import Origins
from attributary_topics.origins import Origin, OriginPlace, decode_origin

TARGETS = 3
Told = list[tuple[int, int]]


@dataclass
class Run:
    """One life of a mapper: where it is, and what it has sent that nobody has acknowledged."""

    began: int
    at: int
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)
    under_way: list[tuple[int, Origin]] = field(default_factory=list)
    lost: int | None = None

    def send(self, targets: Sequence[int]) -> None:
        """Map the next record: one for each of the targets."""
        for n, target in enumerate(targets):
            before = self.sent.get(target)
            previous, previous_n = (self.began, 0) if before is None else before
            self.under_way.append((target, Origin("t", 0, self.at, n, before is None, previous, previous_n)))
            self.sent[target] = (self.at, n)
        self.at += 1

    def arrive(self, rng: random.Random, topic: list[list[Origin]], *, in_order: bool) -> None:
        """Let some of what is under way arrive, or be lost for good; what is behind a lost one may still arrive."""
        held: set[int] = set()
        for item in list(self.under_way):
            target, origin = item
            chance = rng.random()
            if target in held:
                continue
            if chance >= 0.43:
                held |= {target} if in_order else set()
                continue
            self.under_way.remove(item)
            if chance < 0.4:
                topic[target].append(origin)
            else:
                self.lost = origin.offset if self.lost is None else min(self.lost, origin.offset)

    @property
    def done(self) -> int:
        """Below it all is acknowledged."""
        return min(
            [self.at, *(origin.offset for _, origin in self.under_way), *([self.lost] * (self.lost is not None))]
        )


def history(seed: int, *, in_order: bool = True) -> tuple[list[list[Origin]], list[Told]]:
    """What up to three mappers at once leave on the partitions of ours, and what has to be taken of it."""
    rng = random.Random(seed)
    mapped = [rng.choices(range(TARGETS), k=rng.choice((0, 1, 1, 1, 2, 3))) for _ in range(rng.randint(5, 40))]
    topic: list[list[Origin]] = [[] for _ in range(TARGETS)]
    committed, runs = 0, list[Run]()
    while committed < len(mapped):
        if not runs or (len(runs) < 3 and rng.random() < 0.1):
            runs.append(Run(committed, committed))
        run = rng.choice(runs)
        if rng.random() < 0.05:  # killed
            for target, origin in run.under_way:
                if rng.random() < 0.5:
                    break
                topic[target].append(origin)
            runs.remove(run)
            continue
        if run.at < len(mapped) and run.lost is None:
            run.send(mapped[run.at])
        run.arrive(rng, topic, in_order=in_order)
        if rng.random() < 0.3:
            committed = run.done  # of a zombie it may be behind what is committed already
        if run.lost is not None and not run.under_way:
            runs.remove(run)
    wanted: list[Told] = [[] for _ in range(TARGETS)]
    for offset, targets in enumerate(mapped):
        for n, target in enumerate(targets):
            wanted[target].append((offset, n))
    return topic, wanted


def taken(origins: Origins, told: Sequence[Origin]) -> Told:
    return [(origin.offset, origin.n) for origin in told if origins.takes(origin) == "accepted"]


def is_exact(seed: int, change: Callable[[Origin], Origin] = lambda origin: origin, *, in_order: bool = True) -> bool:
    topic, wanted = history(seed, in_order=in_order)
    return [taken(Origins(), [change(origin) for origin in told]) for told in topic] == wanted


SEEDS = st.integers(0, 2**32)


@pytest.mark.long
@hypothesis.settings(max_examples=2000)
@given(SEEDS)
def test_each_record_of_an_origin_is_taken_once_and_in_order_whatever_mappers_do(seed: int) -> None:
    assert is_exact(seed)


def finds_a_counterexample(is_right: Callable[[int], bool]) -> bool:
    settings = hypothesis.settings(
        max_examples=2000, database=None, derandomize=True, phases=[hypothesis.Phase.generate]
    )
    try:
        hypothesis.find(SEEDS, lambda seed: not is_right(seed), settings=settings)
    except hypothesis.errors.NoSuchExample:
        return False
    return True


def test_without_what_was_sent_before_the_rule_would_not_hold() -> None:
    assert finds_a_counterexample(lambda seed: is_exact(seed, lambda origin: replace(origin, is_first=True)))


def test_without_the_number_of_what_was_sent_before_the_rule_would_not_hold() -> None:
    assert finds_a_counterexample(lambda seed: is_exact(seed, lambda origin: replace(origin, previous_n=0)))


def test_with_a_producer_that_reorders_the_rule_would_not_hold() -> None:
    assert finds_a_counterexample(lambda seed: is_exact(seed, in_order=False))


@hypothesis.settings(max_examples=300)
@given(SEEDS, st.data())
def test_a_worker_that_goes_on_from_a_checkpoint_takes_the_same(seed: int, data: st.DataObject) -> None:
    topic, wanted = history(seed)
    told = topic[0]
    cut = data.draw(st.integers(0, len(told)))
    before = Origins()
    first = taken(before, told[:cut])
    stored = orjson.loads(orjson.dumps(before.encode()))
    assert before.copy() == before
    taken(before, told[cut:])  # a worker that is killed here; the next one decides again from what is stored
    after = Origins.decode(stored)
    assert first + taken(after, told[cut:]) == wanted[0]
    assert after == before


def origin(offset: int, previous: int | None, *, n: int = 0, place: str = "t:0") -> Origin:
    kind = "s:0" if previous is None else f"r:{previous}"
    return decode_origin(f"{place}:{offset}:{n}:{kind}".encode())


class TestGap:
    """Records of our own topic that are gone: by retention, in a batch that cannot be read, with a lost checkpoint."""

    def test_without_one_what_comes_before_is_waited_for(self) -> None:
        origins = Origins()
        assert [origins.takes(origin(7, 5)), origins.takes(origin(8, 7))] == ["early", "early"]

    def test_behind_it_the_first_of_each_origin_partition_is_taken_and_then_all_is_as_before(self) -> None:
        origins = Origins()
        origins.takes(origin(1, None))
        origins.takes(origin(1, None, place="t:1"))
        origins.note_gap()
        said = [origins.takes(one) for one in (origin(7, 5), origin(9, 8), origin(1, None), origin(8, 7))]
        assert said == ["accepted", "early", "repeat", "accepted"]
        again = Origins.decode(orjson.loads(orjson.dumps(origins.encode())))
        assert [again.takes(origin(4, 3, place="t:1")), again.takes(origin(6, 5, place="t:1"))] == ["accepted", "early"]


def test_nothing_is_stored_of_a_partition_without_mapped_records() -> None:
    assert Origins().encode() == {}
    assert Origins.decode({}) == Origins()


def test_a_run_of_reading_again_has_positions_of_its_own() -> None:
    origins = Origins()
    assert origins.takes(origin(5, None)) == "accepted"
    assert origins.takes(origin(0, None, place="t@1:0")) == "accepted"
    assert origins.takes(origin(5, None)) == "repeat"
    assert set(origins.last) == {OriginPlace("t", 0), OriginPlace("t@1", 0)}
    assert origins.counts == Counter(accepted=2, repeat=1)


def test_foreign_headers_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PLACES", 2)
    origins = Origins()
    for number in range(2):
        origins.takes(origin(0, None, place=f"t{number}:0"))
    with pytest.raises(OverflowError):
        origins.takes(origin(0, None, place="t2:0"))
    assert origins.takes(origin(1, 0, place="t1:0")) == "accepted"
