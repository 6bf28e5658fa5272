"""Which revisions are sent, what is remembered, and what is committed and counted when a partition changes hands."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_agents.config.reading import parse_config
from attributary_agents.kafka.readers import MOST_NOTE_BYTES, GroupFollower
from attributary_agents.serve.webhooks import target as target_module
from attributary_agents.serve.webhooks import webhooks as webhooks_module
from attributary_agents.serve.webhooks.target import rank
from attributary_agents.serve.webhooks.webhooks import KNOWN, NOTED, Memory, RevisionFilter, Webhooks, read_revision
from attributary_explainers.incidents.words import DID_TOGETHER
from attributary_topics import SEVERITIES, WHATS
from tests.agents.serve.webhooks.made import event, record

QUEUE = 60
MODEL = {"model": {"class": "river.linear_model.LogisticRegression"}, "features": {"a": "number"}}


class Group:
    """Stands in for a group: notes what is committed, and refuses where it is told to."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.answers_after_s = 0.0
        self.committed: list[tuple[int, int, str]] = []
        self.sent_before: list[int] = []
        self.receiver: list[httpx.Request] = []

    async def take(self, partition: int, offset: int, note: str) -> bool:
        self.sent_before.append(len(self.receiver))
        await asyncio.sleep(0.01)  # time enough to send too early
        if not self.refuses:
            self.committed.append((partition, offset, note))
        return not self.refuses

    def has(self, partition: int) -> bool:
        return not self.refuses

    async def answer(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(self.answers_after_s)
        self.receiver.append(request)
        return httpx.Response(404 if "broken" in str(request.url) else 200)

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(request.url.path[1:], request.headers["webhook-id"]) for request in self.receiver]


def webhooks(group: Group, *names: str, **severities: str) -> Webhooks:
    targets = {**dict.fromkeys(names, "info"), **severities}
    hooks = {name: {"url": f"http://x/{name}", "severity": least} for name, least in targets.items()}
    if "chat" in hooks:
        hooks["chat"]["format"] = "text"
    serve = {"webhooks": hooks}
    config = parse_config({"models": {"bank": MODEL}, "serve": serve})
    return Webhooks(config, transport=httpx.MockTransport(group.answer), first_s=0.001)


async def take(hooks: Webhooks, group: Group, *batches: list[Any], at_once: bool = False) -> None:
    """Let batches come, at once or one after the other, wait until all is sent, and commit what has become of it."""
    senders = [asyncio.create_task(target.run()) for target in hooks._targets.values()]
    for polled in [batches] if at_once else [(batch,) for batch in batches]:
        await hooks._take(cast(GroupFollower, group), *polled)
    while not all(target.is_idle for target in hooks._targets.values()):
        await asyncio.sleep(0.001)
    await hooks._note_outcomes(cast(GroupFollower, group))
    for sender in senders:
        sender.cancel()


def test_an_event_is_committed_before_it_is_sent_and_its_end_afterwards() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "ops")
        hooks._assigned(0, 5, "")
        await take(hooks, group, [record(5), record(6, life="suspected")])
        assert [(partition, offset) for partition, offset, _ in group.committed] == [(0, 7), (0, 7)]
        assert [dict(Memory(note).unsettled) for *_, note in group.committed] == [{"ops": 1}, {}]
        assert group.sent_before == [0, 1]
        assert group.told == [("ops", "bank:obs:0:5:1")]

    asyncio.run(run())


def test_each_address_is_told_of_what_is_severe_enough() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, all="info", some="warning", few="critical")
        hooks._assigned(0, 0, "")
        severities = ["info", "warning", "critical"]
        await take(hooks, group, [record(n, severity=severity) for n, severity in enumerate(severities)])
        told = {name: [int(key.split(":")[3]) for to, key in group.told if to == name] for name in hooks._targets}
        assert told == {"all": [0, 1, 2], "some": [1, 2], "few": [2]}

    asyncio.run(run())


def test_one_drift_is_two_messages() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "ops")
        hooks._assigned(0, 0, "")
        lives = ["suspected", "confirmed", "over"]
        await take(hooks, group, [record(n, incident_id="one", life=life) for n, life in enumerate(lives)])
        assert [json.loads(request.content)["data"]["life"] for request in group.receiver] == ["confirmed", "over"]

    asyncio.run(run())


def test_models_that_change_together_are_one_text_also_from_several_partitions() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "chat")
        stores = [
            record(0, partition=n, model_id=f"store-{n}", what="changed", features={"price": {}}) for n in range(8)
        ]
        for n in range(8):
            hooks._assigned(n, 0, "")
        alone = record(1, partition=7, model_id="bank", what="changed", features={"age": {}})
        await take(hooks, group, *([one] for one in stores[:7]), [stores[7], alone], at_once=True)
        several, one = (json.loads(request.content)["text"] for request in group.receiver)
        assert several.splitlines()[0] == "🟠 8 models changed together at 11:40 UTC: price"
        assert one.startswith("🟠 bank is worse\n")
        (count,) = hooks.counts()
        assert count.sent == 9
        assert not any(dict(Memory(note).unsettled) for *_, note in group.committed[-8:])

    asyncio.run(run())


