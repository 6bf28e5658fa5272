"""Client of a schema registry; the only module that uses its HTTP client.

What an id means never changes, so a schema is asked for once and kept for ever.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from attributary_topics import InvalidRecordError

from ...config.registry import RegistryConfig
from ...errors import ConfigError, SchemaUnavailableError

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 5.0
_NOT_THERE_S = 60.0
"""So long an id that is not there is not asked for again: records with one come in large numbers."""
_MOST_NOT_THERE = 10_000
_MOST_REFERENCES = 200
_NOT_FOUND = range(40400, 40500)
"""A registry's own codes of what it has not: a 404 without one is no answer of a registry."""


@dataclass(slots=True, frozen=True)
class RegisteredSchema:
    """A schema as the registry has it.

    Attributes
    ----------
    kind
        AVRO, PROTOBUF or JSON.
    references
        Name by which the schema refers to another one, and the text of that, what a schema needs before it.
    """

    id: int
    kind: str
    text: str
    references: dict[str, str] = field(default_factory=dict)


class Registry:
    """Client that fetches schemas by their ids."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self.url = config.url
        self._client: httpx.AsyncClient | None = None
        self._not_there: dict[int, float] = {}

    async def start(self) -> None:
        """Check that the registry answers a request that every registry knows.

        Raises
        ------
        ConfigError
            It does not answer, refuses the user, or is none; the message says what to look at.
        """
        try:
            answer = await self._get("/schemas/types")
        except SchemaUnavailableError as error:
            raise ConfigError(f"{error}; is schema_registry.url right?") from None
        if answer is None:
            raise ConfigError(f"{self.url}: no schema registry answers there (404); is schema_registry.url right?")

    async def schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of an id, with all that it refers to.

        Raises
        ------
        InvalidRecordError
            `unknown_schema`: the registry has none of this id.
        SchemaUnavailableError
            It does not answer now.
        """
        self.refuse_unknown(schema_id)
        answer = await self._get(f"/schemas/ids/{schema_id}")
        if answer is None:
            if len(self._not_there) >= _MOST_NOT_THERE:
                self._not_there.clear()
            self._not_there[schema_id] = time.monotonic()
            raise self._unknown(schema_id)
        references: dict[str, str] = {}
        await self._resolve(answer, references, schema_id)
        return RegisteredSchema(schema_id, str(answer.get("schemaType") or "AVRO"), _text(answer, self.url), references)

    def refuse_unknown(self, schema_id: int) -> None:
        """Raise InvalidRecordError if the registry denied a schema a moment ago."""
        if (since := self._not_there.get(schema_id)) is not None and time.monotonic() - since < _NOT_THERE_S:
            raise self._unknown(schema_id)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _resolve(self, answer: dict[str, Any], found: dict[str, str], schema_id: int) -> None:
        """Add a schema's references to `found`, dependencies first."""
        for reference in answer.get("references") or ():
            name, subject, version = (reference.get(key) for key in ("name", "subject", "version"))
            if name in found:
                continue
            if len(found) >= _MOST_REFERENCES:
                message = f"schema id {schema_id} refers to more than {_MOST_REFERENCES} others"
                raise InvalidRecordError("wrong_schema", "value", "a schema", schema_id, message)
            referred = await self._get(f"/subjects/{quote(str(subject), safe='')}/versions/{version}")
            if referred is None:
                message = f"schema id {schema_id} refers to version {version} of {subject}, which {self.url} has not"
                raise InvalidRecordError("wrong_schema", "value", "a schema", schema_id, message)
            await self._resolve(referred, found, schema_id)
            found.setdefault(str(name), _text(referred, self.url))

    def _unknown(self, schema_id: int) -> InvalidRecordError:
        message = f"schema id {schema_id} is not in {self.url}: another cluster's registry?"
        return InvalidRecordError("unknown_schema", "value", f"a schema id of {self.url}", schema_id, message)

    async def _get(self, path: str) -> Any:
        """Return the registry's answer; None if it says that nothing is there."""
        import httpx

        try:
            if self._client is None:
                self._client = self._connected()
            response = await self._client.get(path)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise SchemaUnavailableError(f"{self.url}: {_cause(error)}") from None
        try:
            answer = response.json()
        except ValueError:
            answer = None
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if response.status_code == 200 and answer is not None:
            return answer
        if response.status_code == 404 and code in _NOT_FOUND:
            return None
        raise SchemaUnavailableError(self._refusal(response.status_code))

    def _refusal(self, status: int) -> str:
        if status in (401, 403):
            user = self._config.username
            who = f"the user {user!r}" if user else "who gives no user"
            return f"{self.url} refuses {who} ({status}): kafka.schema_registry.username and password"
        if status == 404:
            return f"{self.url}: no schema registry answers there (404)"
        return f"{self.url} answers {status}, and no schema"

    def _connected(self) -> httpx.AsyncClient:
        import httpx

        config, password = self._config, self._config.read_password()
        verify: ssl.SSLContext | bool = True
        if config.ca_file is not None:
            try:
                verify = ssl.create_default_context(cafile=str(config.ca_file))
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(f"kafka.schema_registry.ca_file: {config.ca_file}: {_cause(error)}") from None
        auth = httpx.BasicAuth(config.username, password or "") if config.username else None
        accept = "application/vnd.schemaregistry.v1+json, application/json"
        return httpx.AsyncClient(
            base_url=self.url, auth=auth, verify=verify, timeout=TIMEOUT_S, headers={"Accept": accept}
        )


def _text(answer: dict[str, Any], url: str) -> str:
    text = answer.get("schema") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        raise SchemaUnavailableError(f"{url} answers with something that is no schema")
    return text


def _cause(error: BaseException) -> str:
    """Return in a few words why a connection failed.

    They are the system's own, where it gave some.
    """
    for one in _chain(error):
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({one.verify_message}): kafka.schema_registry.ca_file"
        if isinstance(one, OSError) and one.errno is not None and one.errno > 0 and not isinstance(one, ssl.SSLError):
            return os.strerror(one.errno).lower()
    if "Timeout" in type(error).__name__:
        return f"no answer within {TIMEOUT_S:g} s"
    said = str(error).lower()
    return "no such host" if "name or service" in said or "nodename" in said else said or type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen = 0
    waiting = [error]
    while waiting and seen < 20:
        one = waiting.pop(0)
        seen += 1
        if one is not None:
            yield one
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
