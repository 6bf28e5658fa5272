"""Section for `attributary serve`: address, store, token and webhooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ByteSize, Field, SecretStr, field_validator

from .secrets import Secret
from .section import Duration, Section, Size, is_http
from .sources import Name

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


class WebhookConfig(Section):
    """Sets an address that receives incidents, each revision once at most."""

    url: Secret = Field(
        description="Where to POST to; printed nowhere, because those of chat services are secrets. Redirects are not "
        "followed."
    )
    severity: Literal["info", "warning", "critical"] = Field(
        "info",
        description="Least severity of incidents that are told: when one is confirmed, when it has become critical, "
        "when it is over; a critical one also when it is suspected. warning: leaves out what asks for nothing.",
    )
    format: Literal["cloudevents", "text"] = Field(
        "cloudevents",
        description='cloudevents: the whole revision in structured mode. text: {"text": …}, as chat services take it.',
    )
    secret_env: str | None = Field(
        None,
        pattern=_VARIABLE,
        description="Environment variable with the secret of Standard Webhooks, whsec_ and base64, that requests are "
        "signed with. null: unsigned.",
    )
    page: str | None = Field(
        None, description="Address of the page as the receiver reaches it, for links in texts. null: no links."
    )

    @field_validator("url", "page")
    @classmethod
    def _is_http(cls, value: Any) -> Any:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if text is None:
            return None
        if not is_http(text) or not text.isascii():
            raise ValueError("expected http://HOST/PATH or https://HOST/PATH, in ASCII and without blanks")
        return value


class ServeConfig(Section):
    """What `attributary serve` listens on, what it keeps, and whom it tells."""

    host: str = Field("127.0.0.1", description="Address to listen on; with another one give token_env too.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(6080, description="0 takes a free one and logs it.")
    store: Path | None = Field(
        None,
        description="File of the store, a cache that is rebuilt from the topics. null: one per group below the user's "
        "cache folder, ~/.cache/attributary.",
    )
    max_bytes: Size = Field(
        ByteSize(2 * 10**9), description="Largest size of the store: 500MB, 2GB. The oldest goes first."
    )
    max_age: Duration = Field(30 * 86400.0, description="How long events are kept.")
    token_env: str | None = Field(
        None,
        pattern=_VARIABLE,
        description="Environment variable with a token that whoever looks has to give. null: none is asked for.",
    )
    webhooks: dict[Name, WebhookConfig] = Field(
        default_factory=dict, description="Name to an address that is told of incidents."
    )
