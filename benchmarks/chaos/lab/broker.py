"""Apache Kafka with a second listener for workers behind a proxy, and quick to forget members and to compact."""

from __future__ import annotations

from pathlib import Path

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.local_broker import HOST, free_port


class ChaosBroker(KafkaBroker):
    """The broker of all scenarios; `bootstrap` is its own port, `proxied_port` what a proxy must forward to.

    Clients that come by the second listener are told to go on by `advertised_port`, where the proxy listens.
    """

    _start_timeout_s = 240.0  # on a machine that is busy with other things

    def __init__(self, data_dir: Path | None = None) -> None:
        super().__init__(data_dir)
        self.proxied_port = free_port()
        self.advertised_port = free_port()

    def _properties(self, data: Path) -> str:
        lines = dict(line.split("=", 1) for line in super()._properties(data).splitlines())
        lines["listeners"] += f",PROXIED://{HOST}:{self.proxied_port}"
        lines["advertised.listeners"] += f",PROXIED://{HOST}:{self.advertised_port}"
        names = ("PLAINTEXT", "PROXIED", "CONTROLLER")
        lines["listener.security.protocol.map"] = ",".join(f"{name}:PLAINTEXT" for name in names)
        # A killed worker's partitions are free after its session, at least 6 s by default.
        lines["group.min.session.timeout.ms"] = "1000"
        lines["log.cleaner.backoff.ms"] = "1000"
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def bytes_on_disk(self, topic: str) -> int:
        """Bytes of all the topic's segments."""
        assert self._dir is not None
        folders = (self._dir / "data").glob(f"{topic}-[0-9]*")
        total = 0
        for path in (path for folder in folders for path in folder.glob("*.log")):
            try:
                total += path.stat().st_size
            except OSError:  # compacted away since
                continue
        return total
