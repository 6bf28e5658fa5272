"""Kafka clients of every kind, and errors that say why they fail."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, errors
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from ..config.settings import KafkaConfig
from ..errors import BrokersAwayError, ConfigError, PreflightError
from .brokers import cause_of
from .upstream.aiokafka_client import watch_connections
from .upstream.aiokafka_fetcher import bound_batches
from .upstream.aiokafka_logs import correct_logs
from .upstream.aiokafka_producer import close_at_once

MAX_BATCH_BYTES = 524_288
"""Longest batch of records that a worker sends; each topic takes as much (`kafka.max_record_bytes` is 1 MB or more).

Of a partition one batch after another is sent and acknowledged, and while records wait, each of them lasts as long as a
slice of these. With the client's 16 kB the events of a checkpoint could take hundreds of requests, and many seconds.
"""

PROBE_MS = 5_000
"""Longest wait for one broker's answer while the cause of a fault is looked for."""

STARTED_WITHIN_S = 20.0
"""Longest wait for what a client asks the brokers at its start."""

STOPPED_WITHIN_S = 5.0
"""Longest wait for what a client still has to send at its end."""

# OpenSSL's numbers: the name, the e-mail address, the IP address is another one.
_OTHER_NAME = (62, 63, 64)
_REFUSED = (
    errors.TopicAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.TransactionalIdAuthorizationFailed,
)
_SILENCE = (
    errors.KafkaConnectionError,
    errors.KafkaTimeoutError,
    errors.NodeNotReadyError,
    errors.RequestTimedOutError,
    OSError,
    TimeoutError,
)
"""Errors of brokers that do not answer: which of them is found out by asking each."""


bound_batches()
watch_connections()
correct_logs()


def client_options(kafka: KafkaConfig) -> dict[str, Any]:
    """Return the arguments of every aiokafka client: brokers, TLS and SASL.

    What the process reads from here on is bounded by `kafka.max_batch_bytes`.

    Raises
    ------
    ConfigError
        A file of certificates, of a key or of a password cannot be used.
    """
    bound_batches(kafka.max_batch_bytes)
    security = kafka.security
    options: dict[str, Any] = {"bootstrap_servers": kafka.brokers, "security_protocol": security.protocol}
    if security.tls:
        options["ssl_context"] = _ssl_context(kafka)
    if security.sasl:
        options["sasl_mechanism"] = security.mechanism
        options["sasl_plain_username"] = security.username
        options["sasl_plain_password"] = security.read_password()
    return options


