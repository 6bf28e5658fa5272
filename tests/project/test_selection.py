"""Which tests run when: `make test` leaves out the long ones, `make test-all` and CI only what `make proofs` runs."""

import itertools
import re
from pathlib import Path

import pytest

from tests.proofs import PROOFS
from tests.shares import in_share

ROOT = Path(__file__).resolve().parents[2]


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert found is not None
    return found[1]


def test_every_day_one_path_on_kafka_is_run_and_no_other_integration_test() -> None:
    every_day = {
        path.name
        for path in (ROOT / "tests" / "integration").glob("test_*.py")
        if not re.search(r"^pytestmark = .*pytest\.mark\.long\b", path.read_text(), flags=re.MULTILINE)
    }
    assert every_day == {"test_one_path.py"}


def test_only_long_tests_are_left_out_by_make_test_and_only_proofs_by_ci() -> None:
    (everyday,) = recipe("test").splitlines()
    *before, every = recipe("test-all").splitlines()
    (proofs,) = recipe("proofs").splitlines()
    assert '-m "not long"' in everyday
    assert every == everyday.replace("not long", "not proof")
    assert proofs == everyday.replace('"not long"', "proof")
    assert [line for line in before if line and "-p tests.plain_core" not in line] == []


def test_each_proof_is_there_and_so_is_what_shows_something_near() -> None:
    for name, near in PROOFS.items():
        file, *parts = name.split("::")
        text = (ROOT / file).read_text()
        for part in parts:
            assert re.search(rf"(def|class) {re.escape(part.split('[')[0])}\b", text), name
        assert (ROOT / near).exists()
        assert near not in PROOFS


def test_ci_runs_its_tests_last() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make ")]
    assert commands[-1] == "make test-all"
    assert "make test" not in commands


@pytest.mark.parametrize("sizes", [(1,), (5,), (2, 15), (4, 3), (4, 4, 2), (2, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("of", [2, 3, 5])
def test_a_share_of_the_combinations_has_every_value_of_each_parameter(of: int, sizes: tuple[int, ...]) -> None:
    combinations = [list(one) for one in itertools.product(*map(range, sizes))]
    chosen = list(itertools.compress(combinations, in_share(of, combinations)))
    assert [set(values) for values in zip(*chosen, strict=True)] == [set(range(size)) for size in sizes]
    assert len(chosen) < len(combinations) or len(sizes) == 1
    if min(sizes) >= of:
        assert len(chosen) * of == len(combinations) or len(sizes) == 1
