"""Topics are created when every broker knows them, and what a broker has not told is no fault of a topic."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import AttributaryError, ConfigError, PreflightError
from attributary_agents.kafka.topics import (
    changelog_remarks,
    check_topics,
    checks,
    create_topics,
    creation,
    reassignment,
    topic_specs,
    topics_there,
)
from tests.agents.kafka import fake_cluster
from tests.agents.kafka.fake_cluster import FakeCluster, FakeTopic

SAYS = ["unknown", "no leader", "no partitions", "leaderless", "no settings"]


def config(**kafka: Any) -> Config:
    return parse_config(
        {
            "kafka": {"partitions": 4, **kafka},
            "models": {"credit": {"model": {"class": "river.naive_bayes.GaussianNB"}}},
        }
    )


def made(settings: Config, replicas: int = 3, min_insync: int = 2, **other: int) -> dict[str, FakeTopic]:
    """All topics as they should be; `other` gives the number of partitions of some."""
    names = {
        settings.kafka.changelog: "changelog",
        **{getattr(settings.kafka.topics, n): n for n in ("observations", "models")},
    }
    return {
        spec.name: FakeTopic(
            other.get(names.get(spec.name, ""), spec.partitions),
            replicas,
            {**spec.settings, "min.insync.replicas": str(min_insync)},
        )
        for spec in topic_specs(settings)
    }


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the admin client reach this cluster."""

    def at(cluster: FakeCluster) -> FakeCluster:
        monkeypatch.setattr("attributary_agents.kafka.admin.AIOKafkaAdminClient", cluster.admin)
        return cluster

    return at


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no wait take long, where what is waited for never comes."""
    monkeypatch.setattr(creation, "KNOWN_WITHIN_S", 0.2)
    monkeypatch.setattr(creation, "CREATED_WITHIN_S", 0.2)
    monkeypatch.setattr(checks, "AGREED_WITHIN_S", 0.2)


class TestCreation:
    @pytest.mark.parametrize("says", SAYS)
    @pytest.mark.parametrize("late", [{1: 4}, {2: 4}, {2: 3, 3: 5}], ids=["first", "second", "two"])
    @pytest.mark.share(2, "late", "says")
    def test_a_broker_that_has_not_heard_yet_is_waited_for(self, says: str, late: dict[int, int], run: Any) -> None:
        cluster = run(FakeCluster(3))
        cluster.late, cluster.says = late, says
        created = create_topics(config())
        assert [is_new for _, is_new in created] == [True] * 7
        assert all(cluster.asked[number] > n for number, n in late.items())
        assert sorted(cluster.created) == sorted(spec.name for spec in topic_specs(config()))

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize("says", SAYS)
    def test_a_broker_that_never_hears_is_named_and_nothing_is_to_be_deleted(self, says: str, run: Any) -> None:
        cluster = run(FakeCluster(2))
        cluster.late, cluster.says = {2: 10**9}, says
        with pytest.raises(PreflightError) as raised:
            create_topics(config())
        said = str(raised.value)
        assert "broker 2 (127.0.0.1:9002) does not tell attributary-state-changelog, " in said
        assert "run it again" in said
        assert "attributary topics list" in said
        assert "delete" not in said
        assert {"unknown": "UNKNOWN_TOPIC_OR_PARTITION", "no leader": "LEADER_NOT_AVAILABLE"}.get(says, "") in said

    @pytest.mark.usefixtures("impatient")
    def test_a_broker_that_does_not_answer_is_named(self, run: Any) -> None:
        cluster = run(FakeCluster(2))
        cluster.down = {2}
        with pytest.raises(PreflightError, match=r"broker 2 \(127.0.0.1:9002\): it does not answer"):
            create_topics(config())

    @pytest.mark.parametrize(
        ("n", "kafka", "replicas", "min_insync"),
        [
            (1, {}, 1, 1),
            (2, {}, 2, 1),
            (3, {}, 3, 2),
            (5, {}, 3, 2),
            (5, {"replication_factor": 5}, 5, 2),
            (3, {"replication_factor": 2}, 2, 1),
            (3, {"min_insync_replicas": 1}, 3, 1),
            (2, {"min_insync_replicas": 2}, 2, 2),
        ],
    )
    def test_replicas_as_the_cluster_allows(
        self, n: int, kafka: dict[str, int], replicas: int, min_insync: int, run: Any
    ) -> None:
        cluster = run(FakeCluster(n))
        create_topics(config(**kafka))
        assert {topic.replicas for topic in cluster.topics.values()} == {replicas}
        assert {topic.settings["min.insync.replicas"] for topic in cluster.topics.values()} == {str(min_insync)}

    @pytest.mark.parametrize(
        ("kafka", "said"),
        [
            ({"replication_factor": 4}, "fewer brokers than kafka.replication_factor, 4: start what is missing"),
            ({"min_insync_replicas": 3}, "fewer brokers than kafka.min_insync_replicas, 3, needs"),
        ],
    )
    def test_too_few_brokers_are_told_with_the_remedy(self, kafka: dict[str, int], said: str, run: Any) -> None:
        cluster = run(FakeCluster(2))
        with pytest.raises(PreflightError, match=said):
            create_topics(config(**kafka))
        assert cluster.topics == {}

    @pytest.mark.parametrize(
        ("code", "n"),
        [(fake_cluster.TIMED_OUT, 6), (fake_cluster.NO_CONTROLLER, 7)],
        ids=["timed out", "no controller"],
    )
    def test_a_controller_that_cannot_decide_is_asked_again(self, code: int, n: int, run: Any) -> None:
        cluster = run(FakeCluster(3))
        cluster.refusals = [code]
        assert all(is_new for _, is_new in create_topics(config()))
        assert len(cluster.created) == n

    @pytest.mark.usefixtures("impatient")
    def test_no_controller_for_long_is_told(self, run: Any) -> None:
        cluster = run(FakeCluster(3))
        cluster.refusals = [fake_cluster.NO_CONTROLLER] * 100
        with pytest.raises(PreflightError, match=r"has had no controller for 0 s .* run it again"):
            create_topics(config())

    def test_a_refusal_is_told_in_the_brokers_words(self, run: Any) -> None:
        cluster = run(FakeCluster(3))
        cluster.refusals = [fake_cluster.FORBIDDEN]
        with pytest.raises(PreflightError, match=r"refused to create attributary\.observations\.v1: refused with 29"):
            create_topics(config())

    @pytest.mark.parametrize(
        ("n", "kafka", "said"),
        [
            (1, {}, "the cluster has 1 broker now, so each partition has 1 replica; "),
            (2, {}, "the cluster has 2 brokers now, so each partition has 2 replicas; "),
            (3, {}, ""),
            (1, {"replication_factor": 1}, ""),
        ],
        ids=["one broker", "two brokers", "three brokers", "one replica by configuration"],
    )
    def test_the_command_says_that_more_brokers_would_give_more_replicas(
        self, n: int, kafka: dict[str, int], said: str, run: Any, tmp_path: Path
    ) -> None:
        run(FakeCluster(n))
        path = tmp_path / "attributary.yaml"
        models = {"credit": {"model": {"class": "river.naive_bayes.GaussianNB"}}}
        path.write_text(json.dumps({"kafka": kafka, "models": models}))
        result = CliRunner().invoke(cli, ["topics", "create", "--config", str(path)])
        assert result.exit_code == 0, result.output
        assert said in result.stderr
        assert ("set kafka.replication_factor: 3" in result.stderr) == bool(said)
        again = CliRunner().invoke(cli, ["topics", "create", "--config", str(path)])
        assert "kafka.replication_factor" not in again.stderr, "nothing has been created"

    def test_a_broker_that_does_not_know_the_request_is_no_lack_of_a_controller(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def too_old(*_: object) -> None:
            raise IncompatibleBrokerVersion("CreateTopicsRequest needs a newer broker")

        monkeypatch.setattr(AIOKafkaAdminClient, "create_topics", too_old)
        monkeypatch.setattr(creation, "CREATED_WITHIN_S", 0.2)
        run(FakeCluster(3))
        with pytest.raises(PreflightError, match="IncompatibleBrokerVersion: CreateTopicsRequest needs a newer broker"):
            create_topics(config())

    def test_nothing_is_made_beside_observations_of_another_number(self, run: Any) -> None:
        cluster = run(FakeCluster(1, {"attributary.observations.v1": FakeTopic(2)}))
        with pytest.raises(
            PreflightError, match=r"has 2 partitions, kafka\.partitions is 4: set kafka.partitions to 2"
        ):
            create_topics(config())
        assert cluster.created == []

    def test_more_replicas_in_sync_than_there_are_is_refused_at_once(self) -> None:
        with pytest.raises(ConfigError, match=r"min_insync_replicas \(2\) must be at most replication_factor \(1\)"):
            config(replication_factor=1, min_insync_replicas=2)


class TestCheck:
    @pytest.mark.parametrize("says", SAYS)
    @pytest.mark.parametrize("number", [1, 2])
    def test_a_broker_that_comes_back_is_waited_for(self, says: str, number: int, run: Any) -> None:
        cluster = run(FakeCluster(3, made(config())))
        cluster.late, cluster.says = {number: 2}, says
        check_topics(config())
        assert cluster.asked[1] > 0

    @pytest.mark.usefixtures("impatient")
    def test_a_topic_that_one_broker_knows_is_not_missing(self, run: Any) -> None:
        cluster = run(FakeCluster(2, made(config(), replicas=2)))
        cluster.late = {1: 10**9}
        with pytest.raises(PreflightError) as raised:
            check_topics(config())
        assert "missing" not in str(raised.value)
        assert "broker 1 (127.0.0.1:9001) does not tell attributary-state-changelog, " in str(raised.value)

    def test_a_topic_that_no_broker_knows_is_missing(self, run: Any) -> None:
        topics = made(config())
        del topics["attributary-state-changelog"]
        run(FakeCluster(3, topics))
        with pytest.raises(PreflightError, match=r"^missing topics: attributary-state-changelog \(make them with"):
            check_topics(config())

    def test_a_worker_can_do_without_the_topic_of_statuses_unless_it_is_what_is_asked_for(self, run: Any) -> None:
        settings = config()
        topics = made(settings)
        del topics["attributary.status.v1"]
        run(FakeCluster(3, topics))
        check_topics(settings)
        with pytest.raises(PreflightError, match=r"^missing topics: attributary.status.v1 \(make them with"):
            check_topics(settings, settings.kafka.topics.status)

    def test_a_topic_that_is_hidden_from_this_user_is_missing(self, run: Any) -> None:
        cluster = run(FakeCluster(3, made(config())))
        cluster.hidden = {"attributary.models.v1"}
        with pytest.raises(PreflightError, match=r"^missing topics: attributary.models.v1 \(make them with"):
            check_topics(config())

    @pytest.mark.parametrize(
        ("other", "said"),
        [
            ({"observations": 2, "models": 2, "changelog": 2}, ["kafka.partitions is 4: set kafka.partitions to 2"]),
            (
                {"changelog": 1},
                ["changelog has 1 partition, and must", "--alter --topic attributary-state-changelog --partitions 4"],
            ),
            ({"changelog": 8}, ["has 8 partitions", "set kafka.group to another name", "stay as they are"]),
            ({"models": 3}, ["has 3 partitions", "--alter --topic attributary.models.v1 --partitions 4"]),
            ({"models": 5}, ["has 5 partitions", "partitions cannot be taken away: delete it"]),
        ],
        ids=["all", "changelog too few", "changelog too many", "models too few", "models too many"],
    )
    def test_a_wrong_number_of_partitions(self, other: dict[str, int], said: list[str], run: Any) -> None:
        run(FakeCluster(3, made(config(), **other)))
        with pytest.raises(PreflightError) as raised:
            check_topics(config())
        for part in said:
            assert part in str(raised.value)
        assert ("delete" in str(raised.value)) == (other == {"models": 5})

    def test_a_state_is_never_deleted_where_the_observations_are_still_to_be_made(self, run: Any) -> None:
        topics = made(config(), changelog=8)
        del topics["attributary.observations.v1"], topics["attributary.models.v1"]
        run(FakeCluster(3, topics))
        with pytest.raises(PreflightError, match=r"changelog has 8 partitions, .* set kafka.partitions to 8"):
            check_topics(config())

    @pytest.mark.usefixtures("impatient")
    def test_a_number_that_not_every_broker_tells_is_no_reason_to_delete(self, run: Any) -> None:
        cluster = run(FakeCluster(3, made(config(), models=5)))
        cluster.tells[3, "attributary.models.v1"] = FakeTopic(4, 3)
        with pytest.raises(PreflightError) as raised:
            check_topics(config())
        assert "partitions of attributary.models.v1: 5 by broker 1" in str(raised.value)
        assert "delete" not in str(raised.value)


class TestRemarks:
    def remarks(self, cluster: FakeCluster, run: Any, **kafka: Any) -> list[str]:
        run(cluster)
        settings = config(brokers=["one:9092", "two:9092"], **kafka)
        return topics_there(settings).remarks(settings)

    def test_nothing_is_said_where_all_is_as_it_should_be(self, run: Any) -> None:
        assert self.remarks(FakeCluster(3, made(config())), run) == []
        assert self.remarks(FakeCluster(1, made(config(), 1, 1)), run) == []
        assert self.remarks(FakeCluster(3, made(config(), 1, 1)), run, replication_factor=1) == []

    def test_too_few_replicas(self, run: Any) -> None:
        (said,) = self.remarks(FakeCluster(3, made(config(), 1, 1)), run)
        assert said.startswith("attributary.observations.v1, attributary.models.v1, ")
        assert "1 replica of each partition, the 3 brokers that are up allow 3: attributary topics list" in said
        assert said.endswith(
            "--reassignment > replicas.json && kafka-reassign-partitions.sh --bootstrap-server one:9092,two:9092 "
            "--reassignment-json-file replicas.json --execute"
        )

    def test_too_few_replicas_and_brokers(self, run: Any) -> None:
        (said,) = self.remarks(FakeCluster(2, made(config(), 2, 1)), run, replication_factor=3)
        assert "2 replicas of each partition, kafka.replication_factor is 3, and 2 of the brokers are up" in said
        assert "kafka-reassign" not in said

    def test_a_low_min_insync_replicas(self, run: Any) -> None:
        topics = made(config())
        topics["attributary-state-changelog"].settings["min.insync.replicas"] = "1"
        assert self.remarks(FakeCluster(3, topics), run) == [
            "attributary-state-changelog: min.insync.replicas is 1, should be 2: kafka-configs.sh --bootstrap-server "
            "one:9092,two:9092 --alter --entity-type topics --entity-name attributary-state-changelog --add-config "
            "min.insync.replicas=2"
        ]

    def test_a_min_insync_replicas_that_no_record_can_reach(self, run: Any) -> None:
        topics = made(config(), 1, 2)
        said = self.remarks(FakeCluster(1, topics), run)
        assert len(said) == 7
        assert all(
            "takes no record, as min.insync.replicas is 2 and there is 1 replica: kafka-configs.sh" in s for s in said
        )

    def test_replicas_that_are_not_in_sync(self, run: Any) -> None:
        topics = made(config())
        topics["attributary.models.v1"].in_sync = 1
        assert self.remarks(FakeCluster(3, topics), run) == [
            "attributary.models.v1: not all replicas are in sync: brokers 2, 3 are away or behind",
            "attributary.models.v1: takes no record, as min.insync.replicas is 2 and 1 replica in sync: start the "
            "brokers that are away",
        ]

    def test_a_broker_that_does_not_answer_is_told_and_has_no_replica_in_sync(self, run: Any) -> None:
        cluster = run(FakeCluster(3, made(config())))
        cluster.down = {3}  # and the others have not noticed
        there = topics_there(config())
        assert {topic.least_in_sync for topic in there.found.values()} == {2}
        said = there.remarks(config())
        assert said[:2] == [
            "2 of 3 brokers answer, and broker 3 (127.0.0.1:9003) does not",
            "broker 3 (127.0.0.1:9003): it does not answer",
        ]
        assert said[2].endswith(
            "not all replicas are in sync: broker 3 is away or behind: start it, or where it will not come back: "
            "attributary topics list --reassignment --gone 3"
        )
        assert not there.doubt

    @pytest.mark.usefixtures("impatient")
    def test_without_a_controller_nothing_is_said_of_what_is_in_sync(self, run: Any, tmp_path: Path) -> None:
        cluster = run(FakeCluster(3, made(config())))
        cluster.down, cluster.has_controller = {2, 3}, False
        path = tmp_path / "attributary.yaml"
        models = {"credit": {"model": {"class": "river.naive_bayes.GaussianNB"}}}
        path.write_text(json.dumps({"kafka": {"partitions": 4}, "models": models}))
        result = CliRunner().invoke(cli, ["topics", "list", "--config", str(path)])
        assert result.stdout.count("partitions=4 replicas=3 in-sync=? min.insync.replicas=2") == 7
        assert isinstance(result.exception, PreflightError)
        assert str(result.exception).startswith(
            "the cluster has no controller (1 of 3 brokers answers, and broker 2 (127.0.0.1:9002), broker 3 "
            "(127.0.0.1:9003) do not): start the brokers that are away"
        )
        assert "what else is shown is as broker 1 (127.0.0.1:9001) knew it last" in str(result.exception)
        listed = json.loads(CliRunner().invoke(cli, ["topics", "list", "--json", "--config", str(path)]).stdout)
        assert {(topic["found"]["replicas"], topic["found"]["in_sync"]) for topic in listed["topics"]} == {(3, None)}
        assert (listed["silent"], listed["remarks"]) == ([2, 3], [listed["doubt"]])
        with pytest.raises(PreflightError, match="the cluster has no controller"):
            create_topics(config())

    @pytest.mark.parametrize(
        ("read", "live", "is_said"),
        [(100_000_000, 1_000_000, False), (200_000_000, 1_000_000, True), (5_000_000_000, 1_000_000_000, False)],
    )
    def test_a_changelog_of_many_times_its_state(self, read: int, live: int, is_said: bool) -> None:
        said = changelog_remarks(config(brokers=["one:9092"]), read, live)
        assert bool(said) == is_said
        for line in said:
            assert "attributary-state-changelog has 200 MB for 1 MB of state, and a restart reads all of it" in line
            assert line.endswith(
                "kafka-configs.sh --bootstrap-server one:9092 --alter --entity-type topics --entity-name "
                "attributary-state-changelog --add-config cleanup.policy=compact,segment.bytes=16777216,"
                "segment.ms=20000,min.cleanable.dirty.ratio=0.3"
            )

    def test_a_reassignment_gives_the_replicas_of_brokers_that_have_gone_to_others(self, run: Any) -> None:
        settings = config()
        run(FakeCluster(3, made(settings)))
        found = topics_there(settings)
        # Broker 3 is away, and a fourth one has come.
        answers = [
            replace(told, node=replace(told.node, number=n))
            for told, n in zip(found.seen.answers, (1, 2, 4), strict=True)
        ]
        there = replace(found, seen=replace(found.seen, answers=answers))
        assert json.loads(reassignment(settings, there))["partitions"] == []
        partitions = json.loads(reassignment(settings, there, gone=[3]))["partitions"]
        assert {tuple(one["replicas"]) for one in partitions} == {(1, 2, 4)}
        assert len(partitions) == sum(spec.partitions for spec in topic_specs(settings))
        with pytest.raises(AttributaryError, match="--gone 4: that broker answers"):
            reassignment(settings, there, gone=[4])
        with pytest.raises(AttributaryError, match="--gone 9: no partition of these topics has a replica on that"):
            reassignment(settings, there, gone=[9])
        two = replace(found, seen=replace(found.seen, answers=answers[:2]))
        with pytest.raises(AttributaryError, match="--gone 3: no broker is free to take its replicas of 28 partitions"):
            reassignment(settings, two, gone=[3])

    def test_a_reassignment_keeps_what_there_is_and_spreads_the_rest(self, run: Any) -> None:
        settings = config()
        run(FakeCluster(4, made(settings, 2, 1)))
        partitions = json.loads(reassignment(settings, topics_there(settings)))["partitions"]
        assert {tuple(one["replicas"][:2]) for one in partitions} == {(1, 2)}
        assert sorted(one["replicas"][2] for one in partitions) == [3] * 14 + [4] * 14
        assert {(one["topic"], one["partition"]) for one in partitions} == {
            (spec.name, n) for spec in topic_specs(settings) for n in range(4)
        }
