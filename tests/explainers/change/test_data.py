"""An alarm where the model has not changed: explained as a change of the data where the importances say so."""

import pytest

from tests.explainers.naive_change import Scheduled, found_in, observations, scripted

K = 40


def constant(n, seed=1):
    """Observations in which `a` is 1: permuting it changes nothing."""
    return [({**x, "a": 1}, 1) for x, _ in observations(n, seed)]


@pytest.mark.parametrize("importances", [("pfi",), ("sage",), ("sage", "pfi")])
def test_a_change_of_the_data_alone_is_said_and_the_reference_model_stays(monkeypatch, importances):
    # A frozen model, right all along; from K + 31 on `a` varies no more, and its importance is gone. The 30 before are
    # enough to know that the model has memorised nothing.
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [31, 110], window=K, explain_data=True, importances=importances)
    stream = [*observations(K + 30), *constant(60), *observations(100, seed=2)]
    found = found_in(change, model, stream)
    assert [(n, e.n_detected) for n, e in found.items()] == [(2 * K + 30, K + 31), (K + 110 + K - 1, K + 110)]
    first, second = found.values()
    for explanation in found.values():
        assert (explanation.kind, explanation.route) == ("data", "detector")
        assert (explanation.discrepancy, explanation.n_discrepancy) == (0.0, 2 * K)
        assert (explanation.cause, explanation.reference_observation) == ("data", K)
        assert explanation.model_part == {"a": 0.0, "b": 0.0}
        assert explanation.delta == explanation.data_part
    assert first.before["a"] > 0.1 > first.after["a"] == 0.0
    # The second is against the data of the first, which are the reference's now.
    assert second.before == first.after
    assert second.after["a"] > 0.1
    assert (change.n_data_changes, change.n_explained, change.n_rejected) == (2, 0, 0)
    assert change.reference_observation == K
    assert change.reference[importances[0]].importance == second.after
    assert change.snapshot()["reference"]["data"] == stream[K + 110 - 1 : K + 110 + K - 1]
    # Of the model nothing is new: its discrepancy goes on.
    assert change.n_discrepancy == len(stream) - K
    assert "the data of the model changed" in first.sentence()


def test_it_is_not_said_without_being_asked_for(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [31], window=K)
    assert found_in(change, model, [*observations(K + 30), *constant(60)]) == {}
    assert (change.n_data_changes, change.n_rejected) == (0, 1)
    assert change.snapshot()["reference"]["data"] == observations(K)


def test_where_nothing_differs_the_alarm_is_rejected(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [31, 90], window=K, explain_data=True)
    stream = constant(200)
    assert found_in(change, model, stream) == {}
    assert (change.n_data_changes, change.n_rejected) == (0, 2)
    assert [r.n_detected for r in change.rejected] == [K + 31, K + 90]
    assert {r.discrepancy for r in change.rejected} == {0.0}
    assert change.snapshot()["reference"]["data"] == stream[:K]


def test_data_of_one_distribution_are_seldom_a_change(monkeypatch):
    # 50 alarms, each looked into on data of its own: at the level 0.05 more than 9 come once in a thousand.
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, range(31, 10**5), window=K, explain_data=True, max_restarts=0)
    found_in(change, model, observations(51 * K + 30, seed=5))
    assert change.n_rejected + change.n_data_changes == change.n_alarms["detector"] == 50
    assert change.n_data_changes <= 9


def test_the_reference_model_stays_so_that_slow_change_cannot_creep_by(monkeypatch):
    # Data change, then the model changes a little on each: after the first it still is compared with the first one.
    model = Scheduled((0, "a"), (3 * K + 10, "not a"))
    change = scripted(monkeypatch, model, [31, 2 * K + 20], window=K, threshold=0.3, explain_data=True)
    found = found_in(change, model, [*observations(K + 30), *constant(70), *observations(120, seed=4)])
    assert next(iter(found.values())).kind == "data"
    model_changes = [e for e in found.values() if e.kind == "model"]
    assert [e.reference_observation for e in model_changes] == [K]
    assert model_changes[0].discrepancy == 1.0


def test_quiet_and_cooldown_follow_a_change_of_the_data_too(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(
        monkeypatch, model, range(1 + 30, 10**4), window=K, explain_data=True, cooldown=30, max_restarts=0
    )
    found = found_in(change, model, [*observations(K + 30), *constant(130)])
    assert list(found) == [K + 31 + K - 1]
    # The next alarm, rejected, is the first after the cooldown.
    assert [r.n_detected for r in change.rejected] == [K + 31 + K - 1 + 31]
    assert change.n_alarms["detector"] == 2


@pytest.mark.parametrize("first", [19, 20, 21])
def test_with_less_than_half_a_window_after_the_reference_what_it_memorised_is_not_known(monkeypatch, first):
    # `first` observations that are not collected: 20 are enough.
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [first + 1], window=K, explain_data=True)
    found_in(change, model, [*observations(K + first), *constant(60)])
    assert change.n_data_changes == (first >= 20)
    assert change.n_rejected == (first < 20)


def test_data_that_become_easier_and_then_change_again_are_both_said(monkeypatch):
    # Label noise of one in three at first, none later: the model, frozen, has memorised nothing at any time.
    window = 200
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [window + 1, 2 * window + 1], window=window, explain_data=True)
    noisy = [(x, 1 - y if i % 3 == 0 else y) for i, (x, y) in enumerate(observations(2 * window))]
    easy = observations(window, seed=3)
    rare = [({**x, "a": int(i % 8 == 0)}, int(i % 8 == 0)) for i, (x, _) in enumerate(observations(window, seed=4))]
    found = found_in(change, model, [*noisy, *easy, *rare])
    assert [e.kind for e in found.values()] == ["data", "data"]
    # Of the second: the reference had not learnt the data of the first either.
    assert found[4 * window].first.memorised == 0.0
