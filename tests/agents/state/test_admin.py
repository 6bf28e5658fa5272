"""On which partition an imported state goes, and what is exported where the broker is not needed to tell."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import GroupAuthorizationFailedError, GroupCoordinatorNotAvailableError, GroupLoadInProgressError

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import AttributaryError, PreflightError
from attributary_agents.kafka import admin as kafka_admin
from attributary_agents.models.guards.allowlist import PLAIN, Allowlist
from attributary_agents.models.model_state import new_state
from attributary_agents.state import importing as state_import
from attributary_agents.state import writing as state_writing
from attributary_agents.state.admin import one_partition
from attributary_agents.state.codec import encode_state
from attributary_agents.state.files import ExportedState
from attributary_agents.state.importing import _decoded, _partition, plan_import
from attributary_agents.state.records import StateRecords, chunk_key, head_key


def config(**model: object) -> Config:
    made = {"model": {"class": "river.naive_bayes.GaussianNB"}, **model}
    return parse_config({"kafka": {"brokers": ["127.0.0.1:1"], "partitions": 4}, "models": {"credit": made}})


def exported(model_id: str = "credit") -> ExportedState:
    state = new_state(model_id, config().models["credit"])
    state.n_observations, state.partition, state.offset = 9, 1, 17
    return ExportedState.of(model_id, encode_state(state))


@pytest.mark.parametrize(
    ("given", "present", "of_file", "found"),
    [(2, None, None, 2), (2, 2, 1, 2), (2, None, 1, 2), (None, 0, 1, 0), (None, None, 1, 1), (0, None, 1, 0)],
)
def test_the_partition_is_the_given_one_the_group_s_or_the_file_s(
    given: int | None, present: int | None, of_file: int | None, found: int
) -> None:
    assert _partition(config(), "credit", given, present, of_file) == found


@pytest.mark.parametrize(
    ("given", "present", "said"),
    [
        (None, None, r"say it with --partition.*the key credit to partition 2 of 4"),
        (2, 1, r"--partition 2: .* is on partition 1.*models reset credit"),
    ],
)
def test_none_at_all_and_another_one_than_the_group_s_are_refused(
    given: int | None, present: int | None, said: str
) -> None:
    with pytest.raises(AttributaryError, match=said):
        _partition(config(), "credit", given, present, None)


def test_a_model_on_two_partitions_is_neither_exported_nor_replaced() -> None:
    records = StateRecords()
    records.apply(1, head_key(b"credit", 3), b"head")
    records.apply(2, chunk_key(b"credit", 3, 0, 0), b"torn: no head")
    assert one_partition(config(), records, "credit") == 1
    assert one_partition(config(), records, "fraud") is None
    records.apply(3, head_key(b"credit", 4), b"head")
    with pytest.raises(AttributaryError, match=r"on the partitions 1 and 3, .*models reset credit"):
        one_partition(config(), records, "credit")


class Admin:
    """An admin client that knows of one group."""

    def __init__(self, code: int = 0, members: int = 0, *, new_cluster: bool = False) -> None:
        self.group = (code, "attributary", "Stable", "consumer", "range", [("member",)] * members)
        self.new_cluster = new_cluster

    async def describe_consumer_groups(self, groups: list[str]) -> list[SimpleNamespace]:
        assert groups == ["attributary"]
        if self.new_cluster:
            raise GroupCoordinatorNotAvailableError
        return [SimpleNamespace(groups=[self.group])]


class TestWorkers:
    def check(self, monkeypatch: pytest.MonkeyPatch, admin: Admin, *, written: bool = False) -> None:
        monkeypatch.setattr(kafka_admin, "with_admin", lambda _kafka, work: asyncio.run(work(admin)))
        state_writing.check_no_workers(config(), written=written)

    @pytest.mark.parametrize("admin", [Admin(), Admin(new_cluster=True)])
    def test_a_group_without_members_may_be_written_to(self, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
        self.check(monkeypatch, admin)

    def test_one_with_members_may_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(PreflightError, match=r"^2 workers of the group attributary run: stop them first.*60 s"):
            self.check(monkeypatch, Admin(members=2))
        with pytest.raises(PreflightError, match=r"^a worker .* began meanwhile.* repeat"):
            self.check(monkeypatch, Admin(members=1), written=True)

    def test_a_group_that_is_not_told_is_not_taken_for_an_empty_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for code, error in ((14, GroupLoadInProgressError), (30, GroupAuthorizationFailedError)):
            with pytest.raises(error):
                self.check(monkeypatch, Admin(code))


@pytest.mark.parametrize(
    ("model_id", "of_file", "partition", "said"),
    [
        ("fraud", "fraud", None, "fraud is not configured: name one of credit"),
        ("credit", "fraud", None, "is of the model fraud, not credit: take it with --as-other"),
        ("credit", "credit", 4, r"expected less than kafka\.partitions, 4"),
    ],
)
def test_what_does_not_fit_is_refused_before_kafka_is_asked(
    model_id: str, of_file: str, partition: int | None, said: str
) -> None:
    with pytest.raises(AttributaryError, match=said):
        plan_import(config(), model_id, exported(of_file), partition=partition)


def test_a_state_of_which_nothing_would_be_left_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Allowlist.load

    def gone(allowlist: Allowlist, data: bytes) -> Any:
        if allowlist is PLAIN:
            return load(allowlist, data)
        raise ModuleNotFoundError("No module named 'gone'")

    file = exported()
    monkeypatch.setattr(Allowlist, "load", gone)
    with pytest.raises(Exception, match="No module named 'gone'"):
        _decoded(config(), "credit", file)  # as configured
    with pytest.raises(Exception, match="credit is configured as another one: nothing would be left"):
        _decoded(config(version="2"), "credit", file)


def test_a_state_that_cannot_be_explained_as_configured_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_import, "check_no_workers", lambda _config: None)
    with pytest.raises(AttributaryError, match="brier"):
        plan_import(config(loss="squared"), "credit", exported())


def test_the_state_of_another_model_gets_the_model_s_name() -> None:
    state = _decoded(config(), "credit", exported("fraud"))
    assert (state.model_id, state.n_observations) == ("credit", 9)
