"""One pass of a model over a stream, with many change explainers beside it: what each declared, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from attributary_explainers import Alarm, ChangeExplainer, NotConfirmed
from benchmarks.change.settings import Setting, settings_of_run
from benchmarks.change.shared import SharedModel
from benchmarks.change.streams import Stream
from benchmarks.data import Observation


class Explainer(Protocol):
    """What is read of a change explainer."""

    def update(self, x: Any, y: Any, y_pred: Any) -> Any:
        """Take in an observation; return the events, or the paper's explanation or None."""


@dataclass(frozen=True)
class Declared:
    """An explanation: its alarm, its observation, its route, and the discrepancy in the explainer's unit."""

    n_detected: int
    n: int
    route: str
    discrepancy: float


@dataclass
class Record:
    """What one explainer did on one stream; observations are counted from 1."""

    alarms: list[int] = field(default_factory=list)
    """Observations of its alarms; the paper's procedure tells those alone that are explained."""
    rejected: list[int] = field(default_factory=list)
    """Alarms that were not confirmed."""
    explained: list[Declared] = field(default_factory=list)
    """What was told as drift; of the paper's procedure, every explanation."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def follow(
    shared: SharedModel, observations: Iterable[Observation], explainers: Mapping[str, Explainer]
) -> dict[str, Record]:
    """Predict, learn, and update every explainer; a record of each."""
    records = {name: Record() for name in explainers}
    for n, (x, y) in enumerate(observations, start=1):
        y_pred = shared.predict_proba_one(x)
        shared.learn_one(x, y)
        for name, explainer in explainers.items():
            record = records[name]
            for event in _events(explainer, explainer.update(x, y, y_pred)):
                if isinstance(event, Alarm):
                    record.alarms.append(event.n_observations)
                elif isinstance(event, NotConfirmed):
                    record.rejected.append(event.closes)
                elif event.is_drift or event.verdict is None:
                    record.explained.append(Declared(event.n_detected, n, event.route, event.discrepancy))
                    if event.verdict is None:
                        record.alarms.append(event.n_detected)
    return records


def _events(explainer: Explainer, told: Any) -> tuple[Any, ...]:
    """Return what is told; an explanation is not waited for: delays are those of verdicts."""
    if isinstance(told, tuple):
        return (*told, *(explainer.finish() if isinstance(explainer, ChangeExplainer) else ()))
    return () if told is None else (told,)


def seed_of(index: int) -> int:
    """Seed of a run; streams take the two that follow, too."""
    return 10 * index


def run(stream: Stream, index: int, settings: Iterable[Setting] | None = None) -> dict[str, Record]:
    """One run of a stream with all settings, or these, by their names."""
    seed = seed_of(index)
    shared = SharedModel(stream.model(seed))
    taken = settings_of_run(index, stream.slow_model) if settings is None else settings
    explainers = {setting.name: setting.make(shared, seed) for setting in taken}
    return follow(shared, stream.observations(seed), explainers)
