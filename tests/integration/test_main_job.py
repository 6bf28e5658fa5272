"""The main job on real Kafka: the first 20 000 rows of elec2. All rows: `make elec2`."""

from pathlib import Path

import pytest
from benchmarks.data import data_path
from benchmarks.main_job import MainJobResult, report, run_main_job

from attributary_agents.demo.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(900)]
ROWS = 20_000


@pytest.fixture(scope="module")
def result(kafka_broker: Broker, data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> MainJobResult:
    folder = tmp_path_factory.mktemp("main_job")
    return run_main_job(data_path("elec2", data_dir), ROWS, kafka_broker.bootstrap, folder)


def test_every_observation_is_accounted_for(result: MainJobResult) -> None:
    assert (result.consumed, result.explained, result.dead_letters) == (ROWS, ROWS, 0)
    assert result.exit_code == 0


def test_importances_of_both_explainers_are_on_their_topic_at_every_interval(result: MainJobResult) -> None:
    for explainer in ("pfi", "sage"):
        events = [event for event in result.importances if event["explainer"] == explainer]
        intervals = [event["observation"] for event in events if event["trigger"] == "interval"]
        assert intervals == list(range(200, ROWS + 1, 200))


def test_vicprice_is_of_no_importance_before_it_first_changes_and_of_some_afterwards(result: MainJobResult) -> None:
    assert set(result.importance("pfi", "vicprice", after_drift=False)) == {0.0}
    after = result.importance("pfi", "vicprice", after_drift=True)
    assert after[-1] > 0.01
    # iSAGE with few draws carries noise and a negative bias for a feature without influence, never a positive value.
    last = result.importances[-1]["features"]["vicprice"]
    assert max(result.importance("sage", "vicprice", after_drift=False)) < 3 * last["std_error"]
    assert result.importance("sage", "vicprice", after_drift=True)[-1] > 3 * last["std_error"]


def test_changes_are_explained_on_their_topic(result: MainJobResult) -> None:
    assert result.changes
    for change in result.changes:
        assert change["discrepancy"] > change["threshold"] == 0.3
        assert change["n_discrepancy"] == 2 * change["window"] == 2000
        assert change["detected_at"] + change["window"] - 1 == change["observation"]
        assert change["sentence"].startswith(f"elec2 changed at {change['observation']:,}".replace(",", " "))


def test_the_replay_of_the_same_file_publishes_the_same_value_for_value(result: MainJobResult) -> None:
    assert result.importances
    assert result.equals_replay


def test_the_command_s_report_says_that_all_of_it_holds(result: MainJobResult) -> None:
    assert all(holds for _, holds in report(result))
