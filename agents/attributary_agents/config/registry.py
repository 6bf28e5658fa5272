"""Section for the schema registry of sources in Avro or Protobuf."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from .secrets import Secret, read_secret, refuse_both
from .section import Section, is_http


class RegistryConfig(Section):
    """A schema registry that answers as Confluent's does. The password is printed nowhere."""

    url: str = Field(description="Where it is: http://registry:8081. Of Apicurio with /apis/ccompat/v7 at the end.")
    username: str | None = Field(None, min_length=1, description="Its user, where it asks for one.")
    password: Secret | None = Field(None, description="The user's password.")
    password_file: Path | None = Field(None, description="File with that password, as Kubernetes mounts a secret.")
    ca_file: Path | None = Field(
        None, description="Certificates, PEM, that its own is signed with; without it those that httpx trusts."
    )

    @field_validator("url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if not is_http(value):
            raise ValueError("expected http://HOST:PORT or https://HOST:PORT, with a path where it has one")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _consistent(self) -> RegistryConfig:
        if "@" in urlsplit(self.url).netloc:  # here, where what was given is not shown
            raise ValueError("url names a user: give username and password, which are not printed")
        refuse_both("password", self.password, self.password_file)
        password = self.password or self.password_file
        if bool(self.username) != bool(password):
            raise ValueError("username and password (or password_file) belong together: give both, or neither")
        if self.ca_file is not None and not self.url.startswith("https:"):
            raise ValueError("ca_file is used with https only: correct url, or leave it out")
        return self

    def read_password(self) -> str | None:
        """Return the password; raises ConfigError where its file cannot be read."""
        return read_secret("kafka.schema_registry.password", self.password, self.password_file)
