"""The simulated fleet, beside closed forms of one worker, arithmetic of a crash, and what can never be."""

import math
from collections import Counter
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_agents.planning.assignment import assign
from attributary_agents.planning.fleet import Change, Fleet, Sample, Scenario
from attributary_agents.planning.queueing import mean_wait
from attributary_agents.planning.scenarios import large_fleet, packet_of

ONE = Scenario(1, 1, 0.7, 1.0, seconds=20_000.0, checkpoint_s=math.inf, sample_s=20_000.0)


def mean_of(scenario: Scenario) -> float:
    fleet = Fleet(scenario)
    list(fleet.play())
    total, n = fleet.first_waits
    return total / n


@pytest.mark.parametrize("cv2", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("load", [0.3, 0.7])
@pytest.mark.share(2, "load", "cv2")
def test_one_worker_waits_as_pollaczek_and_khinchine_say(load: float, cv2: float) -> None:
    found = [mean_of(replace(ONE, rate=load, service_cv2=cv2, seed=seed)) for seed in range(8)]
    error = stdev(found) / math.sqrt(len(found))
    assert abs(fmean(found) - mean_wait(load, 1.0, cv2)) < 4 * error
    assert error < 0.05 * fmean(found)  # so that the line above can fail


def test_partitions_of_one_worker_are_one_queue() -> None:
    found = [mean_of(replace(ONE, partitions=10, seed=seed)) for seed in range(8)]
    assert abs(fmean(found) - mean_wait(0.7, 1.0)) < 4 * stdev(found) / math.sqrt(8)


def play(scenario: Scenario) -> list[Sample]:
    return list(Fleet(scenario).play())


changes = st.lists(
    st.builds(Change, st.floats(0.5, 30.0), st.sampled_from(["kill", "leave", "join"]), st.integers(0, 6)), max_size=6
)


@settings(max_examples=40)
@given(changes, st.integers(1, 12), st.integers(1, 4), st.integers(1, 5), st.integers(0, 10**6))
def test_nothing_is_lost_made_up_or_negative(
    found: list[Change], partitions: int, workers: int, packet: int, seed: int
) -> None:
    # Numbers of members are those of the first ones, or new.
    numbered = tuple(
        change._replace(worker=100 + n) if change.kind == "join" else change for n, change in enumerate(found)
    )
    scenario = Scenario(
        partitions,
        workers,
        40.0,
        0.01,
        0.5,
        40.0,
        packet,
        checkpoint_s=2.0,
        session_timeout_s=3.0,
        assign_s=0.5,
        restore_s=0.1,
        changes=numbered,
        seed=seed,
    )
    before = None
    for sample in play(scenario):
        assert sample.produced == sample.handled + sample.waiting
        assert min(sample.produced, sample.handled, sample.repeated, sample.waiting, sample.waiting_most) >= 0
        assert sample.waiting_most <= sample.waiting
        assert sample.wait_p50_s is None or 0.0 < sample.wait_p50_s <= (sample.wait_p99_s or 0.0)
        if before is not None:
            assert sample.handled >= before.handled
            assert sample.repeated >= before.repeated
        before = sample


CRASH = Scenario(
    12,
    4,
    1000.0,
    0.002,
    seconds=120.0,
    checkpoint_s=5.0,
    session_timeout_s=20.0,
    assign_s=1.0,
    restore_s=0.25,
    changes=(Change(20.0, "kill", 1),),
)


def test_a_crash_leaves_as_much_as_comes_meanwhile_and_is_caught_up_at_what_is_spare() -> None:
    samples = {round(sample.at_s): sample for sample in play(CRASH)}
    # A quarter of 1000 records/s waits for 20 s: 5000, within three standard deviations of a Poisson count.
    assert abs(samples[40].waiting - 5000) < 3 * math.sqrt(5000) + 50
    # All stop for 1 s, and then restore a partition each for 0.25 s.
    # Three partitions over three members: each has as much to catch up.
    stopped = samples[40].waiting + 1000 * 1.25
    # Three workers handle 1500/s, of which 500/s are spare; what is repeated is at most 5 s of a quarter's records.
    repeated = samples[119].repeated
    assert 0 < repeated <= 250 * 5 + 100
    seconds = (stopped + repeated) / 500
    assert samples[41 + math.ceil(1.3 * seconds)].waiting < 100
    assert samples[41 + math.floor(0.5 * seconds)].waiting > 1000


def test_who_leaves_in_good_order_repeats_nothing() -> None:
    samples = play(replace(CRASH, changes=(Change(20.0, "leave", 1),)))
    assert samples[-1].repeated == 0
    assert samples[-1].members == 3
    assert max(sample.waiting for sample in samples) < 2000  # 1.25 s without anybody, and the lost quarter: no 20 s


def test_nobody_handles_what_a_killed_worker_had_until_it_is_missed() -> None:
    fleet = Fleet(CRASH)
    mine = {partition for partition, owner in fleet.owner.items() if owner == 1}
    for sample in fleet.play():
        has = {partition for partition, owner in fleet.owner.items() if owner == 1}
        assert has == (mine if sample.at_s < 40.0 else set())


def test_without_members_everything_waits_until_one_joins() -> None:
    lonely = replace(CRASH, workers=1, rate=100.0, changes=(Change(10.0, "kill", 0), Change(60.0, "join", 5)))
    samples = {round(sample.at_s): sample for sample in play(lonely)}
    assert samples[59].handled == samples[11].handled
    assert samples[119].waiting < 100


@given(st.integers(1, 60), st.integers(1, 9), st.sets(st.integers(0, 8), max_size=8), st.integers(0, 3))
def test_shares_are_even_and_as_few_as_possible_move(partitions: int, members: int, gone: set[int], new: int) -> None:
    before = assign(partitions, list(range(members)), {})
    left = [member for member in range(members) if member not in gone] + [100 + n for n in range(new)]
    if not left:
        return
    after = assign(partitions, left, before)
    assert list(after) == list(range(partitions))
    counts = Counter(after.values())
    shares = sorted(counts.get(member, 0) for member in left)
    assert shares[-1] - shares[0] <= 1
    # The most that can stay: each member keeps what it had, up to a share; larger shares go to those that have most.
    had = sorted((sum(owner == member for owner in before.values()) for member in left), reverse=True)
    least, more = divmod(partitions, len(left))
    most = sum(min(n, least + (place < more)) for place, n in enumerate(had))
    assert sum(before[partition] == owner for partition, owner in after.items()) == most


def test_a_thousand_partitions_on_a_hundred_workers_are_caught_up() -> None:
    scenario = replace(large_fleet(), packet=2000)  # fewer packets: this is about the group
    samples = play(scenario)
    assert scenario.partitions == 1000
    assert min(sample.members for sample in samples) == 87
    assert samples[-1].members == 97
    assert samples[-1].repeated > 0
    assert samples[-1].waiting < 0.1 * max(sample.waiting for sample in samples)


def test_a_simulation_has_so_many_packets_at_most() -> None:
    assert packet_of(100.0, 10.0) == 1
    assert 1e6 * 100.0 / packet_of(1e6, 100.0) <= 400_000
