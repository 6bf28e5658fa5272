"""State of a model: its version, explainers, counts, and their rules.

Each field of `ModelState` is declared once, with a rule that says how it begins, how long it is kept, and how it is
stored. New states, stored states and new versions follow from these rules.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

from attributary_explainers import (
    ChangeExplainer,
    Explainers,
    ImportanceShift,
    Loss,
    Quality,
    RemovalExplainer,
    SmoothedMean,
    SmoothedPrediction,
    dump_model,
    resolve_loss,
)
from attributary_explainers.models.learning import Learn, learn_function
from attributary_explainers.monitor.explainers import (
    new_change_explainer,
    new_explainer,
    new_loss_watch,
    new_shift_watches,
)
from attributary_explainers.monitor.incident_watch import IncidentWatch, new_incident_watch
from attributary_explainers.monitor.joiner import Late, restored
from attributary_explainers.monitor.loss_watch import LossWatch
from attributary_explainers.monitor.mismatch import Mismatch
from attributary_explainers.monitor.publication import Publication, new_publications
from attributary_explainers.monitor.quality import new_quality, restored_quality
from attributary_explainers.monitor.settings import Settings
from attributary_explainers.monitor.state import ModelCounts

from ..config.models import ModelConfig
from .artefacts.served.model import SERVED_NAME, ServedModel
from .dependence import Dependence
from .guards.allowlist import LateTypes
from .guards.good_state import GoodState
from .guards.known_features import KnownFeatures
from .guards.label_kinds import LabelKind
from .guards.ranges import Ranges
from .guards.vocabulary import Vocabulary
from .impurity import TreeImportance
from .rules import OF_MDI, OF_PDP, Kept, Rule, plain, ruled, same_explainers, smoothed, snapshot_of, snapshots
from .versions import Version, allowlist_of, configured_as, configured_version

logger = logging.getLogger(__name__)


TRUSTED = 1000
"""Observations of a version of a mirror before its fidelity is looked at: until then it is only becoming alike."""

_RECOVERED = 0.1
"""Part of the way from its limit to 1 that the fidelity goes up again before another fall of it is said."""


class Doubt:
    """Flag of a doubted mirror, to log the doubt once until it recovers.

    It is no part of what is stored: a worker that takes over a mirror that is doubted says it again.
    """

    def __init__(self) -> None:
        self.is_open = False

    def look(self, model_id: str, fidelity: float | None, limit: float, n_scored: int, observation: int) -> None:
        """Log that a mirror's fidelity fell below its limit, or recovered.

        Parameters
        ----------
        n_scored
            Observations of the present version that the fidelity is of.
        observation
            Number of the model's observation.
        """
        if fidelity is None or n_scored < TRUSTED:
            return
        if not self.is_open and fidelity < limit:
            self.is_open = True
            logger.warning(
                "model %s: the mirror's fidelity is %.2f, below %g (models.%s.fidelity), at its observation %d: it "
                "explains too little of the logged predictions for its importances to be those of the model in service",
                *(model_id, fidelity, limit, model_id, observation),
            )
        elif self.is_open and fidelity >= limit + _RECOVERED * (1 - limit):
            self.is_open = False
            logger.info("model %s: the mirror's fidelity is %.2f again", model_id, fidelity)


def _load_explainers(state: ModelState, _name: str, stored: dict[str, Any]) -> dict[str, RemovalExplainer]:
    for name, explainer in state.explainers.items():
        if name in stored["same"]:
            explainer.restore(stored["explainers"][name])
    return state.explainers


def _load_publications(state: ModelState, _name: str, stored: dict[str, Any]) -> dict[str, Publication]:
    for name, publication in state.publications.items():
        if name in stored["same"]:
            publication.restore(stored["publications"][name])
    return state.publications


def _load_shifts(state: ModelState, _name: str, stored: dict[str, Any]) -> dict[str, ImportanceShift]:
    for name, shift in state.shifts.items():
        known = stored["shifts"].get(name)
        # With more explainers or fewer, each has another part of the promise.
        if name in stored["same"] and known["n_explainers"] == len(state.shifts):
            shift.restore(known)
    return state.shifts


def _load_loss_watch(state: ModelState, name: str, stored: dict[str, Any]) -> LossWatch | None:
    watch, known = state.loss_watch, stored[name]
    if watch is not None and known is not None and watch.is_like(known):
        watch.restore(known)
        return watch
    return watch


def _load_incident_watch(state: ModelState, name: str, stored: dict[str, Any]) -> IncidentWatch | None:
    watch, known = state.incident_watch, stored.get(name)
    if watch is not None and known is not None and known["parameters"] == watch.parameters:
        watch, lost = IncidentWatch.from_snapshot(known), stored["loss_watch"]
        if "change" not in stored["same"]:
            watch.incidents.begin_watch("change")
        if lost is not None and not (state.loss_watch is not None and state.loss_watch.is_like(lost)):
            watch.incidents.begin_watch("loss")
        return watch
    if known is not None and (lost := IncidentWatch.from_snapshot(known)).open is not None:
        logger.warning(
            "model %s: the incident %s stays open, and nothing will close it: the model is measured in another way now",
            state.model_id,
            lost.open_id,
        )
    return watch


def _load_change(state: ModelState, _name: str, stored: dict[str, Any]) -> ChangeExplainer | None:
    if state.change is not None and "change" in stored["same"]:
        state.change.restore(stored["change"])
    return state.change


def _load_present_loss(state: ModelState, known: dict[str, Any] | None) -> SmoothedMean | None:
    if state.present_loss is None or known is None or known["weights"]["alpha"] != state.config.alpha:
        return state.present_loss
    return SmoothedMean.from_snapshot(known)


@dataclass
class ModelState:
    """State of a model: the model, its explainers, and their publication.

    `n_observations` counts those that went all the way through, `n_failed` those on which the model failed.
    """

    model_id: str
    config: ModelConfig
    current: Version
    """The version as it is now: the configuration's, or a later one by the models topic."""
    configured: dict[str, Any] = field(
        metadata=ruled(lambda _id, config, _version: configured_as(config), Kept.WITH_VERSION)
    )
    """`configured_as` of the configuration under which the version took over."""
    loss: Loss = field(
        metadata=ruled(
            lambda _id, config, version: resolve_loss(version.model, config.settings.scored_loss),
            Kept.WITH_VERSION,
            lambda loss: loss.name,
            lambda state, _name, _stored: state.loss,
        )
    )
    explainers: dict[str, RemovalExplainer] = field(
        metadata=ruled(
            lambda model_id, config, version: {
                name: new_explainer(model_id, config.settings, name, version.model)
                for name in config.explainers.by_removal
            },
            Kept.WITH_VERSION,
            snapshots,
            _load_explainers,
        )
    )
    publications: dict[str, Publication] = field(
        metadata=ruled(
            lambda _id, config, _version: new_publications(config.settings),
            Kept.WITH_MODEL,
            snapshots,
            _load_publications,
        )
    )
    shifts: dict[str, ImportanceShift] = field(
        metadata=ruled(
            lambda _id, config, _version: new_shift_watches(config.settings),
            Kept.WITH_VERSION,
            snapshots,
            _load_shifts,
        )
    )
    """By explainer: what is watched for lasting shifts of its importances."""
    loss_watch: LossWatch | None = field(
        metadata=ruled(
            lambda model_id, config, version: new_loss_watch(model_id, config.settings, version.model),
            Kept.WITH_VERSION,
            lambda watch: watch.snapshot() if watch else None,
            _load_loss_watch,
        )
    )
    """What is watched for lasting shifts of the loss; None where it is not watched."""
    incident_watch: IncidentWatch | None = field(
        metadata=ruled(
            lambda _id, config, version: new_incident_watch(config.settings, version.model),
            Kept.WITH_MODEL,
            lambda watch: watch.snapshot() if watch else None,
            _load_incident_watch,
        )
    )
    """What makes incidents of what the watches report; None of a model in shards."""
    change: ChangeExplainer | None = field(
        metadata=ruled(
            lambda model_id, config, version: new_change_explainer(
                model_id, config.settings, version.model, version.name
            ),
            Kept.WITH_VERSION,
            lambda change: change.snapshot() if change else None,
            _load_change,
        )
    )
    mdi: TreeImportance | None = field(metadata=OF_MDI)
    """What reads the mean decrease in impurity off its trees; None where it is not wanted, or the model has none."""
    pdp: Dependence | None = field(metadata=OF_PDP)
    """What follows the partial dependence; None where it is not wanted, or the model has none."""
    model_loss: SmoothedMean = field(metadata=smoothed(SmoothedMean))
    baseline_loss: SmoothedMean = field(metadata=smoothed(SmoothedMean))
    marginal: SmoothedPrediction = field(metadata=smoothed(SmoothedPrediction))
    quality: Quality | None = field(
        metadata=ruled(
            lambda _id, config, version: new_quality(config.settings, version.model),
            Kept.WITH_VERSION,
            lambda quality: quality.snapshot() if quality else None,
            lambda state, name, stored: restored_quality(state.quality, stored[name]),
        )
    )
    """Metrics by River, as the model is now and over the reference; None where none is wanted, or none fits."""
    good: GoodState = field(metadata=snapshot_of(GoodState, Kept.WITH_VERSION))
    """How the version was when it was well, to go back to."""
    labels: LabelKind = field(metadata=snapshot_of(LabelKind, Kept.WITH_MODEL))
    """Of which kind the labels are."""
    counts: ModelCounts = field(metadata=snapshot_of(ModelCounts, Kept.WITH_MODEL))
    stride: int = field(metadata=plain(lambda: 1, Kept.WITH_MODEL))
    """Within a budget, one in so many observations is explained; changed only where the state is stored."""
    n_observations: int = field(metadata=plain(int, Kept.WITH_MODEL))
    n_failed: int = field(metadata=plain(int, Kept.WITH_MODEL))
    n_missing: int = field(
        metadata=ruled(lambda *_: 0, Kept.WITH_MODEL, load=lambda _state, name, stored: stored.get(name, 0))
    )
    """Missing values in these observations, whatever the policy makes of them."""
    features: KnownFeatures = field(
        metadata=ruled(
            lambda _id, config, _version: KnownFeatures(config),
            Kept.WITH_MODEL,
            KnownFeatures.snapshot,
            lambda state, name, stored: KnownFeatures.from_snapshot(state.config, stored.get(name)),
        )
    )
    """The names of features that the model has taken; it keeps them from growing without end."""
    vocabulary: Vocabulary = field(
        metadata=ruled(
            lambda _id, config, _version: Vocabulary(config),
            Kept.WITH_VERSION,
            Vocabulary.snapshot,
            lambda state, name, stored: Vocabulary.from_snapshot(state.config, stored.get(name)),
        )
    )
    """Labels and categories that the version has met; it keeps them from growing without end."""
    n_other_categories: int = field(
        metadata=ruled(lambda *_: 0, Kept.WITH_MODEL, load=lambda _state, name, stored: stored.get(name, 0))
    )
    """Categories beyond the bound, for which `__other__` stood."""
    ranges: Ranges = field(
        metadata=ruled(
            lambda model_id, config, _version: Ranges(model_id, config),
            Kept.WITH_MODEL,
            Ranges.snapshot,
            lambda state, name, stored: Ranges.from_snapshot(state.model_id, state.config, stored.get(name)),
        )
    )
    """How large the numbers of each feature have been; it refuses those far beyond."""
    target_range: Ranges = field(
        metadata=ruled(
            lambda model_id, config, _version: Ranges(model_id, config, is_target=True),
            Kept.WITH_MODEL,
            Ranges.snapshot,
            lambda state, name, stored: Ranges.from_snapshot(
                state.model_id, state.config, stored.get(name), is_target=True
            ),
        )
    )
    """The same of the numbers that a regressor predicts."""
    last_observation_ms: int | None = field(metadata=plain(lambda: None, Kept.WITH_MODEL))
    present_loss: SmoothedMean | None = field(
        metadata=ruled(
            lambda _id, config, _version: None if config.join is None else SmoothedMean(config.alpha),
            Kept.WITH_VERSION,
            lambda mean: mean.snapshot() if mean else None,
            lambda state, name, stored: _load_present_loss(state, stored.get(name)),
        )
    )
    """Loss of the model as it is now on observations whose labels came later; None where they come with them."""
    mismatch: Mismatch = field(
        metadata=ruled(
            lambda _id, config, _version: Mismatch(config.alpha),
            Kept.WITH_VERSION,
            Mismatch.snapshot,
            lambda state, name, stored: Mismatch.from_snapshot(state.config.alpha, stored.get(name)),
        )
    )
    """How often the predictions that were logged are not the model's own."""
    late: Late | None = field(
        metadata=ruled(
            lambda _id, config, _version: Late.of(config.join),
            Kept.ALWAYS,
            lambda late: late.snapshot() if late else None,
            lambda state, name, stored: restored(state.late, state.model_id, stored.get(name)),
        )
    )
    """What waits for its label or response; None where nothing of the model ever does."""
    partition: int = field(metadata=plain(lambda: -1, Kept.ALWAYS))
    """Partition that the model's observations come on; -1 before the first."""
    offset: int = field(metadata=plain(lambda: -1, Kept.ALWAYS))
    """Offset of the last observation that is in this state; -1 before the first."""
    failed_offsets: dict[int, str] = field(metadata=plain(dict, Kept.ALWAYS))
    """Offsets since the last checkpoint on which the model failed, each with the reason of its dead letter."""
    stored_deployed: int = -1
    """`current.deployed` of the stored state, from which a replay would begin."""
    doubt: Doubt = field(init=False, repr=False, default_factory=Doubt)
    """Of a mirror: whether it was said that it is not like the model that it mirrors."""
    _together: Explainers | None = field(init=False, repr=False, default=None)
    _learn: tuple[Any, Learn] | None = field(init=False, repr=False, default=None)
    _late_types: LateTypes = field(init=False, repr=False, default_factory=LateTypes)
    _asks_endpoints: bool | None = field(init=False, repr=False, default=None)

    @cached_property
    def settings(self) -> Settings:
        """Settings for watching the model."""
        return self.config.settings

    @property
    def model(self) -> Any:
        """The model of the present version."""
        return self.current.model

    @property
    def version(self) -> str:
        """The name of the present version."""
        return self.current.name

    @property
    def explain_every(self) -> int:
        """Number of observations per explained observation.

        The observations whose number is a multiple of it are explained.
        """
        explain = self.config.explain
        return explain.every or (1 if explain.budget is None else self.stride)

    @property
    def together(self) -> Explainers:
        """Explainers, evaluated in a single batch with the prediction."""
        together = self._together
        if together is None or together.explainers != self.explainers:  # the same objects, by the same names
            together = self._together = Explainers(self.model, self.explainers, self.loss.output, self.config.missing)
        return together

    @property
    def learn(self) -> Learn:
        """Function that teaches the model an observation.

        Raises
        ------
        ModelError
            The model cannot learn.
        """
        if self._learn is None or self._learn[0] is not self.model:
            self._learn = self.model, learn_function(self.model)
        return self._learn[1]

    @property
    def evaluations(self) -> dict[str, int]:
        """Observations evaluated by this process, by path: fast or naive.

        On the naive path the model itself is asked row by row.
        """
        paths = self.together.paths
        return {"fast": paths["fast"], "naive": paths.total() - paths["fast"]}

    @property
    def asks_endpoints(self) -> bool:
        """Whether the model, or the version compared with it, is served."""
        if self._asks_endpoints is None:
            held = [self.model, None if self.change is None else self.change.snapshot()]
            self._asks_endpoints = isinstance(self.model, ServedModel) or SERVED_NAME in dump_model(held)
        return self._asks_endpoints

    @property
    def fidelity(self) -> float | None:
        """Share of the baseline loss that a mirror explains; None if unknown.

        The baseline predicts the mean. Only mirrors have a fidelity.
        """
        loss, baseline = self.model_loss.value, self.baseline_loss.value
        if self.config.mode != "mirror" or loss is None or not baseline:
            return None
        return 1.0 - loss / baseline

    def note_logged(self, logged: Any, own: Any) -> None:
        """Compare a logged prediction with the model's own, if both exist."""
        if logged is not None and own is not None:
            self.mismatch.update(logged, own)

    def refuse_deployment(self, offset: int) -> None:
        """Count a deployment as refused, and note its offset.

        The offset is that of its record in the models topic. The present version goes on.
        """
        self.counts.versions["refused"] += 1
        self.current = replace(self.current, deployed=offset)

    def with_version(self, version: Version, **given: Any) -> ModelState:
        """Return the state with another version in place of the present version.

        Parameters
        ----------
        given
            Fields that the version does not begin with its own.
        """
        begun = {
            name: rule.begin(self.model_id, self.config, version)
            for name, rule in RULES.items()
            if rule.kept is Kept.WITH_VERSION and name not in given
        }
        return replace(self, current=version, **begun, **given)

    def begin_again(self) -> None:
        """Forget all observations; keep the place in the stream and label kind."""
        try:
            first = self.good.load_first(allowlist_of(self.config).load)
        except Exception:  # noqa: BLE001 - it was stored: who can write states decides what it raises
            first = None
        version = replace(self.current, model=self.model if first is None else first)
        for name, rule in RULES.items():
            if rule.kept is not Kept.ALWAYS and name != "labels":
                setattr(self, name, rule.begin(self.model_id, self.config, version))
        if self.late is not None:
            self.late.forget_predictions()
        self.current = version

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from; the model in it is bytes of its own."""
        model = self._late_types.dump(self.model, self.model_id, partial(allowlist_of, self.config))
        return {
            "model_id": self.model_id,
            "current": {**vars(self.current), "model": model},
            **{name: rule.dump(getattr(self, name)) for name, rule in RULES.items()},
        }

    def restore(self, snapshot: dict[str, Any], *, position_only: bool = False) -> None:
        """Restore a snapshot, as far as it still fits the configuration.

        Parameters
        ----------
        position_only
            Whether to take back nothing but the place in the stream of observations.
        """
        self.stored_deployed = snapshot["current"]["deployed"]
        stored = snapshot if position_only else {**snapshot, "same": same_explainers(self, snapshot)}
        for name, rule in RULES.items():
            if rule.kept is Kept.ALWAYS or not position_only:
                setattr(self, name, rule.load(self, name, stored))


RULES: dict[str, Rule] = {one.name: one.metadata["rule"] for one in fields(ModelState) if "rule" in one.metadata}
"""The rule of each field that is stored, in the order in which they are restored."""


def new_state(model_id: str, config: ModelConfig, version: Version | None = None) -> ModelState:
    """Make the state of a model before its first observation.

    Parameters
    ----------
    version
        The version to begin with; None makes the configured one.
    """
    version = configured_version(config) if version is None else version
    begun = {name: rule.begin(model_id, config, version) for name, rule in RULES.items()}
    return ModelState(model_id, config, version, **begun)
