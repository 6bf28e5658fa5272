"""Judges how each model is doing: what of it needs attention, and how much."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import translate

from ....config.models import ModelConfig
from ....config.settings import Config
from ....config.templates import IDLE_S
from ...answers.models import Mode, State
from ...store.rows import StoredChange, StoredExplainer, StoredModel, StoredReason
from ...store.store import Store
from ..choosing import explainer_of, mode_of
from ..numbers import dated, known

SILENT_AFTER_MS = 600_000
"""A model of which nothing was said for so long is silent: statuses come every 30 s while observations do."""

CHANGES = ("explanation", "importance_shift", "loss_shift", "recovered")
"""Events that say that a model has changed: no alarm, which may not be confirmed, and no end of a shift."""

FAILURES = frozenset(("model_failed", "prediction_not_finite", "ended_worker"))
"""Reasons of dead letters that lie in the model, and not in the record."""

FAILING_FROM = 20
"""Dead letters for such reasons from which on a model is failing: the last is of after the last importance, and no
status says that it takes any observation."""

_STATUS_MS = 60_000

MOST_CHANGES = 10_000
"""Changes of the fleet that are looked at, the newest."""


@dataclass(slots=True)
class Assessed:
    """Holds a model and what was found of it.

    Attributes
    ----------
    settings
        None where the configuration does not know the model.
    explainer
        Whose importances are shown; None before there are any.
    changed
        The newest change in the window; or one that is older, if it is a shift that is open. None otherwise.
    is_old
        Whether that is such an older one.
    is_examined
        Whether an alarm is open.
    silent_ms
        For how long nothing was said of it; None where it is not silent.
    n_waiting
        Observations that wait for their labels; None where labels come with them.
    """

    model: StoredModel
    settings: ModelConfig | None
    template: str | None
    mode: Mode
    explainer: StoredExplainer | None
    state: State
    is_failing: bool
    is_unfaithful: bool
    changed: StoredChange | None
    is_old: bool
    is_examined: bool
    silent_ms: int | None
    shift: float | None
    n_open: int
    n_waiting: int | None
    n_dead_letters: int
    last_ms: int | None

    @property
    def attention(self) -> tuple[int, float, float, str]:
        """The order of attention: what comes first needs it most.

        Refused or failing; changed, the newest first; under examination; a mirror that is not to be believed; silent;
        learning; then the others by how much importance has moved.
        """
        if self.state == "refused" or self.is_failing:
            group = 0
        elif self.state == "changed":
            group = 1
        elif self.is_examined:
            group = 2
        elif self.is_unfaithful:
            group = 3
        elif self.state == "silent":
            group = 4
        else:
            group = 5 if self.state == "learning" else 6
        at = self.changed.time_ms or self.changed.observation if self.changed is not None else 0
        return group, -float(at), -(self.shift or 0.0), self.model.model_id


class Assessor:
    """Judges models by what the store has of all of them; what is asked once is asked once for the whole fleet.

    Parameters
    ----------
    now_ms, window_ms
        The moment that is looked back from, and how far; None: over all that is kept.
    model_id
        The one model that is asked for; None: all.
    """

    def __init__(
        self, store: Store, config: Config, *, now_ms: int, window_ms: int | None, model_id: str | None = None
    ) -> None:
        self._config, self._now_ms = config, now_ms
        self.start_ms = None if window_ms is None else now_ms - window_ms
        self.recent: dict[str, StoredChange] = {}
        """Model id to its newest change in the window."""
        self.open: defaultdict[str, list[StoredChange]] = defaultdict(list)
        """Model id to what is open of it, the newest first."""
        self.reasons: defaultdict[str, list[StoredReason]] = defaultdict(list)
        """Model id to its dead letters in the window."""
        changes = store.changes(model_id, start_ms=self.start_ms, events=CHANGES, last=MOST_CHANGES)
        for change in filter(is_change, changes):
            self.recent.setdefault(change.model_id, change)
        for change in store.changes(model_id, is_open=True, last=MOST_CHANGES):
            self.open[change.model_id].append(change)
        for reason in store.dead_letters(model_id, start_ms=self.start_ms):
            self.reasons[reason.model_id].append(reason)

    @property
    def n_dead_letters(self) -> int:
        """Dead letters in the window, those of no model among them."""
        return sum(reason.n for reasons in self.reasons.values() for reason in reasons)

    def fleet(self, models: Iterable[StoredModel]) -> list[Assessed]:
        """Return what is found of each model that there is.

        Ids of dead letters alone, which no configuration knows, are none.
        """
        return [
            self.judge(model)
            for model in models
            if model.explainers or model.status or model.model_id in self.open or self._is_configured(model.model_id)
        ]

    def _is_configured(self, model_id: str) -> bool:
        return self._config.finder.name_of(model_id) is not None

    def judge(self, model: StoredModel) -> Assessed:
        """Return what is found of a model."""
        model_id, finder = model.model_id, self._config.finder
        entry = finder.name_of(model_id)
        settings = None if entry is None else self._config.models[entry]
        template = None if entry == model_id else entry
        explainer, mode = explainer_of(model, settings), mode_of(model, settings)
        is_open = self.open.get(model_id, ())
        shifts = [change for change in is_open if change.event.get("event") != "alarm"]
        changed = self.recent.get(model_id) or next(iter(shifts), None)
        last_ms = dated(max(filter(None, (model.last_ms, model.status_ms)), default=None))
        silent_ms = self._silent(last_ms, None if template is None else settings)
        fidelity = None if explainer is None else known(explainer.scalars.get("fidelity"))
        return Assessed(
            model=model,
            settings=settings,
            template=template,
            mode=mode,
            explainer=explainer,
            state=_state(model, changed is not None, silent_ms),
            is_failing=self._is_failing(model),
            is_unfaithful=mode == "mirror"
            and fidelity is not None
            and fidelity < (_FIDELITY if settings is None else settings.fidelity),
            changed=changed,
            is_old=changed is not None and model_id not in self.recent,
            is_examined=len(is_open) > len(shifts),
            silent_ms=silent_ms,
            shift=None if explainer is None else known(explainer.scalars.get("shift")),
            n_open=len(is_open),
            n_waiting=count_of(model, explainer, "n_waiting"),
            n_dead_letters=sum(reason.n for reason in self.reasons.get(model_id, ())),
            last_ms=last_ms,
        )

    def _silent(self, last_ms: int | None, template: ModelConfig | None) -> int | None:
        """Return for how long nothing was said of a model, if that is long; a template's model may rest."""
        if last_ms is None:
            return None
        limit = SILENT_AFTER_MS
        if template is not None:
            limit = round((template.idle or IDLE_S) * 1000)
        silent = self._now_ms - last_ms
        return silent if silent > limit else None

    def _is_failing(self, model: StoredModel) -> bool:
        failures = [reason for reason in self.reasons.get(model.model_id, ()) if reason.reason in FAILURES]
        if sum(reason.n for reason in failures) < FAILING_FROM:
            return False
        failed = max(reason.last_ms for reason in failures)
        per_second = model.status.get("observations_per_second")
        if (model.status_ms or 0) > failed - _STATUS_MS and isinstance(per_second, int | float) and per_second > 0:
            return False  # it has taken others meanwhile
        # Times of importances are those of observations, which may be old.
        explained = max((one.last_ms for one in model.explainers if one.last_ms is not None), default=None)
        return explained is None or failed > explained


