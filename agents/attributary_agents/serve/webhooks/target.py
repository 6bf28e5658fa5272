"""Delivery of events to a single address, in order, with retries.

Each event is attempted up to five times within a minute, whatever comes back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit

import httpx
import stamina
from stamina.instrumentation import set_on_retry_hooks

from attributary_topics import __version__

from ...config.serving import WebhookConfig
from ...errors import ConfigError
from .bodies import TYPES, body, signature
from .events import ToldEvent

logger = logging.getLogger(__name__)
# At INFO it writes the address of each request, and the path of a chat service's is a secret.
logging.getLogger("httpx").setLevel(logging.WARNING)

ATTEMPTS = 5
WITHIN_S = 60.0
"""Longest time for all attempts of an event."""

ANSWER_WITHIN_S = 10.0
"""Longest wait for the answer to one attempt."""

MOST_AFTER_S = 30.0
"""Longest pause that an answer may ask for by Retry-After."""

QUEUE = 1000
"""Events that wait for one address; what comes while so many wait is lost."""


class NotTakenError(Exception):
    """Failed delivery, with a reason that reveals no secret of the address."""


class NotTakenYetError(NotTakenError):
    """Failed delivery that may succeed later.

    Parameters
    ----------
    why
        What was answered.
    after_s
        Seconds that it asks to wait; None where it does not say.
    """

    def __init__(self, why: str, after_s: float | None = None) -> None:
        super().__init__(why)
        self.after_s = after_s


@dataclass
class Counts:
    """Counts of sent and failed events for an address."""

    sent: int = 0
    failed: int = 0
    last_failure: str | None = None


class Target:
    """Address that is told of events.

    Parameters
    ----------
    settled
        Called with the partition of an event when it is sent or lost.
    transport
        Of httpx; for tests.
    first_s
        Pause after the first attempt, twice as long after each further one; up to as much is added at random.

    Raises
    ------
    ConfigError
        The address or the environment's proxy cannot be used, or the environment lacks the secret.
    """

    def __init__(
        self,
        name: str,
        config: WebhookConfig,
        settled: Callable[[int, str], None] = lambda _partition, _name: None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        first_s: float = 1.0,
    ) -> None:
        self.name = name
        self.config = config
        self.counts = Counts()
        self._settled = settled
        self._first_s = first_s
        self._secret = _secret(name, config)
        self._waiting: asyncio.Queue[tuple[ToldEvent, int]] = asyncio.Queue(QUEUE)
        self._under_way: list[tuple[ToldEvent, int]] = []
        self._is_full = False
        self._takes = True
        try:
            self._url = httpx.URL(config.url.get_secret_value())
        except httpx.InvalidURL:
            raise ConfigError(f"serve.webhooks.{name}.url: it is no address: http://HOST/PATH") from None
        try:
            self._client = httpx.AsyncClient(
                follow_redirects=False,
                timeout=ANSWER_WITHIN_S,
                transport=transport,
                headers={"User-Agent": f"attributary/{__version__}"},
            )
        except (ValueError, ImportError, OSError) as error:  # of a variable, whose value may hold a password
            raise ConfigError(
                f"serve.webhooks.{name}: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE of the environment cannot "
                f"be used ({type(error).__name__})"
            ) from None

    @property
    def is_idle(self) -> bool:
        """Whether no event waits or is under way."""
        return not self._under_way and self._waiting.empty()

    def has_room(self, n: int) -> bool:
        """Return whether n more events fit, or waiting for room is useless.

        It is useless while the address takes none.
        """
        return not self._takes or self._waiting.qsize() + n <= QUEUE

    def offer(self, event: ToldEvent, partition: int) -> None:
        """Queue an event for sending; it is lost if too many wait."""
        try:
            self._waiting.put_nowait((event, partition))
            self._is_full = False
        except asyncio.QueueFull:
            self._lose(f"{event.id}: {QUEUE} events waited already", is_told=not self._is_full)
            self._is_full = True
            self._settled(partition, self.name)

    def lose(self, n: int) -> None:
        """Count events as lost that another process took without an outcome."""
        self._lose(
            f"{n} event{'' if n == 1 else 's'}: taken by a server that has ended, or handed over, without having told "
            "whether they arrived",
            n,
        )

    async def run(self) -> None:
        """Send queued events for ever."""
        while True:
            self._under_way = [await self._waiting.get()]
            if self.config.format == "text":
                self._under_way += self._alike(self._under_way[0][0])
            event, *others = (event for event, _ in self._under_way)
            try:
                await self.send(event, others)
                self.counts.sent += len(self._under_way)
                self._takes = True
            except NotTakenError as error:
                self._takes = False
                self._lose(f"{event.id}{_and_more(others)}: {error}", len(self._under_way))
            settled, self._under_way = self._under_way, []
            for _, partition in settled:
                self._settled(partition, self.name)

    def _alike(self, first: ToldEvent) -> list[tuple[ToldEvent, int]]:
        """Take queued events of other models with the same story.

        Each model's events keep their order.
        """
        waiting = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        alike, passed = [], {first.subject}
        for event, partition in waiting:
            if event.subject not in passed and event.story == first.story:
                alike.append((event, partition))
            else:
                self._waiting.put_nowait((event, partition))
            passed.add(event.subject)
        return alike

    async def send(self, event: ToldEvent, others: Sequence[ToldEvent] = ()) -> None:
        """Send an event with retries, and in a text others of the same story.

        Up to `ATTEMPTS` times within `WITHIN_S` seconds.

        Raises
        ------
        NotTakenError
            The address has not taken it.
        """
        set_on_retry_hooks(())  # its own would write a line for each attempt
        try:
            content = body(event, self.config.format, self.config.page, others)
        except ValueError as error:  # a number that only JSON of others has
            raise NotTakenError(f"it cannot be written as JSON: {error}") from None
        last: NotTakenError | None = None
        n = 0
        try:
            async with asyncio.timeout(WITHIN_S):
                async for attempt in stamina.retry_context(
                    on=_pause,
                    attempts=ATTEMPTS,
                    timeout=None,
                    wait_initial=self._first_s,
                    wait_max=16 * self._first_s,
                    wait_jitter=self._first_s,
                ):
                    with attempt:
                        n = attempt.num
                        try:
                            await self.attempt(event, content)
                        except NotTakenError as error:
                            last = error
                            raise
        except NotTakenYetError as error:
            raise NotTakenError(f"{error}, {n} times") from None
        except TimeoutError:
            why = f"{last}, {n} time{'' if n == 1 else 's'}, and then" if last else ""
            raise NotTakenError(f"{why} nothing within {WITHIN_S:.0f} s".strip()) from None

    async def attempt(self, event: ToldEvent, content: bytes) -> int:
        """Send an event once; return the status of the answer, which is a success.

        Raises
        ------
        NotTakenError
            It was not taken.
        """
        try:
            async with (
                asyncio.timeout(ANSWER_WITHIN_S),
                self._client.stream(
                    "POST", self._url, content=content, headers=self._headers(event, content)
                ) as answer,
            ):
                status, after = answer.status_code, answer.headers.get("retry-after")
        except TimeoutError:
            raise NotTakenYetError(f"no answer within {ANSWER_WITHIN_S:.0f} s") from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
            raise NotTakenYetError(_cause(error)) from None
        if 200 <= status < 300:
            return status
        if status == 429 or status >= 500:
            raise NotTakenYetError(f"it answers {status}", _seconds(after))
        told = ", and redirects are not followed" if 300 <= status < 400 else ""
        raise NotTakenError(f"it answers {status}{told}")

    async def close(self) -> None:
        """Count unsent events as lost, and close the connections."""
        left = [event for event, _ in self._under_way]
        while not self._waiting.empty():
            left.append(self._waiting.get_nowait()[0])
        if left:
            self._lose(f"{left[0].id}{_and_more(left[1:])}: the server ends", len(left))
        await self._client.aclose()

    def _headers(self, event: ToldEvent, content: bytes) -> dict[str, str]:
        headers = {"Content-Type": TYPES[self.config.format], "Idempotency-Key": quote(event.id, safe=":")}
        if self._secret is not None:
            now = int(time.time())
            headers["X-Attributary-Timestamp"] = str(now)
            headers["X-Attributary-Signature"] = signature(self._secret, now, content)
        return headers

    def _lose(self, why: str, n: int = 1, *, is_told: bool = True) -> None:
        self.counts.failed += n
        self.counts.last_failure = why
        if is_told:
            logger.warning("webhook %s: lost %s", self.name, why)


def _and_more(others: Sequence[ToldEvent]) -> str:
    return f" and {len(others)} more" if others else ""


def _secret(name: str, config: WebhookConfig) -> bytes | None:
    if config.secret_env is None:
        return None
    if not (secret := os.environ.get(config.secret_env)):
        raise ConfigError(
            f"serve.webhooks.{name}.secret_env: the environment has no {config.secret_env}: set it to the secret that "
            "the receiver knows"
        )
    return secret.encode("utf-8", "surrogateescape")


def shown_address(config: WebhookConfig) -> str:
    """Return an address for messages, without its path and user."""
    parts = urlsplit(config.url.get_secret_value())
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{parts.scheme}://{host}{'' if parts.port is None else f':{parts.port}'}/…"


def _pause(error: Exception) -> bool | float:
    """Say whether an event is attempted again, or after how many seconds."""
    if not isinstance(error, NotTakenYetError):
        return False
    return True if error.after_s is None else error.after_s


def _seconds(after: str | None) -> float | None:
    """Return the seconds of a Retry-After header; None if unreadable.

    At most `MOST_AFTER_S`.
    """
    if after is None:
        return None
    try:
        seconds = float(after) if after.strip().isdecimal() else parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MOST_AFTER_S)


def _cause(error: BaseException) -> str:
    """Return in a few words why there is no answer.

    The text of an error is not used: it could name the address.
    """
    for one in _chain(error):
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({one.verify_message})"
        if isinstance(one, OSError) and one.errno and one.errno > 0 and not isinstance(one, ssl.SSLError):
            return os.strerror(one.errno).lower()
    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {ANSWER_WITHIN_S:.0f} s"
    if isinstance(error, httpx.ProxyError):
        return "the proxy of the environment refuses"
    names = {httpx.ConnectError: "no connection", httpx.RemoteProtocolError: "it ends the connection"}
    return next((said for kind, said in names.items() if isinstance(error, kind)), type(error).__name__)


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
