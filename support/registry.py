"""Apicurio Registry as a child process, and what producers do with a registry: register schemas, frame values."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from attributary_agents.demo.local_broker import HOST, free_port
from attributary_agents.demo.processes import kill_child, start_child, stop_child

_LIB = Path(__file__).resolve().parents[1] / "deploy" / "registry" / "lib"
_API = "/apis/ccompat/v7"
_START_TIMEOUT_S = 120.0


class RegistryMissingError(Exception):
    """Says that what the registry needs is not installed."""


class SchemaRegistry:
    """A registry that keeps its port and its schemas when it is killed and started again.

    Parameters
    ----------
    folder
        For its file of data and its log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What `kafka.schema_registry.url` has to say."""
        return f"http://{HOST}:{self._port}{_API}"

    def start(self) -> None:
        """Start the process and return once it answers."""
        java = shutil.which("java")
        jar = next(_LIB.glob("apicurio-registry-app-*-runner.jar"), None)
        if java is None or jar is None:
            raise RegistryMissingError("no schema registry: install Java 17 and Maven, and run `make registry`")
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            # Written at once, so that it is there after a SIGKILL.
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self._folder.absolute() / 'schemas'};WRITE_DELAY=0",
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self._port),
        }
        options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        log = self._folder / "registry.log"
        self._process = start_child([java, *options, "-jar", jar], log=log, env=settings)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the registry does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it with SIGKILL; what it has is kept."""
        if self._process is not None:
            kill_child(self._process)
            self._process = None

    def stop(self) -> None:
        """End it in an orderly way."""
        if self._process is not None:
            stop_child(self._process, 30)
            self._process = None

    def register(
        self, subject: str, schema: Any, kind: str = "AVRO", references: Sequence[tuple[str, str, int]] = ()
    ) -> int:
        """Register a version of a subject and return its id.

        Parameters
        ----------
        schema
            Text; or of Avro what becomes it.
        references
            Name, subject and version of what the schema refers to.
        """
        body = {
            "schema": schema if isinstance(schema, str) else json.dumps(schema),
            "schemaType": kind,
            "references": [dict(zip(("name", "subject", "version"), one, strict=True)) for one in references],
        }
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            json.dumps(body).encode(),
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(json.load(response)["id"])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/schemas/types", timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def framed(schema_id: int, body: bytes) -> bytes:
    """Return a value as producers frame it: byte 0, the id of the schema, what it was written to."""
    return b"\0" + schema_id.to_bytes(4, "big") + body


def avro_bytes(schema: Any, value: Any) -> bytes:
    """Return a value as its schema writes it, without framing."""
    import fastavro  # not above: every test process imports this module

    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return stream.getvalue()
