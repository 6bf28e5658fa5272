"""Answers how the fleet is doing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from ....config.settings import Config
from ....config.templates import is_template
from ...answers.models import ConfiguredModel, Fleet, ModelRow, TemplateRow
from ...store.store import Store
from ..changes import recent_rows
from ..choosing import model_of
from .assessing import Assessed, Assessor, matching
from .rows import model_row
from .sentence import sentence_of

OF_TEMPLATE = 5
"""Models of a template that are listed where nothing is searched for: those that need attention most."""

CHANGES_SHOWN = 10
"""Changes of the fleet that are listed."""

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
    """Return all models in the order of attention, and whether anything is wrong, in a sentence.

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
    changed = sum(one.changed is not None for one in assessed)
    refused = sum(one.state == "refused" for one in assessed)
    n_dead_letters = assessor.n_dead_letters
    return Fleet(
        now_ms=now_ms,
        window_ms=window_ms,
        sentence=sentence_of(
            assessed,
            now_ms=now_ms,
            window_ms=window_ms,
            n_dead_letters=n_dead_letters,
            n_configured=sum(not is_template(one.model_id) for one in configured),
        ),
        is_wrong=bool(changed or refused or any(one.is_failing for one in assessed)),
        n_models=len(assessed),
        n_changed=changed,
        n_waiting=sum(bool(one.n_waiting) for one in assessed),
        n_refused=refused,
        n_dead_letters=n_dead_letters,
        models=[model_row(one, store, assessor.start_ms) for one in found[offset : offset + limit]],
        configured=configured,
        changes=recent_rows(store, CHANGES_SHOWN),
        offset=offset,
        n_found=len(found),
        templates=_templates(assessed),
    )


def row(store: Store, config: Config, model_id: str, *, now_ms: int, window_ms: int | None = None) -> ModelRow:
    """Return the row of one model.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows it.
    """
    model = model_of(store, config, model_id)
    assessor = Assessor(store, config, now_ms=now_ms, window_ms=window_ms, model_id=model_id)
    return model_row(assessor.judge(model), store, assessor.start_ms)


def _without_rest(assessed: Sequence[Assessed]) -> list[Assessed]:
    """Return the models, of each template only those that come first."""
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
    """Return what there is of each template, in the order in which its first model needs attention."""
    by_template: dict[str, list[Assessed]] = {}
    for one in assessed:
        if one.template is not None:
            by_template.setdefault(one.template, []).append(one)
    return [
        TemplateRow(
            template=template,
            n_models=len(models),
            n_changed=sum(one.changed is not None for one in models),
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
