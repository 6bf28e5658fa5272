"""Sections for a model that is built here or read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr

from .section import Section


class StepConfig(Section):
    """One class and its arguments: a model, or a step of a pipeline."""

    class_: str = Field(alias="class", description="Dotted path of a class, such as river.forest.ARFClassifier.")
    params: dict[str, Any] = Field(default_factory=dict, description="Arguments of the class.")


class FactoryConfig(Section):
    """A function that returns the model, and its arguments."""

    factory: str = Field(
        pattern=r"^[^:\s]+:[^:\s]+$",
        description="module:function, installed, beside this file or in the working directory.",
    )
    params: dict[str, Any] = Field(default_factory=dict, description="Arguments of the function.")


class FileConfig(Section):
    """A file with a trained model, below `artefacts.directory`."""

    file: str = Field(
        min_length=1,
        description="Path below artefacts.directory: .skops, .joblib, .onnx or .pkl. It is the first version.",
    )
    sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="Hash of the file's content; where it is left out, a message says it.",
    )
    features: list[str] | None = Field(
        None,
        min_length=1,
        description="Its columns, in the order in which it was trained, where the file does not name them. null: of an "
        "ONNX file those that `features` of the model declares; else those of the first observation, in its order.",
    )
    classes: list[bool | int | float | str] | None = Field(
        None,
        min_length=2,
        description="Labels in the order of its probabilities, where it does not say them: of an ONNX file, of a "
        "booster, or of a classifier that was trained on numbers in their place.",
    )
    _directory: Path | None = PrivateAttr(None)
    _allowed: tuple[str, ...] = PrivateAttr(())

    @property
    def directory(self) -> Path | None:
        """`artefacts.directory`."""
        return self._directory

    @property
    def named(self) -> dict[str, Any]:
        """The configured columns and classes."""
        return {name: found for name in ("features", "classes") if (found := getattr(self, name)) is not None}

    @property
    def allowed(self) -> tuple[str, ...]:
        """`control.allowed`."""
        return self._allowed

    def take(self, directory: Path | None, allowed: Sequence[str]) -> None:
        """Take over other sections' settings for files."""
        self._directory, self._allowed = directory, tuple(allowed)


Pipeline = Annotated[list[StepConfig], Field(min_length=1)]
