"""Settings of a watched model, for monitor and worker, with defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import Parameter, signature
from typing import Any, Literal

from ..errors import InvalidParameterError
from ..incremental.pfi import IncrementalPFI
from ..incremental.removal import RemovalExplainer
from ..incremental.sage import IncrementalSAGE
from ..losses.losses import NamedLoss, with_positive
from ..validation import check_integer, check_number

EXPLAINERS: dict[str, type[RemovalExplainer]] = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}
"""The explainer of each name."""


@cache
def parameters_of(explainer: type[RemovalExplainer]) -> dict[str, Parameter]:
    """Return an explainer's parameters by name, with its base classes'."""
    found: dict[str, Parameter] = {}
    for kind in explainer.__mro__:
        if "__init__" in vars(kind) and kind is not object:
            found = {**signature(kind).parameters, **found}
    return found


def default_of(parameter: str) -> Any:
    """Return a parameter's default in the first explainer that has it."""
    return next(
        declared[parameter].default for declared in map(parameters_of, EXPLAINERS.values()) if parameter in declared
    )


Mode = Literal["labelled", "unlabelled", "mirror", "anomaly"]


@dataclass(frozen=True, kw_only=True)
class PublishRule:
    """When importance events are sent, counted in observations.

    Attributes
    ----------
    every
        An event per explainer at every so many observations of the model.
    material_shift
        Also when this share of importance, in (0, 1], has moved since the last event.
    min_observations
        No event on material change before so many observations.
    reference_after
        Observations until the reference for shift and NDCG is taken, and after a model change.
    """

    every: int = 500
    material_shift: float = 0.2
    min_observations: int = 200
    reference_after: int = 2000

    def __post_init__(self) -> None:
        check_number("publish.material_shift", self.material_shift, above=0.0, maximum=1.0)
        for name in ("every", "min_observations", "reference_after"):
            check_integer(f"publish.{name}", getattr(self, name), minimum=1)


@dataclass(frozen=True, slots=True)
class Holdout:
    """Labelled rows on which a model that does not learn was validated.

    Attributes
    ----------
    rows
        Pairs of features and label, in the order of time.
    name
        Says which rows these are: a watch with others begins anew.
    """

    rows: Sequence[tuple[dict[str, Any], Any]] = field(repr=False)
    name: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a model's watch.

    `mode` `labelled`: each observation has a label. `anomaly`: the model is an anomaly detector, whose score is
    explained. `unlabelled`: none has, and the model's own predictions stand for them. `mirror` and `sharded` (this is
    one of several parts of a model) are of workers alone.

    The loss, `missing`, `alpha` and `groups` are as `RemovalExplainer` has them; `seed` is of the explainers'
    generators, together with the model id. `explainers` has the parameters of `pfi`, `sage` or both, and
    `reservoir_size`, `gap` and `reach`, which `make_reservoir` takes; `change` those of the change explainer (None:
    changes are not explained). `quality` is as `quality_metrics` has it: None are the metrics that fit the model, an
    empty list is none. `positive` is the class that counts as positive in them, and in a loss of costs that names none;
    None: the greater one of two. `feature_share` is the share of the features that pfi evaluates per observation, in
    (0, 1]. `watch_loss`: lasting shifts of the loss are told; `holdout` has the rows that they are told against from
    the first observation on. `watch_inputs`: features whose values break are told.
    """

    learn: bool = True
    mode: Mode = "labelled"
    missing: str | Mapping[str, Any] = field(default_factory=lambda: default_of("missing"))
    loss: NamedLoss | None = None
    quality: Sequence[str] | None = None
    positive: Any = None
    alpha: float = field(default_factory=lambda: default_of("alpha"))
    seed: int = 42
    explainers: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"pfi": {}})
    change: Mapping[str, Any] | None = field(default_factory=dict)
    watch_loss: bool = True
    watch_inputs: bool = True
    holdout: Holdout | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    feature_share: float = field(default_factory=lambda: default_of("feature_share"))
    publish: PublishRule = PublishRule()
    sharded: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", with_positive(self.loss, self.positive))
        if self.holdout is not None and (self.learn or not self.watch_loss):
            raise InvalidParameterError(
                "holdout", "None for a model that learns, or whose loss is not watched", self.holdout
            )

    @property
    def explained_loss(self) -> NamedLoss | None:
        """Name of the explained loss; None for the loss that fits the model.

        For an anomaly detector it is minus its score, so that an importance is what the values of the feature add to
        it.
        """
        return "neg_score" if self.mode == "anomaly" and self.loss is None else self.loss

    @property
    def scored_loss(self) -> NamedLoss | None:
        """Name of the scored loss; None for the loss that fits the model.

        For an anomaly detector it is the score.
        """
        return "score" if self.mode == "anomaly" else self.loss
