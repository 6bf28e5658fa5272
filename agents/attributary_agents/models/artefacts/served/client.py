"""HTTP client of a served model: requests, retries, and checks of answers.

No other module knows httpx and stamina. Redirects are not followed, an answer has a bounded length, and the token is
read anew for each request.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
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

FIRST_PAUSE_S, LONGEST_PAUSE_S, JITTER_S = 0.1, 30.0, 0.25
"""Seconds before a request is sent again: at first, at most, and what is added at random."""

LATER = frozenset({401, 403, 404, 405, 407, 408, 425, 429})
"""Statuses below 500 that are about the endpoint or the client, and not about the rows: the observations wait."""

_SHOWN = 200
"""Characters of an answer that a message shows where the endpoint refuses rows."""


def check_installed() -> None:
    """Raise ConfigError where the extra is missing."""
    for package in ("httpx", "stamina"):
        if find_spec(package) is None:
            raise ConfigError(f"a model that is served needs {package}: pip install 'attributary[served]'")


def attempts(retries: int | None) -> Any:
    """Return the attempts at a request, for `async for` or `for`.

    Parameters
    ----------
    retries
        How often it is sent again; None: until there is an answer.
    """
    import stamina
    from stamina.instrumentation import set_on_retry_hooks

    # Its own hooks would write a line for each attempt, and count in a registry of metrics that nobody reads.
    set_on_retry_hooks(())
    return stamina.retry_context(
        on=NotNowError,
        attempts=None if retries is None else 1 + retries,
        timeout=None,
        wait_initial=FIRST_PAUSE_S,
        wait_max=LONGEST_PAUSE_S,
        wait_jitter=JITTER_S,
    )


class Client:
    """Client of a single endpoint; several threads may use it.

    Raises
    ------
    ConfigError
        The extra is missing.
    """

    def __init__(self, config: ServedConfig) -> None:
        check_installed()
        self._config = config
        self._client: httpx.Client | None = None
        self._opening = threading.Lock()

    def check(self) -> None:
        """Check that all is there that requests are made with; none is sent.

        Raises
        ------
        ConfigError
            The certificates or the token cannot be read, or the environment lacks what is named.
        """
        self._headers()
        self._open().close()

    def send(self, address: str, body: bytes, most: int) -> bytes:
        """Send a request and block until the endpoint answers; return its answer.

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
        ConfigError
            As for `check`.
        """
        import httpx

        timeout, content = self._config.timeout, bytearray()
        try:
            with self._opening:
                client = self._client = self._client or self._open()
            with client.stream("POST", address, content=body, headers=self._headers()) as answer:
                until = time.monotonic() + timeout
                for piece in answer.iter_bytes():
                    content += piece
                    if len(content) > most:
                        break
                    if time.monotonic() > until:
                        raise TimeoutError
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
            raise NotNowError(cause_of(error, timeout)) from None
        _check_status(answer, content)
        if len(content) > most:
            raise ServedError(f"its answer has more than the {most} bytes that it may have")
        return bytes(content)

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _open(self) -> httpx.Client:
        import httpx

        config, verify = self._config, self._verified()
        limits = httpx.Limits(max_connections=config.max_in_flight)
        timeout = httpx.Timeout(config.timeout, pool=None)  # it is no fault of the endpoint's that others come first
        try:
            return httpx.Client(timeout=timeout, limits=limits, verify=verify, headers=config.headers)
        except (ValueError, ImportError, OSError) as error:  # of a variable, whose value may hold a password
            raise ConfigError(
                f"model: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE of the environment cannot be used "
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
            raise ConfigError(f"model.ca_file: {file}: {cause_of(error, 0)}") from None

    def _headers(self) -> dict[str, str]:
        config = self._config
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        for header, name in config.headers_env.items():
            headers[header] = self._of_environment(name, f"headers_env.{header}")
        token = None
        if config.token_env is not None:
            token = self._of_environment(config.token_env, "token_env")
        elif config.token_file is not None:
            token = read_secret("model.token", None, config.token_file)
            if token is not None and not _may_be_header(token):
                raise ConfigError(
                    f"model.token_file: {config.token_file} holds characters that no header may have: write "
                    "the token alone into it"
                )
        return headers if token is None else {**headers, "Authorization": f"Bearer {token}"}

    def _of_environment(self, name: str, key: str) -> str:
        value = os.environ.get(name, "")
        if not value or not _may_be_header(value):
            raise ConfigError(
                f"model.{key}: the environment has no {name} that can be a header: set it to what the endpoint knows"
            )
        return value


def _may_be_header(value: str) -> bool:
    return value.isprintable() and value.isascii()


def _check_status(answer: httpx.Response, content: bytes | bytearray) -> None:
    """Raise the error that an answer's status means, if any."""
    status = answer.status_code
    if 200 <= status < 300:
        return
    if 400 <= status < 500 and status not in LATER:
        text = content[:_SHOWN].decode(errors="replace")
        raise ServedError(f"the endpoint answers {status}: {''.join(c if c.isprintable() else ' ' for c in text)}")
    more = ", and redirects are not followed" if 300 <= status < 400 else ""
    raise NotNowError(f"it answers {status}{more}")


def cause_of(error: BaseException, timeout_s: float) -> str:
    """Return in a few words why there is no answer."""
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return f"no answer within {timeout_s:g} s"
    waiting: list[BaseException | None] = [error]
    for _ in range(20):
        cause = waiting.pop(0) if waiting else None
        if cause is None:
            continue
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message}): ca_file"
        if isinstance(cause, OSError) and (cause.errno or 0) > 0 and not isinstance(cause, ssl.SSLError):
            return os.strerror(cause.errno or 0).lower()
        waiting += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]
    text = str(error).lower()
    if "name or service" in text or "nodename" in text or "name resolution" in text:
        return "no such host"
    return text or type(error).__name__
