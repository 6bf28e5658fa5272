"""docker-compose.yml without Docker: its services as processes of this machine, with other addresses and folders.

Commands, environments, mounted files and settings are read from the file and from .env. Replaced are what a process
has otherwise than a container: names of hosts by ports on loopback, paths inside by the mounted paths, the image's
program by the one that is installed here.
"""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from signal import SIGTERM
from subprocess import Popen
from typing import Any

import yaml

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.local_broker import HOST, free_port
from support.monitoring import Alertmanager, Prometheus
from support.processes.forked import Forked, start_command, stop_command
from support.worker_process import metrics_at

ROOT = Path(__file__).resolve().parents[1]
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_OURS = ("--config.file", "--storage", "--web.listen-address", "--cluster.listen-address", "--log.level")
"""Arguments of the two servers that the test support gives itself."""


def read_env() -> dict[str, str]:
    """The settings of .env."""
    lines = (ROOT / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


class Compose:
    """docker-compose.yml with its variables replaced.

    Parameters
    ----------
    settings
        What wins over .env, as the shell's environment does.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.text = (ROOT / "docker-compose.yml").read_text()
        self.env = {**read_env(), **(settings or {})}
        data = yaml.safe_load(_VARIABLE.sub(lambda found: self.env[found[1]], self.text))
        self.services: dict[str, dict[str, Any]] = data["services"]
        self.volumes: dict[str, Any] = data["volumes"]
        self.variables = set(_VARIABLE.findall(self.text))

    def mounts(self, service: str) -> list[tuple[str, str, bool]]:
        """Source, target and whether it is read-only, of each volume and mounted path."""
        found = []
        for text in self.services[service].get("volumes", []):
            source, target, *options = text.split(":")
            found.append((source, target, options == ["ro"]))
        return found

    def on_host(self, service: str, path: str) -> Path:
        """Where a path inside the service's container is in this checkout."""
        for source, target, _ in self.mounts(service):
            if source.startswith("./") and (path == target or path.startswith(f"{target}/")):
                return ROOT / source / path[len(target) + 1 :]
        raise LookupError(f"{service} has nothing of this checkout at {path}")

    def option(self, service: str, name: str) -> str:
        """The value of `--name=value` in the service's command."""
        (value,) = (word.split("=", 1)[1] for word in self.services[service]["command"] if word.startswith(f"{name}="))
        return str(value)


def image_environment() -> dict[str, str]:
    """ENV of the Dockerfile, of the last stage."""
    text = (ROOT / "deploy/image/Dockerfile").read_text().replace("\\\n", " ")
    stage = text[text.rindex("\nFROM ") :]
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(re.findall(r"^ENV (.*)$", stage, re.MULTILINE))))


class ComposeKafka(KafkaBroker):
    """Apache Kafka from the jars, with the settings of the service `kafka`."""

    def __init__(self, compose: Compose, data_dir: Path) -> None:
        super().__init__(data_dir)
        self._compose = compose

    def _properties(self, data: Path) -> str:
        ports = {"9092": self._port, "9093": self._controller_port, "9094": free_port()}
        environment = dict(self._compose.services["kafka"]["environment"])
        del environment["KAFKA_HEAP_OPTS"]  # of the JVM
        lines = []
        for name, value in environment.items():
            value = value.replace(self._compose.env["KAFKA_PORT"], "9094")
            value = re.sub(r"://(\w*|127\.0\.0\.1):", f"://{HOST}:", value).replace("@localhost:", f"@{HOST}:")
            value = re.sub(r":(909[234])\b", lambda found: f":{ports[found[1]]}", value)
            if name == "KAFKA_LOG_DIRS":
                value = str(data)
            lines.append(f"{name.removeprefix('KAFKA_').lower().replace('_', '.')}={value}")
        return "\n".join(lines) + "\n"


