"""Stores the classes of Apache Kafka as Java has them in memory, so that a broker starts with half of the work.

    python -m support.processes.java_classes

A broker is started and stopped once for that. Nothing is done where the file is there, or Java or the jars are not.
"""

from __future__ import annotations

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


def main() -> int:
    """Make the file; return 0 also where it cannot be made: brokers start without it."""
    try:
        path = KafkaBroker.stored_classes()
        with tempfile.TemporaryDirectory() as folder:
            made = path.with_suffix(".new")
            made.unlink(missing_ok=True)
            if not path.exists():
                with _Storing(Path(folder) / "broker", made):
                    pass
            if made.exists():
                made.replace(path)
                print(f"the classes of Apache Kafka are stored in {path}")
    except BrokerMissingError:
        pass
    except (BrokerError, OSError) as error:
        print(f"the classes of Apache Kafka are not stored, and brokers start more slowly: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
