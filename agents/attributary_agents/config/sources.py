"""Sections for foreign topics: observations, labels and their roles.

Roles are expressions in JMESPath (`expressions`). What one section must fit of another is checked in `attached`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from ..expressions import parse, parse_text
from .section import Duration, PositiveInt, Section, one_of

FORMATS = ("json", "avro", "protobuf", "cloudevents", "open-inference")
"""How the value of a record can become an object."""

CASTS = ("text", "number", "boolean")
"""What the value of a feature can be turned into."""

_ROLES_OF_SHADOWS = ("x", "y", "y_pred")


def _expression(value: str) -> str:
    parse(value)
    return value


def _model_text(value: str) -> str:
    parse_text(value)
    return value


Expression = Annotated[str, AfterValidator(_expression)]
"""A role, in JMESPath."""

ModelText = Annotated[str, AfterValidator(_model_text)]
"""A model id with expressions between braces."""


class ShadowConfig(Section):
    """Roles of one model where a source is for several, each with its own."""

    x: str | dict[str, Any] | None = Field(None, description="As `x` of the source.")
    y: Expression | None = Field(None, description="As `y` of the source.")
    y_pred: Expression | None = Field(None, description="As `y_pred` of the source.")

    _check_x = field_validator("x")(lambda value: check_features(value))


class Attached(Section):
    """What a source of observations and one of labels have in common."""

    topic: list[str] = Field(min_length=1, description="An existing topic, or several; none is ever created.")
    format: Literal["json", "avro", "protobuf", "cloudevents", "open-inference"] = Field(
        "json",
        description="How a value becomes an object. avro and protobuf need kafka.schema_registry.",
    )
    unwrap: Literal["debezium"] | None = Field(
        None,
        description="debezium: short for `record: after`, `where: contains(['c', 'r'], op)` and `time: source.ts_ms`, "
        "as far as these are not given.",
    )
    record: Expression | None = Field(
        None, description="The object that x, y, y_pred and id are read from; null: the whole value."
    )
    y: Expression | None = Field(None, description="The label or target.")
    id: Expression | None = Field(None, description="What observations and labels are joined by.")
    time: Expression | None = Field(
        None,
        description="Event time: a number of seconds, ms, µs or ns since 1970, or RFC 3339; read from the whole value. "
        "null: Kafka's timestamp of the record.",
    )
    where: Expression | None = Field(
        None, description="Only records for which it is true are taken; read from the whole value."
    )
    start: str = Field(
        "earliest", description="Where to begin the first time: earliest, latest, or a time in RFC 3339."
    )
    max_ahead: Duration = Field(
        3600.0, description="A time further ahead of Kafka's timestamp goes to the dead letters: a clock is wrong."
    )

    @field_validator("topic", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("topic")
    @classmethod
    def _topics(cls, value: list[str]) -> list[str]:
        for name in value:
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in (".", ".."):
                raise ValueError(f"{name!r} cannot be a topic: letters, digits, '.', '_' and '-', at most 249")
        if len(set(value)) < len(value):
            raise ValueError("a topic is named twice")
        return value

    @field_validator("start")
    @classmethod
    def _known_start(cls, value: str) -> str:
        if value in ("earliest", "latest"):
            return value
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(
                f"expected earliest, latest or a time such as 2026-05-01T00:00:00Z, got {value!r}"
            ) from None
        if at.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: write Z behind it for UTC")
        return value

    @property
    def record_read(self) -> str | None:
        """Expression of the object that roles are read from, with `unwrap`."""
        return self.record or ("after" if self.unwrap else None)

    @property
    def where_read(self) -> str | None:
        """The expression of the filter, `unwrap` included."""
        return self.where or ("contains(['c', 'r'], op)" if self.unwrap else None)

    @property
    def time_read(self) -> str | None:
        """The expression of the event time, `unwrap` included."""
        return self.time or ("source.ts_ms" if self.unwrap else None)


class SourceConfig(Attached):
    """Topics with observations that others write."""

    model: ModelText | list[ModelText] | dict[ModelText, ShadowConfig] | None = Field(
        None,
        description='Model id, with expressions between braces: bikes, "store-{station}". A list: each observation is '
        "for each of these. A mapping of id to {x, y, y_pred}: the same with roles of their own. null: the only model.",
    )
    x: str | dict[str, Any] | None = Field(
        None,
        description="The features: an expression that gives an object; {all_but: [names]}; {only: [names]}; or name to "
        "expression. null: every field that is a number, text, a boolean or null and has no other role.",
    )
    cast: dict[str, Annotated[str, one_of(CASTS)]] = Field(
        default_factory=dict, description="Feature to text, number or boolean: what its values are turned into."
    )
    y_pred: Expression | None = Field(None, description="The prediction that was logged.")
    key: Literal["copy", "direct"] = Field(
        "copy",
        description="copy: a mapper writes observations to our topic, under their model id. direct: workers read this "
        "topic in place of ours; its key must be the model id, and it must be the only source, without labels.",
    )
    pair: Duration = Field(
        60.0,
        description="So long request and response of open-inference wait for each other, in time of the stream.",
    )
    merge_wait: Duration = Field(
        1.0,
        description="How long a partition that has brought nothing and is not at its end is waited for, before records "
        "of others that are later are taken.",
    )

    @field_validator("model")
    @classmethod
    def _models(cls, value: Any) -> Any:
        if value is None:
            return value
        names = [value] if isinstance(value, str) else list(value)
        if not names:
            raise ValueError("it is empty: name a model")
        if len(set(names)) < len(names):
            raise ValueError("a model is named twice")
        return value

    @field_validator("x")
    @classmethod
    def _features(cls, value: Any) -> Any:
        return check_features(value)

    @property
    def model_texts(self) -> list[str] | None:
        """The model ids as they are written; None where none is said."""
        if self.model is None:
            return None
        return [self.model] if isinstance(self.model, str) else list(self.model)

    def roles(self, model: str) -> ShadowConfig:
        """Return the expressions of x, y and y_pred for a text of `model_texts`."""
        own = self.model[model] if isinstance(self.model, dict) else ShadowConfig()
        return ShadowConfig(
            **{
                name: mine if (mine := getattr(own, name)) is not None else getattr(self, name)
                for name in _ROLES_OF_SHADOWS
            }
        )


class LabelsConfig(Attached):
    """Topics with labels, which come after their observations, or before."""

    model: ModelText | None = Field(
        None, description="Model id, with expressions between braces, as in the source. null: the only model."
    )
    ttl: Duration = Field(
        description="How long an observation waits for its label, and a label for its observation, in time of the "
        "stream: 90s, 3h, 30d.",
    )
    max_waiting: PositiveInt | None = Field(
        None,
        description="So many observations of a model wait at most; beyond it the oldest expires. null: 10000, and of a "
        "template 1000000 for all of its max_models, at least 1000 for each.",
    )
    unlabelled: Literal["drop", "explain"] = Field(
        "drop",
        description="explain: the prediction for an observation whose label has not come still counts in the mean "
        "prediction, which the model's loss is compared with.",
    )

    @model_validator(mode="after")
    def _names_its_roles(self) -> LabelsConfig:
        for role in ("y", "id"):
            if getattr(self, role) is None:
                raise ValueError(f"give `{role}`: labels are joined to their observations by id, and hold y")
        return self


def check_features(value: Any) -> Any:
    """Check `x` and return it.

    Raise ValueError where it has no allowed form, or holds an invalid expression.
    """
    if value is None:
        return value
    if isinstance(value, str):
        return _expression(value)
    if not value:
        raise ValueError("it is empty: leave it out for all fields, or name some")
    for form in ("all_but", "only"):
        if isinstance(value.get(form), list):
            if len(value) > 1:
                others = ", ".join(name for name in value if name != form)
                raise ValueError(f"{form} stands alone, without {others}")
            if not all(isinstance(name, str) for name in value[form]):
                raise ValueError(f"{form}: expected a list of names, got {value[form]!r}")
            if form == "only" and not value[form]:
                raise ValueError("only: the list is empty")
            return value
    for name, text in value.items():
        if not isinstance(text, str):
            raise ValueError(f"{name}: expected an expression, got {text!r}")
        try:
            parse(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return value


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""Name of a source, which is a label in metrics and part of a consumer group's name."""
