"""What the sections of the configuration have in common: their base, and the types of numbers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from attributary_explainers.wording import did_you_mean

PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Alpha = Annotated[float, Field(ge=1e-16, le=1)]
"""With the smallest nothing fades in any stream; whole numbers that follow from a smaller one would be too large."""


class Section(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def one_of(value: str, choices: Any) -> str:
    """Return the value; raise ValueError where it is none of the choices."""
    if value not in choices:
        raise ValueError(f"expected one of {', '.join(sorted(choices))}{did_you_mean(value, choices)}")
    return value
