"""Assessment of each model: its state, and how much attention it needs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import translate

from ....config.models import ModelConfig
from ....config.settings import Config
from ....config.templates import IDLE_S
from ...answers.incidents import IncidentRow
from ...answers.models import Mode, State
from ...store.rows import StoredExplainer, StoredModel, StoredReason
from ...store.store import Store
from ..choosing import explainer_of, mode_of
from ..incidents import row_of, urgency
from ..numbers import dated, known

SILENT_AFTER_MS = 600_000
"""A model of which nothing was said for so long is silent: statuses come every 30 s while observations do."""

FAILURES = frozenset(("model_failed", "prediction_not_finite", "ended_worker"))
"""Reasons of dead letters that lie in the model, and not in the record."""

FAILING_FROM = 20
"""Dead letters for such reasons from which on a model is failing: the last is of after the last importance, and no
status says that it takes any observation."""

_STATUS_MS = 60_000

MOST_OPEN = 10_000
"""Incidents of the fleet that are open and are looked at, the newest."""


@dataclass(slots=True)
class Assessed:
    """A model with the findings on it.

    Attributes
    ----------
    settings
        None where the configuration does not know the model.
    explainer
        Whose importances are shown; None before there are any.
    incident
        The incident that is open, the worst where there are several; None where none is.
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
    incident: IncidentRow | None
    silent_ms: int | None
    shift: float | None
    n_waiting: int | None
    n_dead_letters: int
    last_ms: int | None

    @property
    def attention(self) -> tuple[int, tuple[int, ...], float, str]:
        """Sort key that puts models in the greatest need of attention first.

        Refused or failing; an incident that is open and bad, the worst and newest first; one that is being confirmed;
        a mirror that is not to be believed; silent; learning; then the others by how much importance has moved.
        """
        if self.state == "refused" or self.is_failing:
            group = 0
        elif self.state == "incident":
            group = 1
        elif self.state == "suspected":
            group = 2
        elif self.is_unfaithful:
            group = 3
        elif self.state == "silent":
            group = 4
        else:
            group = 5 if self.state == "learning" else 6
        worst = () if self.incident is None or group > 2 else urgency(self.incident)
        return group, worst, -(self.shift or 0.0), self.model.model_id


class Assessor:
    """Assessor of models, which queries the store once for the whole fleet.

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
        self.open: dict[str, IncidentRow] = {}
        """Model id to the incident that is open, the worst where there are several."""
        self.reasons: defaultdict[str, list[StoredReason]] = defaultdict(list)
        """Model id to its dead letters in the window."""
        rows = map(row_of, store.incidents(model_id, is_open=True, last=MOST_OPEN))
        for row in sorted(rows, key=urgency):
            self.open.setdefault(row.model_id, row)
        for reason in store.dead_letters(model_id, start_ms=self.start_ms):
            self.reasons[reason.model_id].append(reason)

    @property
    def n_dead_letters(self) -> int:
        """Number of dead letters in the window, also of no model."""
        return sum(reason.n for reasons in self.reasons.values() for reason in reasons)

    def fleet(self, models: Iterable[StoredModel]) -> list[Assessed]:
        """Return the assessment of each model that exists.

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
        """Return the assessment of a model."""
        model_id, finder = model.model_id, self._config.finder
        entry = finder.name_of(model_id)
        settings = None if entry is None else self._config.models[entry]
        template = None if entry == model_id else entry
        explainer, mode = explainer_of(model, settings), mode_of(model, settings)
        incident = self.open.get(model_id)
        last_ms = dated(max(filter(None, (model.last_ms, model.status_ms)), default=None))
        silent_ms = self._silent(last_ms, None if template is None else settings)
        fidelity = None if explainer is None else known(explainer.scalars.get("fidelity"))
        return Assessed(
            model=model,
            settings=settings,
            template=template,
            mode=mode,
            explainer=explainer,
            state=_state(model, incident, silent_ms),
            is_failing=self._is_failing(model),
            is_unfaithful=mode == "mirror"
            and fidelity is not None
            and fidelity < (_FIDELITY if settings is None else settings.fidelity),
            incident=incident,
            silent_ms=silent_ms,
            shift=None if explainer is None else known(explainer.scalars.get("shift")),
            n_waiting=count_of(model, explainer, "n_waiting"),
            n_dead_letters=sum(reason.n for reason in self.reasons.get(model_id, ())),
            last_ms=last_ms,
        )

    def _silent(self, last_ms: int | None, template: ModelConfig | None) -> int | None:
        """Return for how long a model was silent, if that is long.

        A model of a template may rest longer: for as long as its template's `idle`.
        """
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


def count_of(model: StoredModel, explainer: StoredExplainer | None, name: str) -> int | None:
    """Return a count from the status or the importances, whichever is later.

    None where neither has it.
    """
    told = model.status.get(name)
    scalar = None if explainer is None else known(explainer.scalars.get(name))
    event = None if scalar is None else round(scalar)
    said = told if isinstance(told, int) else None
    if said is None or event is None:
        return event if said is None else said
    is_later = explainer is not None and (explainer.last_ms or 0) > (model.status_ms or 0)
    return event if is_later else said


def _state(model: StoredModel, incident: IncidentRow | None, silent_ms: int | None) -> State:
    if model.status.get("state") == "refused":
        return "refused"
    if incident is not None and incident.standing in ("bad", "suspected"):
        return "incident" if incident.standing == "bad" else "suspected"
    if silent_ms is not None:
        return "silent"
    return "explained" if model.explainers else "learning"


def matching(assessed: Collection[Assessed], wanted: str) -> list[Assessed]:
    """Return the models whose id or template's name contains a text.

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