@contextlib.asynccontextmanager
async def consumer(kafka: KafkaConfig, *topics: str, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """Start a consumer of no group; stop it behind the block.

    It commits nothing and reads from the beginning.

    Parameters
    ----------
    topics
        Topics to read; the consumer gets all partitions of them.
    options
        Further arguments of `AIOKafkaConsumer`.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse, at the start or inside the block.
    """
    defaults = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    client = AIOKafkaConsumer(*topics, **await _reachable(kafka), **defaults | options)
    async with _started(kafka, client, ", ".join(topics)):
        yield client


@contextlib.asynccontextmanager
async def producer(kafka: KafkaConfig, topic: str, **options: Any) -> AsyncIterator[AIOKafkaProducer]:
    """Start an idempotent producer for a topic; stop it behind the block.

    Parameters
    ----------
    topic
        Topic that is written to, which an error names.
    options
        Further arguments of `AIOKafkaProducer`.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse, at the start or inside the block.
    """
    client = AIOKafkaProducer(**await _reachable(kafka), **{"enable_idempotence": True} | options)
    async with _started(kafka, client, topic):
        yield client


@contextlib.asynccontextmanager
async def _started(kafka: KafkaConfig, client: Any, what: str) -> AsyncIterator[None]:
    try:
        try:
            async with asyncio.timeout(STARTED_WITHIN_S):
                await client.start()
        except TimeoutError as error:
            raise await client_fault(kafka, error, what) from None
        yield
    except KafkaError as error:
        raise await client_fault(kafka, error, what) from None
    finally:
        await _stop(client)


async def _stop(client: Any) -> None:
    """Stop a client within STOPPED_WITHIN_S, whatever waits for a broker."""
    try:
        async with asyncio.timeout(STOPPED_WITHIN_S):
            await client.stop()
    except TimeoutError:
        if isinstance(client, AIOKafkaProducer):
            await close_at_once(client)


def _ssl_context(kafka: KafkaConfig) -> ssl.SSLContext:
    security = kafka.security
    files = {"ca_file": security.ca_file, "cert_file": security.cert_file, "key_file": security.key_file}
    for name, file in files.items():
        if file is not None:
            _check_readable(name, file)
    try:
        context = ssl.create_default_context(cafile=security.ca_file)  # checks the broker's name, too
    except ssl.SSLError:
        raise ConfigError(f"kafka.security.ca_file: {security.ca_file} has no certificate in PEM") from None
    if security.cert_file is not None:
        password = security.read_key_password()
        try:
            # Without a password OpenSSL would ask for it on the terminal.
            context.load_cert_chain(security.cert_file, security.key_file, password or "")
        except ssl.SSLError as error:
            raise ConfigError(_key_fault(kafka, error, password)) from None
    return context


def _check_readable(name: str, file: Path) -> None:
    try:
        file.open("rb").close()
    except OSError as error:
        raise ConfigError(f"kafka.security.{name}: cannot read {file}: {error.strerror}") from None


def _key_fault(kafka: KafkaConfig, error: ssl.SSLError, password: str | None) -> str:
    security = kafka.security
    key = f"kafka.security.key_file: {security.key_file}" if security.key_file else f"the key in {security.cert_file}"
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key} is not the key of the certificate in {security.cert_file}"
    needs = "the right kafka.security.key_password" if password else "kafka.security.key_password, if it is encrypted"
    return (
        f"kafka.security.cert_file: {security.cert_file} must hold a certificate and {security.key_file or 'it'} its "
        f"private key, both in PEM; the key needs {needs}"
    )


@contextlib.contextmanager
def client_log_muted(name: str = "aiokafka") -> Iterator[None]:
    """Silence aiokafka's log: our error says once why a client fails."""
    log = logging.getLogger(name)
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


async def client_fault(kafka: KafkaConfig, error: BaseException, what: str = "") -> PreflightError:
    """Return the error that tells the user why a client fails.

    aiokafka says "unable to bootstrap" of everything and leaves the cause in its log, so each broker is asked again.

    Parameters
    ----------
    what
        What could not be done or reached: the line begins with it.
    """
    brokers = ", ".join(kafka.brokers)
    start = f"{what}: " if what else ""
    if isinstance(error, _REFUSED):
        who = f"the user {kafka.security.username}" if kafka.security.sasl else "this client"
        return PreflightError(
            f"{start}the brokers at {brokers} do not let {who} do this "
            f"({' '.join([type(error).__name__, *map(str, error.args)])}): grant it; docs/security.md lists what each "
            "user needs"
        )
    if not isinstance(error, _SILENCE):
        told = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if getattr(error, "retriable", False):  # a cluster that is coming up, or has lost a leader
            return BrokersAwayError(f"{start}{brokers}: {told}", told)
        return PreflightError(f"{start}{brokers}: {told}")
    causes, closing = [], ""
    with client_log_muted():
        hosts = [(host, port) for host, port, _ in collect_hosts(kafka.brokers, randomize=False)]
        probed = await asyncio.gather(*(_probe(kafka, host, port) for host, port in hosts))
    for (host, port), found in zip(hosts, probed, strict=True):
        if found is not None:
            if said := _explain(kafka, found):
                return PreflightError(f"{start}{host}:{port}: {said}")
            ended = _explain_end(kafka, found)
            closing = closing or f"{start}{host}:{port}: {ended}" * bool(ended)
            causes.append(f"{host}:{port}: {ended or cause_of(found)}")
    if 0 < len(causes) < len(hosts):
        n, told = len(hosts) - len(causes), "; ".join(causes)
        return BrokersAwayError(
            f"{start}{n} of the {len(hosts)} brokers answer{'s' if n == 1 else ''}, but not what was asked ({told}): "
            "start the brokers that are away, they may lead partitions; run it again then",
            told,
        )
    if not causes:
        told = f"{type(error).__name__}: {' '.join(map(str, error.args))}".rstrip(": ")
        told = f"the brokers at {brokers} answer, but not what was asked ({told})"
        return BrokersAwayError(f"{start}{told}", told, answer=True)
    if closing:
        return BrokersAwayError(closing, "; ".join(causes))
    return BrokersAwayError(
        f"{start}no Kafka at {brokers} ({type(error).__name__}): start it, or set kafka.brokers "
        "(ATTRIBUTARY_KAFKA__BROKERS=host:9092)",
        "; ".join(causes) or f"{brokers}: {type(error).__name__}",
    )


