"""One label of another kind, once, to models of River that raise for ever when they have learnt it."""

from __future__ import annotations

import json
import random
from typing import Any

from support.kafka import produce, read_all

from benchmarks.hostile.lab import Found, attack

from ..lab import Lab

_TREE: dict[str, Any] = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 50}}
MODELS: dict[str, Any] = {
    "forest": {"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}},
    "tree": _TREE,
    "srp": {"class": "river.ensemble.SRPClassifier", "params": {"n_models": 3, "seed": 1, "model": _TREE}},
    "bagging": {"class": "river.ensemble.ADWINBaggingClassifier", "params": {"n_models": 3, "seed": 1, "model": _TREE}},
    "bayes": {"class": "river.naive_bayes.GaussianNB"},
}
_CHEAP = {"explainers": {"pfi": {"n_samples": 2}}, "change": None}
_BEFORE, _BEHIND, _AFTER = 300, 100, 50


def _observations(rng: random.Random, n: int) -> list[tuple[bytes, bytes, list[Any]]]:
    made: list[tuple[bytes, bytes, list[Any]]] = []
    for _ in range(n):
        x = {name: rng.random() for name in "abc"}
        value = json.dumps({"x": x, "y": x["a"] + 0.1 * rng.random() > 0.5}).encode()
        made += [(model_id.encode(), value, []) for model_id in MODELS]
    return made


def _lost(lab: Lab, **settings: Any) -> tuple[int, int, dict[str, int]]:
    """Send the wrong label to a worker and restart it; return lost records, the most of a model, and all by reason."""
    raw, config = lab.configure({name: {"model": model, **_CHEAP, **settings} for name, model in MODELS.items()})
    topics, rng = config.kafka.topics, random.Random(7)
    wrong = json.dumps({"x": {"a": 0.9, "b": 0.5, "c": 0.5}, "y": "true"}).encode()
    first = [*_observations(rng, _BEFORE), *((name.encode(), wrong, []) for name in MODELS)]
    first += _observations(rng, _BEHIND)
    second = _observations(rng, _AFTER)
    for records, n in ((first, len(first)), (second, len(second))):
        produce(lab.broker.bootstrap, topics.observations, records)
        with lab.worker(raw) as worker:
            worker.wait_consumed(n if records is first else len(first) + n, timeout_s=60)
            worker.stop()
    letters = read_all(lab.broker.bootstrap, topics.dead_letters)
    of_model = dict.fromkeys(MODELS, 0)
    reasons: dict[str, int] = {}
    for letter in letters:
        of_model[letter.key.decode()] += letter.value != wrong
        reason = dict(letter.headers)["attributary-dlq-reason"].decode()
        reasons[reason] = reasons.get(reason, 0) + 1
    return sum(of_model.values()), max(of_model.values()), reasons


_GOOD = _BEHIND + _AFTER


@attack("label", 'one "true" among booleans, to five classifiers, and a restart')
def label(lab: Lab) -> Found:
    """A label of another kind is refused before anything is learnt."""
    lost, _, reasons = _lost(lab)
    figure = (
        f"{reasons.get('wrong_type', 0)} dead letters for {len(MODELS)} models, {lost} of {_GOOD * len(MODELS)} lost"
    )
    return Found(figure, reasons == {"wrong_type": len(MODELS)})


@attack("label-any", "the same, where `label: any` lets it through to the models")
def label_any(lab: Lab) -> Found:
    """A model that fails on whatever comes goes back to its last good state."""
    _, most, _ = _lost(lab, label="any")
    return Found(f"{most} of {_GOOD} lost of a model at most", most <= 2)
