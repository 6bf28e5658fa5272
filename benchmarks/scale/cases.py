"""Says what is measured: cases of models and streams, and the subjects that stand side by side in each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.scale.records import model_id

HERE = Path(__file__).resolve().parents[2]

N_SAMPLES = 10

MODELS: dict[str, list[dict[str, Any]]] = {
    "logreg": [
        {"class": "river.preprocessing.StandardScaler"},
        {"class": "river.linear_model.LogisticRegression"},
    ],
    "arf10": [{"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}}],
    "nothing": [{"class": "nothing.Nothing"}],
}

NOTHING = '''\
"""A model that does nothing: what a worker takes with it, it takes without any model."""

from river import base


class Nothing(base.Classifier):
    """Predicts the same of everything, and learns nothing."""

    def learn_one(self, x, y):
        """Do nothing."""

    def predict_proba_one(self, x):
        """Return the same each time."""
        return {False: 0.4, True: 0.6}
'''
"""The module of the model that does nothing, beside the worker's configuration."""


@dataclass(frozen=True)
class Case:
    """A stream, the models that learn on it, and who shares the work.

    Parameters
    ----------
    first, last
        Records between which is measured, counted over all partitions; the topic has some more.
    own_prefix
        First part of the names of topics that it shares with no other case.
    """

    name: str
    model: str
    features: int
    models: int
    workers: int
    partitions: int
    first: int
    last: int
    own_prefix: str | None = None

    @property
    def prefix(self) -> str:
        """First part of the names of its topics, which all cases with the same stream share."""
        return self.own_prefix or f"scale-d{self.features}-m{self.models}-p{self.partitions}"

    @property
    def filled(self) -> int:
        """Records of the topic."""
        return self.last + self.last // 20


@dataclass(frozen=True)
class Subject:
    """What stands beside the others: a loop by its module, or a worker by its explainers.

    Parameters
    ----------
    settings
        Of a worker: what its configuration says of each model beside what it is; None of a loop.
    model
        Of a worker: another model than that of the case.
    sections
        Of a worker: further sections of its configuration.
    """

    name: str
    module: str | None = None
    n_samples: int = 0
    settings: dict[str, Any] | None = None
    model: str | None = None
    sections: dict[str, Any] | None = None

    @property
    def is_worker(self) -> bool:
        """Whether it is the product's worker."""
        return self.module is None


_PFI = {"pfi": {"n_samples": N_SAMPLES}}
_SAGE = {"sage": {"n_samples": N_SAMPLES}}
EVERYTHING = f"iPFI {N_SAMPLES}, iSAGE {N_SAMPLES}, change"
"""Of a worker that explains by both, and explains changes."""


def loops() -> dict[str, Subject]:
    """Return the subjects that are not the product, as far as they are installed, by name."""
    found = [Subject("bare Faust agent", "bare")]
    if find_spec("confluent_kafka"):
        found.append(Subject("confluent-kafka, learn", "confluent"))
        if find_spec("ixai"):
            found.append(Subject("confluent-kafka, iXAI 10", "confluent", N_SAMPLES))
    return {one.name: one for one in found}


def missing() -> list[str]:
    """Return what is not installed, of what the worker is compared with."""
    return [
        name for name, module in (("confluent-kafka", "confluent_kafka"), ("iXAI", "ixai")) if not find_spec(module)
    ]


def workers() -> dict[str, Subject]:
    """Return the product's subjects, by name."""
    nothing_watched: dict[str, Any] = {"explainers": {}, "change": None, "watch_loss": False, "quality": []}
    found = [
        Subject("worker, learn", settings={"explainers": {}, "change": None}),
        Subject("worker, learn, nothing watched", settings=nothing_watched),
        Subject("worker, iPFI 10", n_samples=N_SAMPLES, settings={"explainers": _PFI, "change": None}),
        Subject(f"worker, {EVERYTHING}", settings={"explainers": {**_PFI, **_SAGE}}),
        Subject("worker, default", settings={}),
        Subject(
            "worker, learn, no model",
            settings=nothing_watched,
            model="nothing",
        ),
    ]
    return {one.name: one for one in found}


def configuration(case: Case, subject: Subject, brokers: str, group: str, **more: Any) -> dict[str, Any]:
    """Return the configuration of a worker, as it would stand in the file.

    Parameters
    ----------
    more
        Sections that are added, or replaced.
    """
    kind = subject.model or case.model
    model: dict[str, Any] = {"model": MODELS[kind], **(subject.settings or {})}
    if subject.settings:  # the default configuration declares nothing
        model["features"] = {f"f{k}": "number" for k in range(case.features)}
    made: dict[str, Any] = {
        "kafka": {"brokers": [brokers], "group": group, "topic_prefix": case.prefix, "partitions": case.partitions},
        "models": {model_id(number): model for number in range(case.models)},
        "log": {"level": "WARNING"},
    }
    if kind == "nothing":
        made["state"] = {"allowed": ["nothing."]}
    for section, keys in {**(subject.sections or {}), **more}.items():
        made[section] = {**made.get(section, {}), **keys} if isinstance(keys, dict) else keys
    return made


def cases(n: int) -> dict[str, Case]:
    """Return the cases by name, with so many measured records in that of one light model.

    The others have as many as take about the same time, or as each of 10 000 models needs to be met again.
    """
    made = [
        Case("one", "logreg", 10, 1, 1, 1, n // 5, n + n // 5),
        Case("wide", "logreg", 100, 1, 1, 1, n // 10, n // 3),
        Case("many", "logreg", 10, 10_000, 1, 1, 20_000, 20_000 + max(n, 10_000)),
        Case("forest", "arf10", 10, 2, 1, 2, n // 30, n // 6),
        Case("forest, 2 workers", "arf10", 10, 2, 2, 2, n // 30, n // 6),
    ]
    return {one.name: one for one in made}
