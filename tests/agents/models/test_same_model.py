"""The same model says the same, however a worker was given it: as an object, as a file of each format, from afar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.models import given as ways_module
from benchmarks.models.given import WAYS, Way
from benchmarks.models.same import Explained, given, in_own_process, in_worker
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from tests.agents.models.trained import ESTIMATORS, FEATURES, N_TRAINED, ROWS, X, Y

SLOW = {"folder of MLflow": "MLflow itself takes seconds to be imported"}
EACH = [pytest.param(name, marks=[pytest.mark.long] if name in SLOW else []) for name in WAYS]


@pytest.fixture(scope="module", params=ESTIMATORS)
def estimator(request: pytest.FixtureRequest) -> Any:
    return ESTIMATORS[request.param].fit(X[:N_TRAINED], Y[:N_TRAINED])


@pytest.fixture(scope="module")
def reference(estimator: Any) -> Explained:
    return in_own_process(estimator, ROWS)


@pytest.mark.parametrize("way", EACH)
def test_the_same_model_says_the_same_by_the_same_draws(way: str, estimator: Any, reference: Explained) -> None:
    assert WAYS[way].missing == (), "`make venv` installs them"
    with given(WAYS[way], estimator) as said:
        found = in_worker(parse_config(said), ROWS)
    assert len(found.events) == 3
    assert set(found.events[-1]) >= {f"{name}.{one}" for name in ("pfi", "sage") for one in FEATURES}
    assert found.left_out == {"nothing_stored": 2}, "each explainer has nothing to draw from at the first observation"
    assert found.differs(reference) <= WAYS[way].tolerance


def test_another_model_says_something_else(reference: Explained) -> None:
    other = make_pipeline(StandardScaler(), LogisticRegression(C=0.5)).fit(X[:N_TRAINED], Y[:N_TRAINED])
    assert in_own_process(other, ROWS).differs(reference) > 1e-4


def test_what_is_missing_is_a_difference(reference: Explained) -> None:
    assert reference.differs(reference) == 0
    assert Explained(reference.events[:-1], reference.left_out, 0).differs(reference) == float("inf")
    assert Explained(reference.events, {}, 0).differs(reference) == float("inf")


@pytest.mark.parametrize("way", EACH)
def test_check_rehearses_it(way: str, tmp_path: Path) -> None:
    estimator = ESTIMATORS["linear"].fit(X[:N_TRAINED], Y[:N_TRAINED])
    sample = X[N_TRAINED:].assign(y=Y[N_TRAINED:])
    sample.to_csv(tmp_path / "sample.csv", index=False)
    with given(WAYS[way], estimator) as said:
        (tmp_path / "attributary.yaml").write_text(yaml.safe_dump(said))
        arguments = ["check", "--offline", "-c", str(tmp_path / "attributary.yaml")]
        done = CliRunner().invoke(cli, [*arguments, "--sample", str(tmp_path / "sample.csv")])
    assert done.exit_code == 0, done.output
    assert f"bank: works: 40 of 40 rows used (rows of {tmp_path / 'sample.csv'})\n" in done.output
    assert "pfi skipped 1 (nothing stored); sage skipped 1 (nothing stored)" in done.output


def test_the_page_has_each_way_twice_and_none_differs() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "performance.md").read_text()
    said = page.partition("## One trained model, given in every way")[2].splitlines()
    for way in WAYS:
        rows = [line for line in said if line.startswith(f"│ {way} ")]
        assert [row.split("│")[-2].strip() for row in rows] == ["same", "same"], way


def test_a_package_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways_module, "find_spec", lambda name: None)
    assert Way(WAYS["pickle"].give, needs=("nobody_has_it",)).missing == ("nobody_has_it",)
