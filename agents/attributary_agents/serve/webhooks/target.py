"""Delivery of incidents to a single address by Standard Webhooks.

A body is a CloudEvent in structured mode, or a text for a chat service.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import stamina
from stamina.instrumentation import set_on_retry_hooks

from attributary_explainers.incidents.words import DID_TOGETHER
from attributary_explainers.wording import printable
from attributary_topics import SEVERITIES, __version__, encode_json

from ...config.serving import WebhookConfig
from ...errors import ConfigError
from ..answers import WebhookCount

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

_TYPES = {"cloudevents": "application/cloudevents+json", "text": "application/json"}
_SECRET_BYTES = 24  # the least that Standard Webhooks recommends
_MOST_TEXT = 2000  # characters of a sentence: chat services take some thousand
_MOST_NAMES = 10
_JOINER = "\u2060"  # has no width: what stands around it is no mention, no address and no link any more
_MARKS = {"info": "🔵 ", "warning": "🟠 ", "critical": "🔴 "}
_CAUSES = {
    httpx.ProxyError: "the proxy of the environment refuses",
    httpx.ConnectError: "no connection",
    httpx.RemoteProtocolError: "it ends the connection",
}


@dataclass(frozen=True)
class Revision:
    """Revision of an incident, with its attributes as CloudEvents has them."""

    id: str
    source: str
    type: str
    subject: str
    time: str | None
    data: dict[str, Any]

    @property
    def incident(self) -> str:
        """Id of the incident: of its first revision."""
        return str(self.data.get("id") or self.id)

    @property
    def story(self) -> tuple[Any, ...]:
        """Kind, progress and leading feature, for grouping.

        Models that changed in the same way have the same.
        """
        return self.data.get("what"), self.data.get("life"), next(iter(self.data.get("features") or ()), None)


class DeliveryError(Exception):
    """Failed delivery, with a reason that reveals no secret of the address."""


class RetryableDeliveryError(DeliveryError):
    """Failed delivery that may succeed later, after `after_s` if given."""

    def __init__(self, reason: str, after_s: float | None = None) -> None:
        super().__init__(reason)
        self.after_s = after_s


class Target:
    """Address that gets events in their order, each after the last.

    Parameters
    ----------
    settled
        Called with the partition of an event, and the address's name, when it is sent or lost.
    transport, first_s
        Of httpx, and the pause after the first attempt, twice as long after each further one; for tests.

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
        self.name, self.config = name, config
        self._settled, self._first_s = settled, first_s
        self._secret = _secret(name, config)
        self._sent = self._failed = 0
        self._last_failure: str | None = None
        self._waiting: asyncio.Queue[tuple[Revision, int]] = asyncio.Queue(QUEUE)
        self._sending: list[tuple[Revision, int]] = []
        self._is_full, self._is_taking = False, True
        try:
            self._url = httpx.URL(config.url.get_secret_value())
        except httpx.InvalidURL:
            raise ConfigError(f"serve.webhooks.{name}.url: it is no address: http://HOST/PATH") from None
        agent = {"User-Agent": f"attributary/{__version__}"}
        try:
            self._client = httpx.AsyncClient(timeout=None, transport=transport, headers=agent)
        except (ValueError, ImportError, OSError) as error:  # of a variable, whose value may hold a password
            raise ConfigError(
                f"serve.webhooks.{name}: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE of the environment cannot "
                f"be used ({type(error).__name__})"
            ) from None

    @property
    def count(self) -> WebhookCount:
        """Numbers of sent and lost events since this process began."""
        return WebhookCount(name=self.name, sent=self._sent, failed=self._failed, last_failure=self._last_failure)

    @property
    def is_idle(self) -> bool:
        """Whether no event waits or is being sent."""
        return not self._sending and self._waiting.empty()

    def has_room(self, n: int) -> bool:
        """Return whether n more events fit, or waiting for room is useless.

        It is useless while the address takes none.
        """
        return not self._is_taking or self._waiting.qsize() + n <= QUEUE

    def offer(self, event: Revision, partition: int) -> None:
        """Queue an event for sending; it is lost if too many wait."""
        try:
            self._waiting.put_nowait((event, partition))
            self._is_full = False
        except asyncio.QueueFull:
            self.lose(f"{event.id}: {QUEUE} events waited already", is_logged=not self._is_full)
            self._is_full = True
            self._settled(partition, self.name)

    def lose(self, reason: str, n: int = 1, *, is_logged: bool = True) -> None:
        """Count events as lost."""
        self._failed += n
        self._last_failure = reason
        if is_logged:
            logger.warning("webhook %s: lost %s", self.name, reason)

    async def run(self) -> None:
        """Send queued events for ever."""
        while True:
            self._sending = [await self._waiting.get()]
            if self.config.format == "text":
                self._sending += self._alike(self._sending[0][0])
            events = [event for event, _ in self._sending]
            try:
                await self.send(*events)
                self._sent += len(events)
                self._is_taking = True
            except DeliveryError as error:
                self._is_taking = False
                self.lose(f"{_ids(events)}: {error}", len(events))
            settled, self._sending = self._sending, []
            for _, partition in settled:
                self._settled(partition, self.name)

    def _alike(self, first: Revision) -> list[tuple[Revision, int]]:
        """Take queued events of other models with the same story.

        Each model's events keep their order.
        """
        alike, passed = [], {first.subject}
        for _ in range(self._waiting.qsize()):
            event, partition = self._waiting.get_nowait()
            if event.subject not in passed and event.story == first.story:
                alike.append((event, partition))
            else:
                self._waiting.put_nowait((event, partition))
            passed.add(event.subject)
        return alike

    async def send(self, *events: Revision) -> None:
        """Send an event, or several in a text, with retries.

        Raises
        ------
        DeliveryError
            The address has not taken it.
        """
        set_on_retry_hooks(())  # stamina's own would write a line for each attempt
        last: DeliveryError | None = None
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
                            await self.attempt(*events)
                        except DeliveryError as error:
                            last = error
                            raise
        except RetryableDeliveryError as error:
            raise DeliveryError(f"{error}, {n} times") from None
        except TimeoutError:
            before = f"{last}, {n} time{'' if n == 1 else 's'}, and then " if last else ""
            raise DeliveryError(f"{before}nothing within {WITHIN_S:.0f} s") from None

    async def attempt(self, *events: Revision) -> int:
        """Send an event once; return the status of the answer, a success.

        Raises
        ------
        DeliveryError
            It was not taken.
        """
        try:
            content = body(self.config, *events)
        except ValueError as error:  # a number that only JSON of others has
            raise DeliveryError(f"it cannot be written as JSON: {error}") from None
        now, event_id = int(time.time()), quote(events[0].id, safe=":").replace(".", "%2E")
        headers = {
            "Content-Type": _TYPES[self.config.format],
            "webhook-id": event_id,
            "webhook-timestamp": str(now),
        }
        if self._secret is not None:
            headers["webhook-signature"] = signature(self._secret, event_id, now, content)
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                async with self._client.stream("POST", self._url, content=content, headers=headers) as answer:
                    status, after = answer.status_code, answer.headers.get("retry-after")
        except TimeoutError:
            raise RetryableDeliveryError(f"no answer within {ANSWER_WITHIN_S:.0f} s") from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
            raise RetryableDeliveryError(_cause(error)) from None
        if 200 <= status < 300:
            return status
        if status == 429 or status >= 500:
            raise RetryableDeliveryError(f"it answers {status}", retry_after(after))
        redirects = ", and redirects are not followed" if 300 <= status < 400 else ""
        raise DeliveryError(f"it answers {status}{redirects}")

    async def close(self) -> None:
        """Count unsent events as lost, and close the connections."""
        unsent = [event for event, _ in self._sending]
        while not self._waiting.empty():
            unsent.append(self._waiting.get_nowait()[0])
        if unsent:
            self.lose(f"{_ids(unsent)}: the server ends", len(unsent))
        await self._client.aclose()


