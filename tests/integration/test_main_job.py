"""The main job on real Kafka: 4000 rows of elec2 around its drift. All rows: `make elec2`."""

import gzip
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from benchmarks.data import ELEC2_DRIFT, FOLDER, data_path
from benchmarks.main_job import MainJobResult, report, run_main_job

from attributary_agents.demo.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def result(kafka_broker: Broker, data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> MainJobResult:
    folder = tmp_path_factory.mktemp("main_job")
    # The stand-in changes seldom: of it all that comes before the drift is needed for a change that is explained.
    first, n = (15_000, 4_000) if data_dir == FOLDER else (0, 20_000)
    with gzip.open(data_path("elec2", data_dir), "rb") as lines:
        header, *rows = islice(lines, 1 + first + n)
    path = folder / "elec2.csv.gz"
    path.write_bytes(gzip.compress(b"".join([header, *rows[first:]])))
    return run_main_job(path, n, kafka_broker.bootstrap, folder, drift=ELEC2_DRIFT - first)


def test_every_observation_is_accounted_for(result: MainJobResult) -> None:
    assert (result.consumed, result.explained, result.dead_letters) == (result.rows, result.rows, 0)
    assert result.exit_code == 0


def test_importances_of_both_explainers_are_on_their_topic_at_every_interval(result: MainJobResult) -> None:
    for explainer in ("pfi", "sage"):
        events = [event for event in result.importances if event["explainer"] == explainer]
        intervals = [event["observation"] for event in events if event["trigger"] == "interval"]
        assert intervals == list(range(200, result.rows + 1, 200))


def test_vicprice_is_of_no_importance_before_it_first_changes_and_of_some_afterwards(result: MainJobResult) -> None:
    assert set(result.importance("pfi", "vicprice", after_drift=False)) == {0.0}
    after = result.importance("pfi", "vicprice", after_drift=True)
    assert after[-1] > 0.01
    # iSAGE with few draws carries noise and a negative bias for a feature without influence, never a positive value.
    last = result.importances[-1]["features"]["vicprice"]
    assert max(result.importance("sage", "vicprice", after_drift=False)) < 3 * last["std_error"]
    assert result.importance("sage", "vicprice", after_drift=True)[-1] > 3 * last["std_error"]


def test_incidents_are_on_their_topic_each_with_all_of_its_revisions(result: MainJobResult) -> None:
    by_id: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for revision in result.incidents:
        by_id[revision["id"]].append(revision)
        assert "elec2" in revision["sentence"]
    assert by_id, "the prices of elec2 change all the time"
    for revisions in by_id.values():
        assert [one["revision"] for one in revisions] == list(range(1, len(revisions) + 1))
        assert all(one["life"] in ("suspected", "confirmed") for one in revisions[:-1])
    explanations = [one["explanation"] for one in result.incidents if one["explanation"] is not None]
    assert explanations
    for explanation in explanations:
        assert explanation["verdict"] in ("followed", "harder", "degraded")
        assert explanation["threshold"] == 0.2
        assert explanation["losses"]["model_now"]["n"] >= 500
        assert explanation["importances"].keys() == {"pfi"}


def test_the_replay_of_the_same_file_publishes_the_same_value_for_value(result: MainJobResult) -> None:
    assert result.importances
    assert result.equals_replay


def test_the_command_s_report_says_that_all_of_it_holds(result: MainJobResult) -> None:
    assert all(holds for _, holds in report(result))
