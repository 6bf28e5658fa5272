"""Section for TLS and SASL, by which clients and brokers identify."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from .secrets import Secret, read_secret, refuse_both
from .section import Section

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_TLS = ("ca_file", "cert_file", "key_file", "key_password", "key_password_file")
_SASL = ("mechanism", "username", "password", "password_file")


class SecurityConfig(Section):
    """TLS and SASL, for every connection to Kafka. Passwords are printed nowhere. See docs/security.md."""

    protocol: Protocol = Field("PLAINTEXT", description="What the brokers' listener speaks, by Kafka's names.")
    ca_file: Path | None = Field(
        None, description="Certificates, PEM, that the brokers' are signed with; without it those of the system."
    )
    cert_file: Path | None = Field(None, description="Our certificate, PEM, where the brokers ask for one.")
    key_file: Path | None = Field(None, description="Its private key, PEM; without it the key is in cert_file.")
    key_password: Secret | None = Field(None, description="Password of the private key.")
    key_password_file: Path | None = Field(None, description="File with that password.")
    mechanism: Mechanism | None = Field(None, description="How the password is proved; needed with SASL.")
    username: str | None = Field(None, min_length=1, description="User of the brokers; needed with SASL.")
    password: Secret | None = Field(None, description="Its password: this or password_file is needed with SASL.")
    password_file: Path | None = Field(None, description="File with the password, as Kubernetes mounts a secret.")

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        """Whether a user is asked for."""
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @model_validator(mode="after")
    def _consistent(self) -> SecurityConfig:
        unused = [name for name in (*_TLS * (not self.tls), *_SASL * (not self.sasl)) if getattr(self, name)]
        if unused:
            raise ValueError(f"protocol {self.protocol} does not use {', '.join(unused)}: {self._remedy(unused)}")
        refuse_both("password", self.password, self.password_file)
        refuse_both("key_password", self.key_password, self.key_password_file)
        if self.cert_file is None and (orphans := [name for name in _TLS[2:] if getattr(self, name)]):
            raise ValueError(f"{', '.join(orphans)} without cert_file: give the certificate, too")
        if self.sasl:
            password = self.password or self.password_file
            needed = {"mechanism": self.mechanism, "username": self.username, "password (or password_file)": password}
            missing = [name for name, value in needed.items() if not value]
            if missing:
                raise ValueError(f"protocol {self.protocol} needs {', '.join(missing)}")
        return self

    def _remedy(self, unused: list[str]) -> str:
        tls = self.tls or any(name in _TLS for name in unused)
        sasl = self.sasl or any(name in _SASL for name in unused)
        wanted = ("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT")
        return f"set protocol to {wanted}, or leave them out"

    def read_password(self) -> str | None:
        """Return the user's password.

        It raises ConfigError where its file cannot be read.
        """
        return read_secret("kafka.security.password", self.password, self.password_file)

    def read_key_password(self) -> str | None:
        """Return the private key's password.

        It raises ConfigError where its file cannot be read.
        """
        return read_secret("kafka.security.key_password", self.key_password, self.key_password_file)