_FIDELITY: float = ModelConfig.model_fields["fidelity"].default


def is_change(change: StoredChange) -> bool:
    """Return whether an event says that a model has changed; one that has learnt more on the same data has not."""
    return change.event.get("event") in CHANGES and change.event.get("verdict") != "matured"


def count_of(model: StoredModel, explainer: StoredExplainer | None, name: str) -> int | None:
    """Return a count that both statuses and importances tell: of the later one, None where there is none."""
    told = model.status.get(name)
    scalar = None if explainer is None else known(explainer.scalars.get(name))
    event = None if scalar is None else round(scalar)
    said = told if isinstance(told, int) else None
    if said is None or event is None:
        return event if said is None else said
    is_later = explainer is not None and (explainer.last_ms or 0) > (model.status_ms or 0)
    return event if is_later else said


def _state(model: StoredModel, has_changed: bool, silent_ms: int | None) -> State:
    if model.status.get("state") == "refused":
        return "refused"
    if has_changed:
        return "changed"
    if silent_ms is not None:
        return "silent"
    return "explained" if model.explainers else "learning"


def matching(assessed: Collection[Assessed], wanted: str) -> list[Assessed]:
    """Return the models that a search finds: the text is in the id, or in the name of the template.

    With `*` or `?` it is a glob of the whole id.
    """
    text = wanted.strip().casefold()
    if not text:
        return list(assessed)
    if "*" in text or "?" in text:
        pattern = re.compile(translate(text.replace("[", "[[]")))
        return [
            one
            for one in assessed
            if pattern.match(one.model.model_id.casefold()) or text == (one.template or "").casefold()
        ]
    return [one for one in assessed if text in one.model.model_id.casefold() or text in (one.template or "").casefold()]
