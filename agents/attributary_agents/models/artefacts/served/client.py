"""HTTP client of a served model: requests, and checks of the answers.

No other module knows the HTTP library. Redirects are not followed, an answer has a bounded length, and the token is
read anew for each request.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ....config.secrets import read_secret
from ....config.served import ServedConfig
from ....errors import ConfigError
from .errors import NotNowError, ServedError

if TYPE_CHECKING:
    import httpx

# At INFO it writes a line for each request.
logging.getLogger("httpx").setLevel(logging.WARNING)

MOST_AFTER_S = 60.0
"""Longest pause that an answer may ask for by Retry-After."""

LATER = frozenset({401, 403, 404, 405, 407, 408, 425, 429})
"""Statuses below 500 that are about the endpoint or who asks, and not about the rows: the observations wait."""

_SAID = 200
"""Characters of an answer that are told where it refuses rows."""


def check_installed() -> None:
    """Raise ConfigError where the extra is missing."""
    for package in ("httpx", "stamina"):
        if find_spec(package) is None:
            raise ConfigError(f"a model that is served needs {package}: pip install 'attributary[served]'")


class Client:
    """Client of a single endpoint, for a worker or a library.

    A worker calls `send`, a library calls `send_now`.

    Parameters
    ----------
    where
        What messages call the endpoint's section of the configuration.

    Raises
    ------
    ConfigError
        The extra is missing.
    """

    def __init__(self, config: ServedConfig, where: str = "model") -> None:
        check_installed()
        self._config = config
        self._where = where
        self._async: httpx.AsyncClient | None = None
        self._sync: httpx.Client | None = None

    def check(self) -> None:
        """Check that all is there that requests are made with; nobody is asked.

        Raises
        ------
        ConfigError
            The certificates or the token cannot be read, or the environment lacks what is named.
        """
        import httpx

        self._headers()
        self._made(httpx.Client).close()

    async def send(self, address: str, body: bytes, most: int) -> bytes:
        """Send a request to the endpoint; return its answer.

        Parameters
        ----------
        most
            Longest answer in bytes.

        Raises
        ------
        NotNowError
            It does not answer, or not now.
        ServedError
            It refuses the rows, or its answer is too long.
        """
        import httpx

        try:
            if self._async is None:
                self._async = self._made(httpx.AsyncClient)
            async with (
                asyncio.timeout(self._config.timeout),
                self._async.stream("POST", address, content=body, headers=self._headers()) as answer,
            ):
                content = await _read(answer.aiter_bytes(), most)
                self._judge(answer, content)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, TimeoutError) as error:
            raise NotNowError(told_cause(error, self._config.timeout)) from None
        except ConfigError as error:  # a file of the token or of certificates is gone, or about to be exchanged
            raise NotNowError(str(error)) from None
        return _short_enough(content, most)

    def send_now(self, address: str, body: bytes, most: int) -> bytes:
        """Send a request and block until the endpoint answers; return the answer.

        Raises
        ------
        NotNowError, ServedError
            As for `send`.
        ConfigError
            As for `check`.
        """
        import httpx

        if self._sync is None:
            self._sync = self._made(httpx.Client)
        until = time.monotonic() + self._config.timeout
        try:
            with self._sync.stream("POST", address, content=body, headers=self._headers()) as answer:
                content = _read_now(answer.iter_bytes(), most, until)
                self._judge(answer, content)
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
            raise NotNowError(told_cause(error, self._config.timeout)) from None
        return _short_enough(content, most)

    async def close(self) -> None:
        """Close the connections of a worker."""
        if self._async is not None:
            await self._async.aclose()
            self._async = None

    def _made(self, kind: Callable[..., Any]) -> Any:
        config, verify = self._config, self._verified()
        try:
            return kind(follow_redirects=False, timeout=config.timeout, verify=verify, headers=config.headers)
        except (ValueError, ImportError, OSError) as error:  # of a variable, whose value may hold a password
            raise ConfigError(
                f"{self._where}: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE of the environment cannot be used "
                f"({type(error).__name__})"
            ) from None

    def _verified(self) -> ssl.SSLContext | bool:
        """Return the SSL context for the CA file; True for httpx's default."""
        file = self._config.ca_file
        if file is None:
            return True
        try:
            return ssl.create_default_context(cafile=str(file))
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{self._where}.ca_file: {file}: {told_cause(error, 0)}") from None

    def _headers(self) -> dict[str, str]:
        config = self._config
        found = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        for header, name in config.headers_env.items():
            found[header] = self._of_environment(name, f"headers_env.{header}")
        token = None
        if config.token_env is not None:
            token = self._of_environment(config.token_env, "token_env")
        elif config.token_file is not None:
            token = read_secret(f"{self._where}.token", None, config.token_file)
            if token is not None and not _may_be_header(token):
                raise ConfigError(
                    f"{self._where}.token_file: {config.token_file} holds characters that no header may have: write "
                    "the token alone into it"
                )
        return found if token is None else {**found, "Authorization": f"Bearer {token}"}

    def _of_environment(self, name: str, key: str) -> str:
        value = os.environ.get(name, "")
        if not value or not _may_be_header(value):
            raise ConfigError(
                f"{self._where}.{key}: the environment has no {name} that can be a header: set it to what the endpoint "
                "knows"
            )
        return value

    def _judge(self, answer: Any, content: bytes) -> None:
        status = answer.status_code
        if 200 <= status < 300:
            return
        if 400 <= status < 500 and status not in LATER:
            said = content[:_SAID].decode(errors="replace")
            raise ServedError(f"the endpoint answers {status}: {''.join(c if c.isprintable() else ' ' for c in said)}")
        told = ", and redirects are not followed" if 300 <= status < 400 else ""
        raise NotNowError(f"it answers {status}{told}", _seconds(answer.headers.get("retry-after")))


def _may_be_header(value: str) -> bool:
    return value.isprintable() and value.isascii()


async def _read(pieces: AsyncIterator[bytes], most: int) -> bytes:
    content = bytearray()
    async for piece in pieces:
        content += piece
        if len(content) > most:
            break
    return bytes(content)


def _read_now(pieces: Iterator[bytes], most: int, until: float) -> bytes:
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > most:
            break
        if time.monotonic() > until:
            raise TimeoutError
    return bytes(content)


def _short_enough(content: bytes, most: int) -> bytes:
    if len(content) > most:
        raise ServedError(f"its answer has more than the {most} bytes that it may have")
    return content


def _seconds(after: str | None) -> float | None:
    """Return the seconds of a Retry-After header, at most `MOST_AFTER_S`.

    None where the header is missing or cannot be read.
    """
    if after is None:
        return None
    try:
        seconds = float(after) if after.strip().isdecimal() else parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MOST_AFTER_S)


def told_cause(error: BaseException, timeout_s: float) -> str:
    """Say in a few words why there is no answer."""
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return f"no answer within {timeout_s:g} s"
    waiting: list[BaseException | None] = [error]
    for _ in range(20):
        one = waiting.pop(0) if waiting else None
        if one is None:
            continue
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({one.verify_message}): ca_file"
        if isinstance(one, OSError) and one.errno is not None and one.errno > 0 and not isinstance(one, ssl.SSLError):
            return os.strerror(one.errno).lower()
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    said = str(error).lower()
    if "name or service" in said or "nodename" in said or "name resolution" in said:
        return "no such host"
    return said or type(error).__name__
