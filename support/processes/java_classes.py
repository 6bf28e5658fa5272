"""Stores the classes of Apache Kafka as Java has them in memory, so that a broker starts with half of the work.

    python -m support.processes.java_classes

A broker is started and stopped once for that. Nothing is done where the file is there, or Java or the jars are not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from attributary_agents.demo.brokers import BrokerError, BrokerMissingError, KafkaBroker


class _Storing(KafkaBroker):
    """A broker whose classes are stored when it is stopped."""

    _start_timeout_s = 300.0

    def __init__(self, folder: Path, path: Path) -> None:
        super().__init__(folder)
        self._path = path

    def _prepare(self, folder: Path) -> list[str]:
        java, *rest = super()._prepare(folder)
        return [java, f"-XX:ArchiveClassesAtExit={self._path}", *rest]

    @property
    def was_killed(self) -> bool:
        """Whether it has not stopped by itself in time: what it was writing is not whole."""
        return self._process is not None and (self._process.returncode or 0) < 0

    def is_usable(self) -> bool:
        """Return whether Java starts with the file: one that is not whole ends it."""
        argv = [self._java(), "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={self._path}", "-version"]
        return self._path.exists() and subprocess.run(argv, capture_output=True, check=False).returncode == 0


def main() -> int:
    """Make the file; return 0 also where it cannot be made: brokers start without it."""
    try:
        path = KafkaBroker.stored_classes()
        if path.exists():
            return 0
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            with _Storing(Path(folder) / "broker", made) as storing:
                pass
            if storing.was_killed or not storing.is_usable():
                raise BrokerError("a broker that was stopped has not written them")
            made.replace(path)
            print(f"the classes of Apache Kafka are stored in {path}")
    except BrokerMissingError:
        pass
    except (BrokerError, OSError) as error:
        print(f"the classes of Apache Kafka are not stored, and brokers start more slowly: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