def test_a_model_is_told_of_in_its_order_whatever_others_do() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "chat")
        hooks._assigned(0, 0, "")
        a, b = {"model_id": "a", "headline": "a"}, {"model_id": "b", "headline": "b"}
        sent = [record(0, **a), record(1, **b, life="over"), record(2, **b), record(3, **a)]
        await take(hooks, group, sent)
        said = [json.loads(request.content)["text"].splitlines()[0] for request in group.receiver]
        assert said == ["🟠 a", "⚪ b", "🟠 2 models became worse together at 11:40 UTC"]

    asyncio.run(run())


def test_an_event_that_the_topic_has_twice_is_sent_once_also_by_the_next_process() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "ops")
        hooks._assigned(0, 0, "")
        twice = [record(0), record(1, event_id="again"), record(2, event_id="again")]
        await take(hooks, group, twice)
        assert [key for _, key in group.told] == ["bank:obs:0:0:1", "again"]
        following = webhooks(group, "ops")
        following._assigned(0, 3, group.committed[-1][2])
        await take(following, group, [record(3, event_id="again"), record(4)])
        assert [key for _, key in group.told][2:] == ["bank:obs:0:4:1"]

    asyncio.run(run())


def test_what_is_not_known_to_be_committed_is_not_sent_and_is_new_when_it_comes_again() -> None:
    async def run() -> None:
        group = Group(refuses=True)
        hooks = webhooks(group, "ops")
        hooks._assigned(0, 0, "")
        await take(hooks, group, [record(0)])
        assert group.told == []
        group.refuses = False
        await take(hooks, group, [record(0)])
        assert group.told == [("ops", "bank:obs:0:0:1")]
        assert dict(Memory(group.committed[-1][2]).unsettled) == {}

    asyncio.run(run())


def test_an_address_that_refuses_holds_up_no_other() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "broken", "ops")
        hooks._assigned(0, 0, "")
        await take(hooks, group, [record(0), record(1)])
        assert [(one.name, one.sent, one.failed, one.last_failure) for one in hooks.counts()] == [
            ("broken", 0, 2, "bank:obs:0:1:1: it answers 404"),
            ("ops", 2, 0, None),
        ]

    asyncio.run(run())


def test_a_backlog_waits_for_room_behind_an_address_that_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "QUEUE", QUEUE)

    async def run() -> None:
        group = Group()
        group.answers_after_s = 0.002
        hooks = webhooks(group, "ops")
        hooks._assigned(0, 0, "")
        n = 3 * QUEUE
        await take(hooks, group, *([record(at) for at in range(begin, begin + 20)] for begin in range(0, n, 20)))
        (count,) = hooks.counts()
        assert (count.sent, count.failed) == (n, 0)

    asyncio.run(run())


def test_a_backlog_does_not_wait_for_an_address_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_module, "ROOM_WITHIN_S", 0.0)
    monkeypatch.setattr(target_module, "QUEUE", QUEUE)

    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "broken")
        hooks._assigned(0, 0, "")
        for begin in range(0, QUEUE + 40, 20):  # nobody sends meanwhile
            await hooks._take(cast(GroupFollower, group), [record(at) for at in range(begin, begin + 20)])
        assert hooks.counts()[0].failed == 40
        assert group.committed[-1][1] == QUEUE + 40

    asyncio.run(run())


def test_what_a_server_that_has_ended_had_under_way_is_counted_once() -> None:
    async def run() -> None:
        group = Group()
        note = Memory().note("another", {"ops": 2, "removed": 4})
        hooks = webhooks(group, "ops")
        hooks._assigned(0, 9, note)
        (count,) = hooks.counts()
        assert (count.sent, count.failed) == (0, 2)
        assert count.last_failure is not None
        assert count.last_failure.startswith("2 events: taken by a server that has ended")
        await take(hooks, group)
        assert [(partition, offset) for partition, offset, _ in group.committed] == [(0, 9)], "nothing is read over"
        following = webhooks(group, "ops")
        following._assigned(0, 9, group.committed[-1][2])
        assert following.counts()[0].failed == 0

    asyncio.run(run())


def test_a_server_that_is_given_a_partition_again_has_lost_nothing() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, "ops")
        hooks._assigned(0, 0, "")
        await hooks._take(cast(GroupFollower, group), [record(0)])
        hooks._assigned(0, 1, group.committed[-1][2])
        assert hooks.counts()[0].failed == 0

    asyncio.run(run())


INFO, WARNING, CRITICAL = range(3)