def body(config: WebhookConfig, *events: Revision) -> bytes:
    """Return the body for an event, or the text for several."""
    if config.format == "text":
        return encode_json({"text": text(config.page, *events)})
    (event,) = events
    attributes = {"specversion": "1.0", "id": event.id, "source": event.source, "type": event.type}
    attributes |= {"subject": event.subject, "time": event.time or "", "datacontenttype": "application/json"}
    return encode_json({name: value for name, value in attributes.items() if value} | {"data": event.data})


def text(page: str | None, *events: Revision) -> str:
    """Return the text for a chat service.

    Of one model: its headline, the rest of its sentence and a link. Of several with the same story: how many they are,
    when, the feature, what to do about the worst, and their names.
    """
    worst = max(events, key=lambda event: rank(event.data.get("severity")))
    what, life, feature = worst.story
    if len(events) == 1:
        headline = str(worst.data.get("headline") or f"{worst.subject}: {what}")
        rest = str(worst.data.get("sentence") or headline)
        for end in (". ", ": "):  # a sentence begins with its headline
            rest = rest.removeprefix(headline + end)
        lines = [headline, rest[:1].upper() + rest[1:] if rest != headline else ""]
        link = f"incidents/{quote(worst.incident, safe=':')}"
    else:
        times = [since for event in events if (since := (event.data.get("since") or {}).get("time"))]
        at = f" at {min(times)[11:16]} UTC" if times else ""
        did = f"{DID_TOGETHER.get(what, 'changed')} together{at}" + (f": {feature}" if feature else "")
        names = ", ".join(event.subject for event in events[:_MOST_NAMES])
        more = f" and {len(events) - _MOST_NAMES} more" if len(events) > _MOST_NAMES else ""
        progress = "" if life == "confirmed" else f"{life}: "
        lines = [f"{progress}{len(events)} models {did}", str(worst.data.get("action") or ""), names + more]
        link = ""
    mark = "⚪ " if life in ("over", "withdrawn") else _MARKS.get(str(worst.data.get("severity")), "")
    lines = [mark + plain(lines[0]), *map(plain, lines[1:])]
    return "\n".join(filter(None, [*lines, "" if page is None else f"{page.rstrip('/')}/{link}"]))


