"""Every verdict against one that is worked out from the whole history, with a copy of the model after each step."""

import math
import pickle
import statistics

import pytest

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation, NotConfirmed
from tests.explainers.streams_of_change import Cells, bits

K = 100


def brier(p, y):
    return sum((q - (label == y)) ** 2 for label, q in p.items())


def naive_error(values):
    n, found = len(values), []
    for size in {1, int(math.sqrt(n)), n // 8} - {0}:
        blocks = [statistics.fmean(values[i : i + size]) for i in range(0, n - size + 1, size)]
        if size == 1 or len(blocks) > 3:
            found.append(statistics.stdev(blocks) / math.sqrt(len(blocks)))
    return max(found)


class History:
    """Everything that happened: observation n is at the place n."""

    def __init__(self):
        self.rows, self.predictions, self.models = [None], [None], [None]

    def add(self, x, y, y_pred, model):
        self.rows.append((x, y))
        self.predictions.append(dict(y_pred))
        self.models.append(pickle.loads(pickle.dumps(model)))

    def reference_losses(self, reference, numbers):
        model = self.models[reference]
        return [brier(model.predict_proba_one(self.rows[n][0]), self.rows[n][1]) for n in numbers]

    def model_losses(self, numbers):
        return [brier(self.predictions[n], self.rows[n][1]) for n in numbers]

    def discrepancy(self, reference, numbers):
        model = self.models[reference]
        pairs = [(model.predict_proba_one(self.rows[n][0]), self.predictions[n]) for n in numbers]
        apart = statistics.fmean(0.5 * sum(abs(a[label] - b[label]) for label in a) for a, b in pairs)
        ys = [self.rows[n][1] for n in numbers]
        differ = [a != b for i, a in enumerate(ys) for b in ys[:i]]
        return apart / statistics.fmean(differ)


def run(seed, second):
    model, history = Cells("abc", rate=0.02), History()
    change = ChangeExplainer(model, window=K, distance="probability", importances=(), seed=seed)
    events = []
    for x, y in bits(2500, lambda x, t: x["a"] if t < 1200 else second(x), seed=seed, flips=0.15):
        y_pred = model.predict_proba_one(x)
        model.learn_one(x, y)
        history.add(x, y, y_pred, model)
        events += change.update(x, y, y_pred)
    return history, events


def baseline(alarms, event):
    """The observations of the reference's first losses, with the gaps before earlier alarms of the same reference."""
    gaps = [n for n in alarms if event.reference_observation < n < event.n_detected]
    numbers = []
    for n in range(event.reference_observation + 1, event.n_observations - K + 1):
        # An observation enters when it leaves the window, and not while an alarm is examined that it is too near to.
        blocked = any(a < n + K <= a + K and n > a - K // 5 for a in (*gaps, event.n_detected))
        if not blocked and len(numbers) < 4 * K:
            numbers.append(n)
    return numbers


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("second", [lambda x: x["b"], lambda x: x["a"]], ids=["drift", "no drift"])
@pytest.mark.share(3, "seed", "second")
def test_the_losses_are_those_of_the_whole_history(seed, second):
    history, events = run(seed, second)
    alarms = [e.n_observations for e in events if isinstance(e, Alarm)]
    judged = [e for e in events if isinstance(e, (ChangeExplanation, NotConfirmed)) and e.closes is not None]
    assert len(judged) == len(alarms)
    assert not judged or judged[0].closes == alarms[0]
    for event in judged:
        if event.n_observations != event.n_detected + K:
            continue  # a second look
        now = range(event.n_detected + 1, event.n_detected + K + 1)
        later = range(event.n_detected + K // 2 + 1, event.n_detected + K + 1)
        reference = event.reference_observation
        then = history.reference_losses(reference, baseline(alarms, event))
        losses = history.reference_losses(reference, now)
        ours = history.model_losses(later)
        gains = [a - b for a, b in zip(losses[K // 2 :], ours, strict=True)]
        found = event.losses
        for estimate, values in (
            (found.reference_then, then), (found.reference_now, losses), (found.model_now, ours), (found.gain, gains)
        ):  # fmt: skip
            assert estimate.n == len(values)
            assert estimate.mean == pytest.approx(statistics.fmean(values), abs=1e-12)
            assert estimate.std_error == pytest.approx(naive_error(values), rel=1e-9)
        assert event.discrepancy == pytest.approx(history.discrepancy(reference, later), rel=1e-9)


@pytest.mark.long
def test_drift_is_told_in_most_of_them_and_nothing_else_is():
    drifts = [
        [e.n_detected for e in run(seed, lambda x: x["b"])[1] if isinstance(e, ChangeExplanation) and e.is_drift]
        for seed in range(6)
    ]
    assert all(len(found) == 1 and 1200 < found[0] < 1400 for found in drifts)
