"""The demo's brokers: embedded, local Apache Kafka, or already running."""

import importlib.util
import os
import shutil
import signal
import socket
import struct
import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import ClassVar

from .local_broker import HOST, Broker, BrokerError, BrokerMissingError, LocalBroker, ask, free_port

__all__ = [
    "Broker",
    "BrokerError",
    "BrokerMissingError",
    "EmbeddedBroker",
    "ExternalBroker",
    "KafkaBroker",
    "broker",
]


def broker(spec: str, *, data_dir: Path | None = None) -> Broker:
    """Return the broker for "embedded", "kafka", or HOST:PORT.

    HOST:PORT is the address of a broker that runs already.
    """
    if spec == EmbeddedBroker.name:
        return EmbeddedBroker(data_dir)
    if spec == KafkaBroker.name:
        return KafkaBroker(data_dir)
    host, _, port = spec.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BrokerError(f"{spec!r} is no broker: say `embedded`, `kafka` or HOST:PORT")
    return ExternalBroker(host.strip("[]"), int(port))


class ExternalBroker(Broker):
    """Broker that somebody else runs; it is never started or stopped here."""

    name = "external"

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    @property
    def bootstrap(self) -> str:
        """Address to which clients connect, host:port."""
        host, port = self._address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        """Check that something listens at the address."""
        try:
            socket.create_connection(self._address, timeout=5).close()
        except OSError as error:
            raise BrokerError(
                f"no broker answers at {self.bootstrap} ({error}): start it, or correct the address"
            ) from error

    def stop(self) -> None:
        """Leave it running."""

    def kill(self) -> None:
        """Refuse: the process is not ours."""
        raise BrokerError(f"the broker at {self.bootstrap} was not started here, so it is not killed from here")


class EmbeddedBroker(LocalBroker):
    """Broker of the wheel noida-db, which is up in milliseconds.

    It has one consumer per group; never use it for production. It lives in memory and writes its data out once a
    second: what came after that is lost at a `kill`.
    """

    name = "embedded"
    _death_signal = signal.SIGKILL
    _start_timeout_s = 20.0

    def _require(self) -> None:
        self._binary()

    def _prepare(self, folder: Path) -> list[str]:
        return [
            *(str(self._binary()), "start", "--only", "kafka"),
            *("--kafka-port", str(self._port), "--data-dir", str(folder / "data")),
        ]

    def _configure(self) -> None:
        # It would create a topic for whoever asks about one, with the wrong number of partitions. AlterConfigs
        # v0 of broker 1 (a resource of type 4), one entry, not only validated.
        entry = _text("auto.create.topics.enable") + _text("false")
        body = struct.pack(">ib", 1, 4) + _text("1") + struct.pack(">i", 1) + entry + b"\0"
        _throttled_ms, resources, error = struct.unpack(">iih", ask(self._port, 33, 0, body)[:10])
        if (resources, error) != (1, 0):
            raise self.failure(f"cannot be kept from creating topics (error {error})")

    @staticmethod
    def _binary() -> Path:
        spec = importlib.util.find_spec("noida_db")
        if spec is None or spec.origin is None:
            raise BrokerMissingError("the embedded broker is not installed: pip install 'attributary[demo]'")
        return Path(spec.origin).parent / "noida-db"


class KafkaBroker(LocalBroker):
    """Apache Kafka as a single node that is both broker and controller.

    It runs from the jars of `make kafka`.
    """

    name = "kafka"
    _death_signal = signal.SIGTERM
    _start_timeout_s = 90.0
    _heap: ClassVar[str] = "512m"

    def __init__(self, data_dir: Path | None = None) -> None:
        super().__init__(data_dir)
        self._controller_port = 0
        self._cluster_id = self.new_cluster_id()

    @staticmethod
    def new_cluster_id() -> str:
        """Return an id as Kafka makes them: 22 characters."""
        return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    def _require(self) -> None:
        self._java()
        self._jars()

    def _prepare(self, folder: Path) -> list[str]:
        self._controller_port = self._next_controller_port()
        properties = folder / "server.properties"
        properties.write_text(self._properties(folder / "data"))
        java = [self._java(), f"-Xmx{self._heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        jars = self._jars()
        if (classes := self.stored_classes()).is_file():  # Java passes over one of other jars
            java.append(f"-XX:SharedArchiveFile={classes}")
        if (logging := jars.parent / "log4j2.xml").is_file():
            java.append(f"-Dlog4j2.configurationFile={logging}")
        java += ["-cp", f"{jars}/*"]
        if not (folder / "data" / "meta.properties").exists():
            # One argument, as the id may begin with a hyphen.
            tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={self._cluster_id}", "-c", str(properties)]
            tool += self._format_options()
            with self.log.open("ab") as output:
                done = subprocess.run([*java, *tool], stdout=output, stderr=output, check=False)
            if done.returncode != 0:
                raise self.failure("could not format its data folder")
        return [*java, "kafka.Kafka", str(properties)]

    def _next_controller_port(self) -> int:
        """Return another controller port at each start.

        Nobody else has to know the port, and it may be taken while the broker is down.
        """
        return free_port()

    def _format_options(self) -> list[str]:
        """Further arguments of the command that formats the data folder."""
        return []

    def _properties(self, data: Path) -> str:
        # After a SIGKILL the controller lets the broker back in only when its old session has run out: 3 s
        # here instead of 9 s.
        return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{HOST}:{self._controller_port}
listeners=PLAINTEXT://{HOST}:{self._port},CONTROLLER://{HOST}:{self._controller_port}
advertised.listeners=PLAINTEXT://{HOST}:{self._port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
"""

    @classmethod
    def stored_classes(cls) -> Path:
        """Return the path of the classes as Java has them in memory.

        A checkout makes that file for its tests.
        """
        return cls._jars() / "classes.jsa"

    @staticmethod
    def _java() -> str:
        home = os.environ.get("JAVA_HOME")
        java = shutil.which("java", path=f"{home}/bin") if home else None
        java = java or shutil.which("java")
        if java is None:
            raise BrokerMissingError("Apache Kafka needs Java 17 or later: install it, then run `make kafka`")
        return java

    @staticmethod
    def _jars() -> Path:
        checkout = Path(__file__).resolve().parents[3]
        jars = Path(os.environ.get("ATTRIBUTARY_KAFKA_LIB") or checkout / "deploy/kafka/lib").absolute()
        if not any(jars.glob("kafka_2.13-*.jar")):
            raise BrokerMissingError(
                f"no Apache Kafka in {jars}: run `make kafka` in a checkout of Attributary, "
                "or name a folder with Kafka's jars in ATTRIBUTARY_KAFKA_LIB"
            )
        return jars


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