async def _reachable(kafka: KafkaConfig) -> dict[str, Any]:
    """Return `client_options` with a broker that answers, none that hangs."""
    return client_options(kafka) | {"bootstrap_servers": await first_to_answer(kafka)}


async def first_to_answer(kafka: KafkaConfig) -> list[str]:
    """Return a list of the broker that answers first; all if none answers."""
    hosts = [(host, port) for host, port, _ in collect_hosts(kafka.brokers, randomize=False)]
    if len(hosts) < 2:
        return kafka.brokers
    probes = {asyncio.ensure_future(_probe(kafka, *host)): host for host in hosts}
    waiting = set(probes)
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for probe in done:
                if probe.result() is None:
                    host, port = probes[probe]
                    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    finally:
        for probe in waiting:
            probe.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return kafka.brokers


async def _probe(kafka: KafkaConfig, host: str, port: int) -> BaseException | None:
    """Return the error of connecting to a broker; None where all is well."""
    options = client_options(kafka)
    del options["bootstrap_servers"]
    try:
        async with asyncio.timeout(2 * PROBE_MS / 1000):
            connection = await create_conn(host, port, request_timeout_ms=PROBE_MS, **options)
            try:
                await connection.send(MetadataRequest([]))
            finally:
                connection.close()
    except (KafkaError, OSError, TimeoutError) as error:
        return error
    return None


def _explain(kafka: KafkaConfig, error: BaseException) -> str | None:
    """Return the cause of an error and a remedy; None if waiting may help."""
    security = kafka.security
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        told = cause.verify_message
        if cause.verify_code in _OTHER_NAME:
            return f"the broker's certificate is for another name ({told}): use its name in kafka.brokers"
        return (
            f"the broker's certificate is not trusted ({told}): set kafka.security.ca_file to the certificate of the "
            "CA that has signed it"
        )
    if isinstance(cause, ssl.SSLError) and "ALERT" in (cause.reason or ""):
        ours = f"our certificate, {security.cert_file}" if security.cert_file else "a client without a certificate"
        return f"the broker refuses {ours} ({cause.reason}): check kafka.security.cert_file, and whom it trusts"
    if isinstance(cause, errors.SaslAuthenticationFailed):
        return (
            f"the broker refuses the user {security.username} ({security.mechanism}): check kafka.security.username "
            "and password"
        )
    if isinstance(cause, errors.UnsupportedSaslMechanismError):
        return f"the broker does not offer {security.mechanism} here: check kafka.security.mechanism"
    if isinstance(cause, errors.IllegalSaslStateError):
        other = security.protocol.removeprefix("SASL_")
        return f"the broker asks for no user here: set kafka.security.protocol to {other}, or use another port"
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, _ENDS):  # what answers speaks, and no TLS
        return _END.format(security.protocol)
    return None


def _explain_end(kafka: KafkaConfig, error: BaseException) -> str | None:
    """Return the likely reason why a broker ended the connection, or None.

    A listener of another protocol ends it, and so does whatever stands before a broker that is not up yet.
    """
    closed = (errors.KafkaConnectionError, *_ENDS)
    if isinstance(error, closed) and not isinstance(error.__cause__ or error, ConnectionRefusedError):
        return _END.format(kafka.security.protocol)
    return None


_ENDS = (ConnectionResetError, BrokenPipeError, EOFError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
_END = (
    "the broker ends the connection: it is not up yet, or this port may not speak {0}; set kafka.security.protocol to "
    "what its listener speaks, and a certificate where it wants one"
)