class Stack:
    """The services of a Compose file, one process each, started by their names.

    Parameters
    ----------
    folder
        For configurations with replaced addresses, data and logs.
    compose
        The file.
    """

    def __init__(self, folder: Path, compose: Compose) -> None:
        self.compose = compose
        self.folder = folder
        self.kafka = ComposeKafka(compose, folder / "kafka")
        self.ports = {name: free_port() for name in compose.services if name.startswith("worker-")}
        self.page_port = free_port()
        self.alertmanager = Alertmanager(folder, self._configuration("alertmanager"))
        self.prometheus: Prometheus
        self._children: dict[str, Popen[bytes] | Forked] = {}

    def start_kafka(self) -> None:
        """Start Kafka, and run the one-shot service that creates the topics."""
        self.kafka.start()
        self.run("topics")
        assert self.wait("topics") == 0, self.log("topics")

    def start_monitoring(self) -> None:
        """Start Alertmanager and Prometheus, with the mounted files except for the addresses in targets/."""
        self.alertmanager.start()
        config = self._configuration("prometheus")
        copy = self.folder / "prometheus"
        shutil.copytree(config.parent, copy)
        self.prometheus = Prometheus(self.folder, copy / config.name, arguments=self._more("prometheus"))
        addresses = {f"{name}:6066": f"{HOST}:{port}" for name, port in self.ports.items()}
        addresses["page:6080"] = f"{HOST}:{self.page_port}"
        addresses["alertmanager:9093"] = self.alertmanager.address
        addresses["localhost:9090"] = self.prometheus.address
        for path in (copy / "targets").iterdir():
            groups = yaml.safe_load(path.read_text())
            for group in groups:
                group["targets"] = [addresses[target] for target in group["targets"]]
                if "labels" in group:  # the published ports: here there are none but the processes' own
                    (group["labels"]["instance"],) = group["targets"]
            path.write_text(yaml.safe_dump(groups))
        self.prometheus.start()

    def run(self, service: str) -> Popen[bytes] | Forked:
        """Start a service of our own image."""
        environment = {
            **image_environment(),
            **self.compose.services[service].get("environment", {}),
            "ATTRIBUTARY_KAFKA__BROKERS": json.dumps([self.kafka.bootstrap]),
            "ATTRIBUTARY_WEB__HOST": HOST,
            "ATTRIBUTARY_WEB__PORT": str(self.ports.get(service, 0)),
            "ATTRIBUTARY_SERVE__HOST": HOST,
            "ATTRIBUTARY_SERVE__PORT": str(self.page_port),
            "ATTRIBUTARY_SERVE__STORE": str(self.folder / "page.sqlite"),
        }
        environment["ATTRIBUTARY_CONFIG"] = str(self.compose.on_host(service, environment["ATTRIBUTARY_CONFIG"]))
        for name in ("PATH", "XDG_CACHE_HOME"):  # the machine's own
            environment.pop(name)
        command = self.compose.services[service]["command"]
        child = start_command(command, log=self.folder / f"{service}.log", env=environment)
        self._children[service] = child
        return child

    def series(self, service: str, name: str) -> dict[str, float]:
        """Model id to the value of `attributary_<name>` on a worker's /metrics; nothing while it is away."""
        wanted = f"attributary_{name}"
        samples = metrics_at(self.ports[service], wanted).get(wanted, {})
        return {dict(labels)["model_id"]: value for labels, value in samples.items()}

    def is_ready(self, service: str) -> bool:
        """What the service's health check asks."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.ports[service]}/readyz", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def terminate(self, service: str) -> None:
        """SIGTERM; `wait` gives the exit code."""
        self._children[service].send_signal(SIGTERM)

    def wait(self, service: str) -> int:
        """Wait for the end; return the exit code."""
        return self._children.pop(service).wait(60)

    def stop(self, service: str) -> int:
        """SIGTERM; return the exit code."""
        return stop_command(self._children.pop(service), 60)

    def log(self, service: str) -> str:
        """What the service has logged."""
        return (self.folder / f"{service}.log").read_text(errors="replace")

    def close(self) -> None:
        """Stop everything."""
        for service in list(self._children):
            self.stop(service)
        if hasattr(self, "prometheus"):
            self.prometheus.stop()
        self.alertmanager.stop()
        self.kafka.close()

    def _configuration(self, service: str) -> Path:
        return self.compose.on_host(service, self.compose.option(service, "--config.file"))

    def _more(self, service: str) -> list[str]:
        return [word for word in self.compose.services[service]["command"] if not word.startswith(_OURS)]