@pytest.mark.parametrize(
    ("revisions", "told"),
    [
        (["suspected info", "confirmed warning", "over warning"], [None, WARNING, WARNING]),
        (["suspected warning", "withdrawn warning noise"], [None, None]),
        (["suspected warning", "over warning returned"], [None, None]),
        (["suspected critical", "withdrawn critical noise"], [CRITICAL, CRITICAL]),
        (["suspected critical", "over critical returned"], [CRITICAL, CRITICAL]),
        (["confirmed warning", "confirmed warning lasts", "confirmed warning lasts"], [WARNING, None, None]),
        (["confirmed warning", "confirmed warning raised", "over info"], [WARNING, None, WARNING]),
        (
            ["confirmed info", "confirmed critical raised", "confirmed critical raised", "over warning"],
            [INFO, CRITICAL, None, CRITICAL],
        ),
        (["suspected critical", "confirmed critical", "over critical"], [CRITICAL, CRITICAL, CRITICAL]),
    ],
)
def test_who_is_woken_is_told_how_it_ends_and_nobody_twice_of_the_same(
    revisions: list[str], told: list[int | None]
) -> None:
    wanted = RevisionFilter()
    found = []
    for revision in revisions:
        life, severity, reason = (*revision.split(), revision.split()[0])[:3]
        found.append(wanted.take(event(life=life, severity=severity, reason=reason)))
    assert found == told


def test_of_an_incident_that_is_not_known_somebody_may_have_been_told() -> None:
    over, raised = event(life="over", reason="returned"), event(severity="critical", reason="raised")
    assert RevisionFilter().take(over) == WARNING
    assert RevisionFilter().take(raised) == CRITICAL
    wanted = RevisionFilter()
    assert [wanted.take(one) for one in (raised, raised)] == [CRITICAL, None]
    wanted.forget([raised])
    assert wanted.take(raised) == CRITICAL, "it comes again"


def test_two_incidents_are_two_stories() -> None:
    wanted = RevisionFilter()
    assert wanted.take(event(1, life="suspected")) is None
    assert wanted.take(event(2, life="over", reason="settled")) == WARNING


def test_each_thing_that_can_happen_has_words_for_several_models() -> None:
    assert DID_TOGETHER.keys() == WHATS.keys()


def test_a_severity_of_a_later_release_is_as_bad_as_can_be() -> None:
    assert [rank(one) for one in (*SEVERITIES, "fatal", None)] == [0, 1, 2, 2, 2]


def test_an_event_has_the_attributes_of_its_headers() -> None:
    one = record(7, incident_id="first")
    one.headers += [
        ("ce_source", b"/attributary/obs"),
        ("ce_type", b"attributary.incident.v1"),
        ("ce_subject", b"b"),
        ("ce_time", b"t"),
    ]
    found = read_revision(one)
    assert found is not None
    assert dataclasses.astuple(found)[:5] == ("bank:obs:0:7:1", "/attributary/obs", "attributary.incident.v1", "b", "t")
    assert found.incident == "first"


def test_an_event_without_headers_is_known_by_its_place() -> None:
    one = record(7)
    one.headers = []
    found = read_revision(one)
    assert found is not None
    assert (found.id, found.type, found.subject) == ("incidents:0:7", "attributary.incident.v1", "bank")
    assert found.time is None


def test_what_somebody_else_has_written_is_no_event() -> None:
    for value in (None, b"", b"{", b"[]", b"{}", b'{"event": 3}', b'{"event": "incident", "x": NaN}', b"\xff"):
        assert read_revision(SimpleNamespace(**{**vars(record(1)), "value": value})) is None, value


def test_an_event_is_new_once_and_again_when_it_is_forgotten() -> None:
    known = Memory()
    assert known.take("bank:obs:0:1")
    assert not known.take("bank:obs:0:1")
    assert known.take("bank:obs:0:1:1")
    known.forget(["bank:obs:0:1"])
    assert known.take("bank:obs:0:1")


def test_the_next_process_knows_the_last_events_and_what_was_under_way() -> None:
    first = Memory()
    for n in range(NOTED + 5):
        first.take(f"m:{n}")
    second = Memory(first.note("ab12", {"ops": 2, "chat": 0}))
    assert (second.owner, dict(second.unsettled)) == ("ab12", {"ops": 2})
    assert [n for n in range(NOTED + 5) if second.take(f"m:{n}")] == [0, 1, 2, 3, 4]


def test_what_two_know_is_known_to_one() -> None:
    first, second = Memory(), Memory()
    first.take("a")
    second.take("b")
    first.learn(second)
    assert not first.take("a")
    assert not first.take("b")


def test_what_is_known_is_bounded() -> None:
    known = Memory()
    for n in range(KNOWN + 1):
        known.take(str(n))
    assert not known.take("1")
    assert known.take("0")


@settings(max_examples=25)
@given(
    st.lists(st.text(), max_size=400),
    st.dictionaries(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), st.integers(0, 10**6), max_size=80),
)
def test_a_note_fits_whatever_it_holds(ids: list[str], under_way: dict[str, int]) -> None:
    known = Memory()
    for event_id in ids:
        known.take(event_id)
    assert len(known.note("0123456789ab", under_way).encode("ascii")) <= MOST_NOTE_BYTES


@given(
    st.text()
    | st.sampled_from(
        [
            "null",
            "[]",
            '{"by": 1, "open": 3}',
            '{"open": {"a": "b"}}',
            '{"ids": "é"}',
            '{"ids": 7}',
            '{"open": {"a": 1e999}}',
        ]
    )
)
def test_a_note_of_somebody_else_is_taken_as_empty(note: str) -> None:
    assert Memory(note).take("anything")
