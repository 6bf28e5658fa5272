"""The benchmark data are what their README says, the stand-ins are like them, and both run where the data are read."""

import hashlib
import re
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks import main_job
from benchmarks.data import ELEC2_DRIFT, ELEC2_ROWS, FOLDER, NAMES, NoDataError, data_path, data_set, elec2, numbers
from benchmarks.data.made import MADE, choose_folder, made_california_housing, made_elec2, write_table
from benchmarks.papers.isage import elec2 as isage_elec2
from benchmarks.papers.isage import static as isage_static
from benchmarks.papers.rows import Settings

README = (FOLDER / "README.md").read_text(encoding="utf-8")
CONSTANT = {"vicprice": 0.003467, "vicdemand": 0.422915, "transfer": 0.414912}
"""Of elec2, before Victoria is connected."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return choose_folder("made", tmp_path_factory.mktemp("data"))


@pytest.fixture(params=["the data", "a stand-in"])
def folder(request: pytest.FixtureRequest, made: Path) -> Path:
    return FOLDER if request.param == "the data" else made


# ---------------------------------------------------------------- what the README says


def test_the_checksums_are_those_of_the_files() -> None:
    stated = {name: checksum for checksum, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", README, re.MULTILINE)}
    assert stated == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.glob("*.csv.gz")}
    assert set(stated) == {f"{name}.csv.gz" for name in NAMES}


def test_every_data_set_has_its_source_and_terms_and_a_stand_in_where_there_are_none() -> None:
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL))
    assert set(NAMES) <= set(sections)
    for name in NAMES:
        assert "\n- Source: " in sections[name]
        assert "\n- Terms" in sections[name]
    assert {name for name in NAMES if re.search(r"\*\*none ", sections[name])} == set(MADE)


# ---------------------------------------------------------------- facts, of the data and of the stand-ins


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_stand_in_has_the_columns_and_rows_of_the_data(name: str, made: Path) -> None:
    real, other = list(data_set(name)), list(data_set(name, made))
    assert len(other) == len(real)
    assert list(other[0][0]) == list(real[0][0])
    assert (made / f"{name}.csv.gz").read_bytes() != data_path(name).read_bytes()


def test_elec2_has_the_facts_that_benchmarks_rely_on(folder: Path) -> None:
    rows = list(elec2(folder))
    labels = [y for _, y in rows]
    assert len(rows) == ELEC2_ROWS
    assert 0.41 < sum(labels) / len(rows) < 0.43
    assert 0.84 < sum(a == b for a, b in pairwise(labels)) / len(rows) < 0.87
    for name, value in CONSTANT.items():
        assert {x[name] for x, _ in rows[:ELEC2_DRIFT]} == {value}
        assert rows[ELEC2_DRIFT][0][name] != value
        assert len({x[name] for x, _ in rows[ELEC2_DRIFT:]}) > 1000
    for x, _ in rows:
        assert x["day"] in range(1, 8)
        assert all(0.0 <= value <= 1.0 for name, value in x.items() if name != "day")


@pytest.mark.long
def test_california_housing_has_a_bounded_target_and_the_ranges_of_the_data(folder: Path) -> None:
    real, rows = numbers("california_housing"), numbers("california_housing", folder)
    targets = [y for _, y in rows]
    assert (min(targets) >= 0.14999, max(targets)) == (True, 5.00001)
    assert 0.04 < targets.count(5.00001) / len(rows) < 0.05
    assert sum(targets) / len(rows) == pytest.approx(2.068558, abs=0.05)
    for name in real[0][0]:
        known, found = sorted(x[name] for x, _ in real), sorted(x[name] for x, _ in rows)
        assert known[0] <= found[0] < found[-1] <= known[-1]
        spread = known[-len(known) // 20] - known[len(known) // 20]
        assert abs(found[len(found) // 2] - known[len(known) // 2]) < 0.2 * spread


def test_a_stand_in_is_the_same_from_the_same_seed(tmp_path: Path) -> None:
    for name, seed in {"one": 1, "again": 1, "other": 2}.items():
        write_table(tmp_path / name, made_elec2(200, seed=seed))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes() != (tmp_path / "other").read_bytes()


def test_data_that_are_not_there_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoDataError, match=r"elec2\.csv\.gz"):
        data_path("elec2", tmp_path)
    assert main_job.main(["--data", str(tmp_path)]) == 2
    assert "--data" in capsys.readouterr().err


# ---------------------------------------------------------------- benchmarks run on the stand-ins


@pytest.mark.long
def test_vicprice_of_the_stand_in_is_needed_after_the_drift_only(tmp_path: Path) -> None:
    write_table(tmp_path / "elec2.csv.gz", made_elec2(4000, drift=1000))
    run = isage_elec2.electricity(1, Settings(tmp_path), n=4000, n_models=1, n_samples=1, change=1000)
    assert run.values["iPFI vicprice, largest before"] == 0.0
    assert run.values["iPFI vicprice, last"] > 0.005


@pytest.mark.long
def test_a_regression_runs_on_the_stand_in(tmp_path: Path) -> None:
    write_table(tmp_path / "california_housing.csv.gz", made_california_housing(2000))
    values = isage_static.static("california", 1, Settings(tmp_path), n=200, n_batch=60).values
    assert values["rank of batch SAGE's first, alpha 0.001"] == 1.0


@pytest.mark.long
@pytest.mark.embedded
def test_the_main_job_runs_on_the_stand_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main_job.main(["--data", "made", "--rows", "400", "--broker", "embedded"]) == 0
    assert "400 sent = 400 consumed = 400 explained + 0 dead letters" in capsys.readouterr().out