def rank(severity: Any) -> int:
    """Return the rank of a severity; unknown severities rank highest."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES) - 1


def plain(name: str) -> str:
    """Defuse markup, mentions and addresses in a text with outside names."""
    name = printable(name)
    name = name if len(name) <= _MOST_TEXT else f"{name[:_MOST_TEXT]} …"
    for mark in ("@", "](", "://", "www."):
        name = name.replace(mark, mark[0] + _JOINER + mark[1:])
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def signature(secret: bytes, event_id: str, timestamp: int, content: bytes) -> str:
    """Return the header `webhook-signature` of Standard Webhooks."""
    signed = f"{event_id}.{timestamp}.".encode() + content
    return f"v1,{b64encode(hmac.digest(secret, signed, 'sha256')).decode()}"


def shown_address(config: WebhookConfig) -> str:
    """Return an address for messages, without its path and user."""
    parts = urlsplit(config.url.get_secret_value())
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{parts.scheme}://{host}{'' if parts.port is None else f':{parts.port}'}/…"


def _secret(name: str, config: WebhookConfig) -> bytes | None:
    if (variable := config.secret_env) is None:
        return None
    where = f"serve.webhooks.{name}.secret_env: "
    if not (value := os.environ.get(variable)):
        raise ConfigError(f"{where}the environment has no {variable}: set it to the secret that the receiver knows")
    try:
        secret = b64decode(value.removeprefix("whsec_"), validate=True)
    except ValueError:
        secret = b""
    if len(secret) < _SECRET_BYTES:
        raise ConfigError(
            f"{where}{variable} holds no secret of Standard Webhooks: expected whsec_ and at least {_SECRET_BYTES} "
            'bytes in base64, as `echo "whsec_$(openssl rand -base64 32)"` makes them'
        )
    return secret


def _ids(events: Sequence[Revision]) -> str:
    return events[0].id + (f" and {len(events) - 1} more" if len(events) > 1 else "")


def _pause(error: Exception) -> bool | float:
    """Return whether an event is attempted again, or after how many seconds."""
    if not isinstance(error, RetryableDeliveryError):
        return False
    return True if error.after_s is None else error.after_s


def retry_after(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, bounded; None if unreadable."""
    if header is None:
        return None
    try:
        is_number = header.strip().isdecimal()
        seconds = float(header) if is_number else parsedate_to_datetime(header).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MOST_AFTER_S)


def _cause(error: BaseException) -> str:
    """Return in a few words why there is no answer.

    The text of an error is not used: it could name the address.
    """
    chain = [error]
    for link in chain:  # which grows meanwhile
        if isinstance(link, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({link.verify_message})"
        if isinstance(link, OSError) and (link.errno or 0) > 0 and not isinstance(link, ssl.SSLError):
            return os.strerror(link.errno or 0).lower()
        causes = (link.__cause__, link.__context__, *getattr(link, "exceptions", ()))
        chain += [cause for cause in causes if cause is not None and cause not in chain]
    return next((words for kind, words in _CAUSES.items() if isinstance(error, kind)), type(error).__name__)
