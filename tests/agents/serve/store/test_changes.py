"""Changes: which belong together, and which are open."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from attributary_agents.serve.answers.changes import ChangeRow
from attributary_agents.serve.store.change_rows import change_row
from attributary_agents.serve.store.store import Store

from .events import T0, change


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as store:
        yield store


CHAINS = {
    "alarm, explained": [("alarm", False), ("explanation", False)],
    "alarm, not confirmed": [("alarm", False), ("not_confirmed", False)],
    "alarm": [("alarm", True)],
    "shift": [("importance_shift", True)],
    "shift, over": [("importance_shift", False), ("importance_shift_released", False)],
    "loss": [("loss_shift", True)],
    "loss, explained": [("loss_shift", True), ("loss_shift_explained", False)],
    "loss, over": [("loss_shift", False), ("loss_shift_explained", False), ("loss_shift_released", False)],
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_what_closes_an_event_closes_it_whatever_comes_first(store: Store, name: str, is_reversed: bool) -> None:
    kinds = CHAINS[name]
    records = [change(f"id-{n}", event, T0 + n, closes="id-0" if n else None) for n, (event, _) in enumerate(kinds)]
    for record in reversed(records) if is_reversed else records:
        store.take([record])
    chain = store.chain(f"id-{len(kinds) - 1}")
    assert chain == store.chain("id-0")
    assert [(one.event["event"], one.is_open) for one in chain] == kinds
    closers = [None, *("id-0" if event != "loss_shift_explained" else None for event, _ in kinds[1:])]
    assert [one.closes for one in chain] == closers


def test_an_end_whose_beginning_is_not_kept_stands_alone(store: Store) -> None:
    store.take([change("end", "explanation", T0, closes="gone")])
    assert [one.id for one in store.chain("end")] == ["end"]
    assert store.chain("gone") == []
    found = store.change("end")
    assert found is not None
    assert (found.closes, found.is_open) == ("gone", False)


def test_lists_are_of_a_model_a_window_and_kinds_the_newest_first(store: Store) -> None:
    store.take([change(f"a{n}", "alarm", T0 + n) for n in range(4)])
    store.take([change("e", "explanation", T0 + 9, closes="a1"), change("x", "alarm", T0 + 5, model_id="bikes")])
    store.take([change("a0", "alarm", T0 + 77)])  # once more

    def ids(**wanted: object) -> list[str]:
        found = [one.id for one in store.changes(**wanted)]  # type: ignore[arg-type]
        counted = {key: value for key, value in wanted.items() if key not in ("is_open", "last")}
        if counted == wanted:
            assert store.n_changes(**wanted) == len(found)  # type: ignore[arg-type]
        return found

    assert ids() == ["e", "x", "a3", "a2", "a1", "a0"]
    assert ids(model_id="bank", last=2) == ["e", "a3"]
    assert ids(start_ms=T0 + 2, end_ms=T0 + 5) == ["x", "a3", "a2"]
    assert ids(model_id="bank", events=("alarm",), is_open=True) == ["a3", "a2", "a0"]
    assert ids(is_open=False) == ["e", "a1"]


def test_a_page_is_told_the_row_of_it(store: Store) -> None:
    (told,) = store.take([change("a", "alarm", T0, route="detector", model_version_before="1", verdict=None)])
    row = ChangeRow(**json.loads(told.data))
    assert (told.event, told.model_id, row.id, row.is_open) == ("change", "bank", "a", True)
    assert (row.route, row.verdict, row.sentence, row.time_ms) == ("detector", None, "alarm of bank", T0)
    found = store.change("a")
    assert found is not None
    assert ChangeRow(**change_row(found)) == row


def test_the_verdict_of_a_shift_of_the_loss_is_its_kind(store: Store) -> None:
    store.take([change("l", "loss_shift", T0, kind="worse")])
    found = store.change("l")
    assert found is not None
    assert change_row(found)["verdict"] == "worse"
