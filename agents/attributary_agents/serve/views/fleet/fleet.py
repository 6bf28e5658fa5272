"""View of how the fleet is doing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from ....config.settings import Config
from ....config.templates import is_template
from ...answers.incidents import IncidentLine
from ...answers.models import ConfiguredModel, Fleet, ModelRow, TemplateRow
from ...store.store import Store
from ..choosing import model_of
from ..incidents import lines_of, row_of
from .assessing import Assessed, Assessor, matching
from .rows import model_row
from .sentence import sentence_of

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
