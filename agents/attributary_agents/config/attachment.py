"""Checks how sources, labels and models fit, and finds a model's sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from attributary_explainers.monitor.joiner import Join
from attributary_explainers.wording import did_you_mean, show_names

from ..expressions import parse_text
from .models import ModelConfig
from .sources import LabelsConfig, ShadowConfig, SourceConfig
from .templates import MAX_MODELS, is_template

PAIRED = "open-inference"
"""The format whose observations come as a request and its response."""


@dataclass(frozen=True)
class Role:
    """Roles of a model in a source, with the section's name and the model id."""

    source: str
    config: SourceConfig
    text: str
    roles: ShadowConfig

    @property
    def is_paired(self) -> bool:
        """Whether request and response of an inference are separate records."""
        return self.config.format == PAIRED


def meets(entry: str, text: str) -> bool:
    """Return whether a source may name a model id that `models` configures.

    Parameters
    ----------
    entry
        A model id or a pattern.
    text
        A model id with expressions between braces.
    """
    pattern = parse_text(text).pattern
    return fnmatchcase(entry, pattern) or fnmatchcase(pattern, entry)


def texts_of(config: SourceConfig | LabelsConfig, models: Iterable[str]) -> list[str]:
    """Return the model ids of a section, or that of the only model."""
    if isinstance(config, SourceConfig):
        return config.model_texts or list(models)
    return [config.model] if config.model is not None else list(models)


def roles_of(entry: str, sources: Mapping[str, SourceConfig], models: Iterable[str]) -> Iterator[Role]:
    """Yield the roles of a model in each source."""
    known = list(models)
    for name, source in sources.items():
        for text in texts_of(source, known):
            if meets(entry, text):
                yield Role(name, source, text, source.roles(text) if source.model is not None else _whole(source))


def _whole(source: SourceConfig) -> ShadowConfig:
    return ShadowConfig(x=source.x, y=source.y, y_pred=source.y_pred)


def labels_of(
    entry: str, labels: Mapping[str, LabelsConfig], models: Iterable[str]
) -> Iterator[tuple[str, LabelsConfig]]:
    """Yield the sections of labels that a model has."""
    known = list(models)
    for name, section in labels.items():
        if any(meets(entry, text) for text in texts_of(section, known)):
            yield name, section


MAX_WAITING = 10_000
"""Observations of a model that wait at most, where the configuration does not say it."""

_MAX_WAITING_OF_TEMPLATE = 1_000_000
"""The same of all models of a template together: each has an equal part of it, and 1000 at least.

What most of them need together is far less, and a few busy ones must not lose labels for the sake of many.
"""


def join_of(
    entry: str,
    sources: Mapping[str, SourceConfig],
    labels: Mapping[str, LabelsConfig],
    models: Mapping[str, ModelConfig],
) -> Join | None:
    """Return how observations of a model wait, or None if they come whole."""
    known = list(models)
    late = [section for _, section in labels_of(entry, labels, known)]
    own = [role.config for role in roles_of(entry, sources, known)]
    pairs = [source.pair for source in own if source.format == PAIRED]
    if not late and not pairs:
        return None
    waiting = [section.max_waiting or _max_waiting(entry, models[entry]) for section in late]
    return Join(
        ttl_ms=round(max(section.ttl for section in late) * 1000) if late else None,
        max_waiting=max(waiting, default=MAX_WAITING),
        explains_unlabelled=any(section.unlabelled == "explain" for section in late),
        pair_ms=round(max(pairs) * 1000) if pairs else None,
        max_ahead_ms=round(max(section.max_ahead for section in (*own, *late)) * 1000),
    )


