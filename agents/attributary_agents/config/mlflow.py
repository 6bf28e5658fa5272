"""Sections for MLflow: its registry, and the models taken from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from .secrets import Secret, read_secret, refuse_both
from .section import Duration, Section

REGISTERED = re.compile(r"models:/(?P<name>[^/@:]+)(?:@(?P<alias>[^/@:]+)|/(?P<version>[1-9][0-9]*))")
"""A model of a registry, by alias or by version."""


@dataclass(frozen=True)
class Registered:
    """A model of the registry: its name there, and an alias of it or one of its versions."""

    name: str
    alias: str | None = None
    version: str | None = None

    @classmethod
    def read(cls, uri: str) -> Registered:
        """Read a URI such as models:/bank@champion or models:/bank/3.

        Raises
        ------
        ValueError
            It has another form.
        """
        found = REGISTERED.fullmatch(uri)
        if found is None:
            raise ValueError(
                f"expected models:/NAME@ALIAS, models:/NAME/VERSION, or a folder below artefacts.directory, got {uri!r}"
            )
        return cls(**found.groupdict())

    def __str__(self) -> str:
        return f"models:/{self.name}" + (f"@{self.alias}" if self.alias else f"/{self.version}")


class MlflowConfig(Section):
    """Where MLflow is. Secrets are printed nowhere, and only processes that speak to MLflow are given them."""

    tracking_uri: str | None = Field(
        None,
        min_length=1,
        description="MLflow's server, http://mlflow:5000, or database, sqlite:////srv/mlflow.db. null: "
        "MLFLOW_TRACKING_URI of the environment.",
    )
    registry_uri: str | None = Field(
        None, min_length=1, description="Where models are registered, where that is elsewhere. null: tracking_uri."
    )
    username: str | None = Field(None, min_length=1, description="The server's user, where it asks for one.")
    password: Secret | None = Field(None, description="The user's password.")
    password_file: Path | None = Field(None, description="File with that password, as Kubernetes mounts a secret.")
    token: Secret | None = Field(None, description="A token, in place of a user.")
    token_file: Path | None = Field(None, description="File with that token.")
    ca_file: Path | None = Field(None, description="Certificates, PEM, that the server's own is signed with.")
    allowed: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        description="Registered models, by name, of which a record of the models topic may name versions for any "
        "model; of the one that `model: {mlflow: …}` names it may in any case.",
    )
    fetch_within: Duration = Field(300.0, description="Longest that fetching the files of one version may take.")
    retry_within: Duration = Field(
        1800.0,
        description="How long a version is tried again whose files cannot be had though the registry answers; then it "
        "is refused. For a registry that is away, a worker waits as long as it takes.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> MlflowConfig:
        for name in ("tracking_uri", "registry_uri"):  # here, where what was given is not shown
            parts = urlsplit(getattr(self, name) or "")
            if "@" in parts.netloc or "password=" in parts.query:
                raise ValueError(
                    f"{name} names a user or a password: give username and password, which are not printed, or of a "
                    f"database the whole in MLFLOW_{name.upper()} of the environment"
                )
        refuse_both("password", self.password, self.password_file)
        refuse_both("token", self.token, self.token_file)
        has_password = bool(self.password or self.password_file)
        if bool(self.username) != has_password:
            raise ValueError("username and password (or password_file) belong together: give both, or neither")
        if has_password and (self.token or self.token_file):
            raise ValueError("password and token are both given: give one of them")
        return self

    def environment(self) -> dict[str, str]:
        """Return the environment for MLflow's client.

        It raises ConfigError for the file of a secret.
        """
        password = read_secret("mlflow.password", self.password, self.password_file)
        token = read_secret("mlflow.token", self.token, self.token_file)
        found = {
            "MLFLOW_TRACKING_URI": self.tracking_uri,
            "MLFLOW_REGISTRY_URI": self.registry_uri,
            "MLFLOW_TRACKING_USERNAME": self.username,
            "MLFLOW_TRACKING_PASSWORD": password,
            "MLFLOW_TRACKING_TOKEN": token,
            "MLFLOW_TRACKING_SERVER_CERT_PATH": None if self.ca_file is None else str(self.ca_file),
        }
        return {name: value for name, value in found.items() if value is not None}


class MlflowModel(Section):
    """A model of MLflow: one of its registry, or a folder that it has written."""

    mlflow: str = Field(
        min_length=1,
        description="models:/NAME@ALIAS or models:/NAME/VERSION of the registry, or a folder below "
        "artefacts.directory, as `mlflow.sklearn.save_model` writes it.",
    )
    poll: Duration = Field(
        60.0,
        ge=1,
        description="How often an alias is looked at, by one process of the group. A moved alias is a new version.",
    )
    sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="Of a folder: hash over the hashes of its files; where it is left out, a message says it.",
    )
    _directory: Path | None = PrivateAttr(None)
    _allowed: tuple[str, ...] = PrivateAttr(())
    _registry: MlflowConfig = PrivateAttr(default_factory=MlflowConfig)

    @field_validator("mlflow")
    @classmethod
    def _is_readable(cls, value: str) -> str:
        if value.startswith("models:"):
            Registered.read(value)
        elif ":/" in value:
            raise ValueError(
                f"expected models:/NAME@ALIAS, models:/NAME/VERSION, or a folder below artefacts.directory, got "
                f"{value!r}"
            )
        return value

    @field_validator("sha256")
    @classmethod
    def _of_a_folder(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and str(info.data.get("mlflow", "")).startswith("models:"):
            raise ValueError(
                "it is of a folder: of a version of the registry the hash stands in the record of the models topic"
            )
        return value

    @property
    def registered(self) -> Registered | None:
        """The model's name in the registry, or None for a folder."""
        return Registered.read(self.mlflow) if self.mlflow.startswith("models:") else None

    @property
    def directory(self) -> Path | None:
        """`artefacts.directory`."""
        return self._directory

    @property
    def allowed(self) -> tuple[str, ...]:
        """`control.allowed`."""
        return self._allowed

    @property
    def registry(self) -> MlflowConfig:
        """The section `mlflow`."""
        return self._registry

    @property
    def without_secrets(self) -> MlflowModel:
        """The same for a process that speaks to no registry."""
        same = self.model_copy()
        same.take(self._directory, self._allowed, MlflowConfig())
        return same

    def take(self, directory: Path | None, allowed: Sequence[str], registry: MlflowConfig) -> None:
        """Take over settings of other sections."""
        self._directory, self._allowed, self._registry = directory, tuple(allowed), registry
