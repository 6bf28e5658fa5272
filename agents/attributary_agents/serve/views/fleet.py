"""View of the fleet: all models by attention, with a summary sentence.

The sentence says whether anything is wrong.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate

from attributary_explainers.wording import show_count, show_names

from ...config.models import ModelConfig
from ...config.settings import Config
from ...config.templates import IDLE_S, is_template
from ..answers import ConfiguredModel, Fleet, IncidentLine, IncidentRow, Mode, ModelRow, State, TemplateRow, TopFeature
from ..store.rows import StoredExplainer, StoredModel, StoredReason
from ..store.store import Store
from .incidents import lines_of, row_of, urgency
from .selection import explainer_of, mode_of, model_of
from .words import counted, dated, duration, known, loss_of, name, shares, stored, when

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


SPARKS = 24
"""Shifts of a row at most."""

TOP = 5
"""Features of a row."""

_LAST_OF_MODEL = 20
"""Incidents of a model that are looked through for the last that was not withdrawn."""


def model_row(one: Assessed, store: Store, start_ms: int | None) -> ModelRow:
    """Return the row of a model.

    Parameters
    ----------
    start_ms
        Where the window begins.
    """
    model, explainer, status = one.model, one.explainer, one.model.status
    loss = None if explainer is None else loss_of(explainer.loss, explainer.loss_unit, explainer.loss_largest)
    scalars = {} if explainer is None else explainer.scalars
    per_second = status.get("observations_per_second")
    return ModelRow(
        model_id=model.model_id,
        template=one.template,
        state=one.state,
        is_failing=one.is_failing,
        mode=one.mode,
        version=_version(one),
        n_observations=_n_observations(one),
        observations_per_second=known(per_second) if isinstance(per_second, int | float) else None,
        loss=loss,
        model_loss=known(scalars.get("model_loss")),
        baseline_loss=known(scalars.get("baseline_loss")),
        present_loss=known(scalars.get("present_loss")),
        fidelity=known(scalars.get("fidelity")),
        is_unfaithful=one.is_unfaithful,
        shift=one.shift,
        shifts=[
            known(shift)
            for shift in (
                store.recent(model.model_id, explainer.explainer, "shift", start=start_ms, points=SPARKS)
                if explainer is not None
                else ()
            )
        ],
        incident=one.incident or last_incident(store, model.model_id),
        n_waiting=one.n_waiting,
        waiting_limit=_waiting_limit(one.settings),
        n_expired=count_of(model, explainer, "n_expired"),
        n_refused=_count(status.get("n_refused")),
        n_dead_letters=one.n_dead_letters,
        last_event_ms=one.last_ms,
        explainer=None if explainer is None else explainer.explainer,
        top=[] if explainer is None else top_features(explainer),
        n_features=0 if explainer is None else len(explainer.features),
    )


def top_features(explainer: StoredExplainer, most: int = TOP) -> list[TopFeature]:
    """Return the most important features of the latest event."""
    share = shares(explainer.importance)
    return [
        TopFeature(
            feature=feature,
            importance=stored(explainer.importance[at]),
            half_width=stored(explainer.half_width[at]),
            share=share[at],
            rank=at + 1,
        )
        for at, feature in enumerate(explainer.features[:most])
    ]


def last_incident(store: Store, model_id: str) -> IncidentRow | None:
    """Return the last incident of a model that was not withdrawn."""
    found = store.incidents(model_id, last=_LAST_OF_MODEL)
    return next((row_of(one) for one in found if one.event["life"] != "withdrawn"), None)


def _version(one: Assessed) -> str | None:
    version, explainer = one.model.status.get("model_version"), one.explainer
    said = version if isinstance(version, str) else None
    if explainer is None or (said is not None and (one.model.status_ms or 0) >= (explainer.last_ms or 0)):
        return said
    return explainer.version


def _n_observations(one: Assessed) -> int | None:
    told = _count(one.model.status.get("n_observations"))
    events = max((of.last_observation for of in one.model.explainers), default=None)
    if told is None or (one.settings is not None and one.settings.sharded):  # a status is of one shard
        return events if events is not None else told
    if events is None:
        return told
    # A model that was reset has fewer than its older events say.
    return told if (one.model.status_ms or 0) >= (one.model.last_ms or 0) else max(told, events)


def _waiting_limit(settings: ModelConfig | None) -> int | None:
    join = None if settings is None else settings.join
    return join.max_waiting if join is not None and join.ttl_ms is not None else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


def sentence_of(
    fleet: Sequence[Assessed],
    lines: Sequence[IncidentLine],
    *,
    now_ms: int,
    n_dead_letters: int,
    n_configured: int = 0,
) -> str:
    """Return the sentence: the worst first, then counts, dead letters last.

    Parameters
    ----------
    fleet
        All models, in the order of attention.
    lines
        Incidents, in the order of attention.
    n_configured
        Models of the configuration of which no topic has said anything.
    """
    said = [*_head(fleet, lines, now_ms), *_counts(fleet)]
    if n_configured and fleet:
        said.append(f"{counted(n_configured, 'configured model has', 'configured models have')} not said anything yet")
    return " · ".join([*said, counted(n_dead_letters, "dead letter")])


def _head(fleet: Sequence[Assessed], lines: Sequence[IncidentLine], now_ms: int) -> list[str]:
    if not fleet:
        return ["No model has published anything yet"]
    wrong = sum(one.state == "incident" for one in fleet)
    broken = _broken(fleet)
    if wrong:
        worst = _of_line(lines[0], now_ms)
        has = "has" if wrong == 1 else "have"
        return [
            *broken,
            worst if lines[0].n == wrong else f"{_of(wrong, len(fleet))} {has} an incident, first: {worst}",
        ]
    is_one = len(fleet) == 1
    none = (
        f"{_name(fleet[0])} has no incident" if is_one else f"none of {show_count(len(fleet))} models has an incident"
    )
    if broken:
        return [*broken, none]
    silent = [one.silent_ms for one in fleet if one.silent_ms is not None]
    if len(silent) < len(fleet):
        return [f"Nothing is wrong: {none}"]
    return [f"Nothing was heard of {'it' if is_one else 'any model'} for {duration(min(silent))}; {none}"]


def _of_line(line: IncidentLine, now_ms: int) -> str:
    since = line.incidents[0].since
    said = name(line.headline, 120) + ("" if line.feature is None else f": {name(line.feature)}")
    return f"{said}, began {when(since.time_ms, since.observation, now_ms)}"


def _broken(fleet: Sequence[Assessed]) -> list[str]:
    refused = [one for one in fleet if one.state == "refused"]
    failing = [one for one in fleet if one.is_failing and one.state != "refused"]
    said = []
    if refused:
        verb = "is refused, its stored state is damaged" if len(refused) == 1 else "are refused, their state is damaged"
        said.append(f"{_of(len(refused), len(fleet))} {verb}: {_names(refused)}")
    if failing:
        verb = "fails" if len(failing) == 1 else "fail"
        said.append(f"{_of(len(failing), len(fleet))} {verb} on what comes: {_names(failing)}")
    return said


def _counts(fleet: Sequence[Assessed]) -> list[str]:
    silent = [one for one in fleet if one.state == "silent"]
    counts = [
        (
            sum(one.state == "suspected" for one in fleet),
            "incident is being confirmed",
            "incidents are being confirmed",
        ),
        (sum(one.is_unfaithful for one in fleet), "mirror is not faithful", "mirrors are not faithful"),
        (len(silent) if len(silent) < len(fleet) else 0, "is silent", "are silent"),
        (sum(one.state == "learning" for one in fleet), "is still learning", "are still learning"),
        (sum(bool(one.n_waiting) for one in fleet), "waits for labels", "wait for labels"),
    ]
    return [counted(n, one, many) for n, one, many in counts if n]


def _of(n: int, of: int) -> str:
    return f"{show_count(n)} of {show_count(of)} models"


def _names(some: Sequence[Assessed]) -> str:
    return show_names([_name(one) for one in some], 2)


def _name(one: Assessed) -> str:
    return name(one.model.model_id)


OF_TEMPLATE = 5
"""Models of a template that are listed where nothing is searched for: those that need attention most."""

LINES = 10
MOST_LINES = 50
"""Lines of incidents, of which those that are over fill the first ten; of those that are open there may be more."""

_LOOKED_AT = 500
"""Incidents that are looked through for those that are over, the newest."""

MOST_ROWS = 500
"""Rows of a page at most."""


def fleet(
    store: Store,
    config: Config,
    *,
    now_ms: int,
    window_ms: int | None = None,
    query: str = "",
    offset: int = 0,
    limit: int = 50,
) -> Fleet:
    """Return all models by need of attention, with a summary sentence.

    The sentence says whether anything is wrong.

    Parameters
    ----------
    now_ms
        The moment that is looked back from.
    window_ms
        How far back; None: over all that is kept.
    query
        Part of a model id or of the name of a template, whatever the case of its letters; or a glob. Without it, of
        each template only the five models that need attention most are listed.
    offset, limit
        Which of the models that are found are listed.
    """
    assessor = Assessor(store, config, now_ms=now_ms, window_ms=window_ms)
    assessed = sorted(assessor.fleet(store.models()), key=lambda one: one.attention)
    configured = _configured(config, assessed)
    found = matching(assessed, query) if query.strip() else _without_rest(assessed)
    offset, limit = max(offset, 0), min(max(limit, 0), MOST_ROWS)
    wrong = sum(one.state == "incident" for one in assessed)
    lines = _lines(store, assessed)
    refused = sum(one.state == "refused" for one in assessed)
    n_dead_letters = assessor.n_dead_letters
    return Fleet(
        now_ms=now_ms,
        window_ms=window_ms,
        sentence=sentence_of(
            assessed,
            lines,
            now_ms=now_ms,
            n_dead_letters=n_dead_letters,
            n_configured=sum(not is_template(one.model_id) for one in configured),
        ),
        is_wrong=bool(wrong or refused or any(one.is_failing for one in assessed)),
        n_models=len(assessed),
        n_incidents=wrong,
        n_waiting=sum(bool(one.n_waiting) for one in assessed),
        n_refused=refused,
        n_dead_letters=n_dead_letters,
        models=[model_row(one, store, assessor.start_ms) for one in found[offset : offset + limit]],
        configured=configured,
        incidents=lines,
        offset=offset,
        n_found=len(found),
        templates=_templates(assessed),
    )


def row(store: Store, config: Config, model_id: str, *, now_ms: int, window_ms: int | None = None) -> ModelRow:
    """Return the row of a single model.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows it.
    """
    model = model_of(store, config, model_id)
    assessor = Assessor(store, config, now_ms=now_ms, window_ms=window_ms, model_id=model_id)
    return model_row(assessor.judge(model), store, assessor.start_ms)


def _lines(store: Store, assessed: Sequence[Assessed]) -> list[IncidentLine]:
    rows = {one.id: row_of(one) for one in store.incidents(last=_LOOKED_AT)}
    rows |= {one.incident.id: one.incident for one in assessed if one.incident is not None}
    lines = lines_of(rows.values(), {one.model.model_id: one.template for one in assessed})
    n_open = sum(line.standing != "over" for line in lines)
    return lines[: min(max(n_open, LINES), MOST_LINES)]


def _without_rest(assessed: Sequence[Assessed]) -> list[Assessed]:
    """Return the models, with only the first few of each template."""
    n_shown: Counter[str] = Counter()
    kept = []
    for one in assessed:
        if one.template is not None:
            n_shown[one.template] += 1
            if n_shown[one.template] > OF_TEMPLATE:
                continue
        kept.append(one)
    return kept


def _templates(assessed: Collection[Assessed]) -> list[TemplateRow]:
    """Return a row for each template, by their first model's attention."""
    by_template: dict[str, list[Assessed]] = {}
    for one in assessed:
        if one.template is not None:
            by_template.setdefault(one.template, []).append(one)
    return [
        TemplateRow(
            template=template,
            n_models=len(models),
            n_incidents=sum(one.state == "incident" for one in models),
            n_refused=sum(one.state == "refused" for one in models),
            n_silent=sum(one.state == "silent" for one in models),
            n_waiting=sum(bool(one.n_waiting) for one in models),
            n_dead_letters=sum(one.n_dead_letters for one in models),
        )
        for template, models in by_template.items()
    ]


def _configured(config: Config, assessed: Collection[Assessed]) -> list[ConfiguredModel]:
    said = {one.model.model_id for one in assessed if one.model.explainers or one.model.status}
    said |= {one.template for one in assessed if one.template is not None}
    return [
        ConfiguredModel(model_id=name, every=settings.publish.every)
        for name, settings in config.models.items()
        if name not in said
    ]