def _max_waiting(entry: str, model: ModelConfig) -> int:
    if not is_template(entry):
        return MAX_WAITING
    return min(MAX_WAITING, max(1000, _MAX_WAITING_OF_TEMPLATE // (model.max_models or MAX_MODELS)))


def check_attached(
    sources: Mapping[str, SourceConfig],
    labels: Mapping[str, LabelsConfig],
    models: Mapping[str, ModelConfig],
    own_topics: Iterable[str],
    has_registry: bool,
) -> None:
    """Check that sources, labels and models agree with each other.

    Raises
    ------
    ValueError
        With all that does not fit, each with its remedy.
    """
    faults: list[str] = []
    ours = set(own_topics)
    if len(both := sorted(sources.keys() & labels.keys())):
        faults.append(f"labels.{both[0]}: a source is called so, too: their metrics and positions go by name")
    for kind, sections in (("sources", sources), ("labels", labels)):
        for name, section in sections.items():
            faults += _of_one(f"{kind}.{name}", section, models, ours, has_registry)
    if not faults:
        for entry, model in models.items():
            faults += _of_model(entry, model, sources, labels, list(models))
        faults += _of_direct(sources, labels)
    if faults:
        raise ValueError("; ".join(faults))


def _of_one(
    where: str,
    section: SourceConfig | LabelsConfig,
    models: Mapping[str, ModelConfig],
    ours: set[str],
    has_registry: bool,
) -> Iterator[str]:
    said = section.model_texts if isinstance(section, SourceConfig) else section.model and [section.model]
    if not said:
        if len(models) > 1:
            yield f"{where}: which of {', '.join(models)}? Add model:"
        elif is_template(next(iter(models))):
            only = next(iter(models))
            yield f'{where}: {only!r} is a template: add model:, with an expression, such as "store-{{id}}"'
    for text in said or ():
        if not any(meets(entry, text) for entry in models):
            near = did_you_mean(text, models)
            yield f"{where}.model: no model {text!r} under models ({show_names(models)}){near}; a template needs {{…}}"
        elif parse_text(text).is_plain and is_template(text):
            yield f"{where}.model: {text!r} is a pattern: a model id is made with an expression between braces"
    for topic in section.topic:
        if topic in ours:
            yield f"{where}.topic: {topic} is a topic of Attributary itself, which needs no source"
    if section.format in ("avro", "protobuf") and not has_registry:
        yield f"{where}: format {section.format} needs kafka.schema_registry.url"


def _of_model(
    entry: str,
    model: ModelConfig,
    sources: Mapping[str, SourceConfig],
    labels: Mapping[str, LabelsConfig],
    models: list[str],
) -> Iterator[str]:
    roles = list(roles_of(entry, sources, models))
    late = [name for name, _ in labels_of(entry, labels, models)]
    with_y = [role.source for role in roles if role.roles.y is not None]
    if late and with_y:
        yield f"model {entry} gets y from sources.{with_y[0]} and labels.{late[0]}: keep one"
    if late and model.mode != "labelled":
        if model.mode == "anomaly":
            yield f"labels.{late[0]}: model {entry} is an anomaly detector, which reads no labels: remove this section"
        else:
            yield f"model {entry} has mode: {model.mode} and gets labels from labels.{late[0]}: keep one"
    if late and model.sharded:
        yield f"models.{entry}: sharded: true needs observations with their labels in them: remove labels.{late[0]}"
    for role in roles:
        if late and role.config.id is None and role.config.format not in ("cloudevents", "open-inference"):
            yield (
                f"labels.{late[0]}: source {role.source} gives no id for model {entry}: add id: to "
                f"sources.{role.source}"
            )
        if late and role.config.key == "direct":
            yield f"labels.{late[0]}: needs the order of one topic: remove key: direct from sources.{role.source}"
        if model.mode == "labelled" and not late and (role.roles.y is None or role.is_paired):
            yield (
                f"model {entry} gets no labels from sources.{role.source}: "
                + ("add labels:" if role.is_paired else "add y or labels:")
                + ", or mode: unlabelled, or mode: anomaly for an anomaly detector, or mode: mirror with y_pred"
            )
        if model.mode == "mirror" and role.roles.y_pred is None:
            yield f"model {entry} has mode: mirror: add y_pred, the prediction to learn, to sources.{role.source}"
    if late and not roles:
        yield f"labels.{late[0]}: no source has observations of model {entry}"


def _of_direct(sources: Mapping[str, SourceConfig], labels: Mapping[str, LabelsConfig]) -> Iterator[str]:
    direct = [name for name, source in sources.items() if source.key == "direct"]
    for name in direct:
        source = sources[name]
        if len(sources) > 1 or labels or len(source.topic) > 1:
            yield f"sources.{name}: key: direct needs one topic and no other source: use key: copy"
        elif source.format not in ("json", "cloudevents"):
            yield f"sources.{name}: key: direct takes json and cloudevents: use key: copy for {source.format}"
        elif source.model_texts not in (["{$key}"], ["{ $key }"]):
            yield f'sources.{name}: key: direct needs model: "{{$key}}", the key as the model id; else use key: copy'
