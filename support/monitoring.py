"""Prometheus and Alertmanager as processes, for plain, synchronous tests: started, asked, stopped.

Both are the programs of Debian's packages `prometheus` and `prometheus-alertmanager`, or those of the projects
themselves. A test that uses them carries the marker `prometheus`.
"""

from __future__ import annotations

import abc
import json
import math
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import yaml

from attributary_agents.demo.local_broker import free_port
from attributary_agents.demo.processes import kill_child, start_child, stop_child

_NAMES = {
    "prometheus": ("prometheus",),
    "promtool": ("promtool",),
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),  # Debian's name first
    "amtool": ("amtool",),
}
_HOST = "127.0.0.1"
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 20.0
_LOG_LINES_SHOWN = 15


class MonitoringMissingError(Exception):
    """A program is not installed; the message says how to get it."""


class MonitoringError(Exception):
    """A program did not start, or refused what it was asked; the message holds what it said."""


def program(name: str) -> str:
    """Path of prometheus, promtool, alertmanager or amtool.

    Raises
    ------
    MonitoringMissingError
        It is not installed.
    """
    for candidate in _NAMES[name]:
        if found := shutil.which(candidate):
            return found
    package = "prometheus" if name in ("prometheus", "promtool") else "prometheus-alertmanager"
    raise MonitoringMissingError(f"{name} is not installed: apt-get install --no-install-recommends {package}")


def require_programs() -> None:
    """Raise MonitoringMissingError unless all four programs are installed."""
    for name in _NAMES:
        program(name)


def promtool(*arguments: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool, with `text` on its stdin; the caller looks at the return code and the outputs."""
    return subprocess.run([program("promtool"), *map(str, arguments)], input=text, capture_output=True, text=True)


@dataclass(frozen=True)
class Series:
    """One series of an answer: labels, and (time in seconds, value) in order of time; one of them for an instant."""

    labels: dict[str, str]
    points: list[tuple[float, float]]

    @property
    def value(self) -> float:
        """The last value."""
        return self.points[-1][1]


class _Server(abc.ABC):
    """A program with a web interface on loopback; as a context manager it runs inside the block."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder / f"{self.name}-{self.port}"
        self.folder.mkdir(parents=True)
        self.log = self.folder / "log"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """host:port."""
        return f"{_HOST}:{self.port}"

    @property
    def url(self) -> str:
        """Where its web interface is, without a slash at the end."""
        return f"http://{self.address}"

    def start(self) -> None:
        """Start the process and return once it says that it is ready."""
        self._child = start_child([program(self.name), *self._arguments()], log=self.log)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            if (status := self._child.poll()) is not None:
                raise MonitoringError(f"{self.name} ended with status {status}:\n{self._log_tail}")
            if time.monotonic() > deadline:
                kill_child(self._child)
                raise MonitoringError(f"{self.name} was not ready in {_START_TIMEOUT_S:.0f} s:\n{self._log_tail}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the process in an orderly way and keep its data; `start` goes on with them."""
        if self._child is not None:
            stop_child(self._child, _STOP_TIMEOUT_S)
            self._child = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    @abc.abstractmethod
    def _arguments(self) -> Sequence[str]:
        """What follows the program's name on its command line."""

    def _get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        url = f"{self.url}{path}?{urllib.parse.urlencode(parameters or {})}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise MonitoringError(f"{self.name} refused {url}: {error.read().decode(errors='replace')}") from None

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    @property
    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:])


def every_second(rules: Path, *targets: str) -> dict[str, Any]:
    """A configuration that scrapes the targets and evaluates the rules each second."""
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "attributary", "static_configs": [{"targets": list(targets)}]}],
    }


class Prometheus(_Server):
    """A Prometheus server.

    Parameters
    ----------
    folder
        For its data and its log.
    config
        The path of a configuration, whose relative paths then hold; or its content.
    arguments
        More of its command line, such as `--enable-feature=exemplar-storage`.
    """

    name = "prometheus"

    def __init__(self, folder: Path, config: Path | Mapping[str, Any], *, arguments: Sequence[str] = ()) -> None:
        super().__init__(folder)
        self.config = config if isinstance(config, Path) else self.folder / "prometheus.yml"
        self.data = self.folder / "data"
        self._more = arguments
        if not isinstance(config, Path):
            self.config.write_text(yaml.safe_dump(dict(config), sort_keys=False))

    def _arguments(self) -> Sequence[str]:
        return [
            f"--config.file={self.config}",
            f"--storage.tsdb.path={self.data}",
            f"--web.listen-address={self.address}",
            "--web.enable-lifecycle",
            # An alert of the first seconds is sent before Alertmanager has been discovered, and again after a minute.
            "--rules.alert.resend-delay=5s",
            "--log.level=warn",
            *self._more,
        ]

    def reload(self) -> None:
        """Read configuration and rules again."""
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/-/reload", method="POST"), timeout=30).close()

    def query(self, expression: str, at: float | None = None) -> list[Series]:
        """What the expression gives now, or at a time in seconds; a scalar is a series without labels."""
        answer = self._ask("query", expression, {} if at is None else {"time": f"{at:.3f}"})
        if answer["resultType"] == "scalar":
            return [Series({}, [_point(answer["result"])])]
        return [Series(dict(found["metric"]), [_point(found["value"])]) for found in answer["result"]]

    def query_range(self, expression: str, start: float, end: float, step_s: float) -> list[Series]:
        """What the expression gives from `start` to `end`, times in seconds, at every step."""
        span = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:g}"}
        answer = self._ask("query_range", expression, span)
        return [Series(dict(found["metric"]), [*map(_point, found["values"])]) for found in answer["result"]]

    def samples(self, selector: str, seconds: float, at: float | None = None) -> list[Series]:
        """The samples themselves, with the times of their scrapes, of the last so many seconds."""
        # PromQL's durations are whole.
        answer = self._ask(
            "query", f"{selector}[{max(math.ceil(seconds), 1)}s]", {} if at is None else {"time": f"{at:.3f}"}
        )
        return [Series(dict(found["metric"]), [*map(_point, found["values"])]) for found in answer["result"]]

    def exemplars(self, selector: str, seconds: float) -> list[dict[str, str]]:
        """Labels of the exemplars of the last so many seconds; needs `--enable-feature=exemplar-storage`."""
        now = time.time()
        span = {"query": selector, "start": f"{now - seconds:.3f}", "end": f"{now:.3f}"}
        found = self._get("/api/v1/query_exemplars", span)["data"]
        return [exemplar["labels"] for series in found for exemplar in series["exemplars"]]

    def targets(self) -> list[dict[str, Any]]:
        """The targets that are scraped: `labels`, `health`, `lastError` and more."""
        return list(self._get("/api/v1/targets", {"state": "active"})["data"]["activeTargets"])

    def rules(self) -> list[dict[str, Any]]:
        """The rules of all groups: `name`, `type` (alerting or recording), `health`, `lastError` and more."""
        groups = self._get("/api/v1/rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts as Prometheus sees them: `labels`, `annotations`, `state` (pending or firing)."""
        return list(self._get("/api/v1/alerts")["data"]["alerts"])

    def _ask(self, what: str, expression: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        return dict(self._get(f"/api/v1/{what}", {"query": expression, **parameters})["data"])


class Alertmanager(_Server):
    """An Alertmanager that has no peers; without a configuration it sends nothing anywhere."""

    name = "alertmanager"

    def __init__(self, folder: Path, config: Path | Mapping[str, Any] | None = None) -> None:
        super().__init__(folder)
        self.config = config if isinstance(config, Path) else self.folder / "alertmanager.yml"
        if not isinstance(config, Path):
            nobody = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
            self.config.write_text(yaml.safe_dump(dict(config or nobody), sort_keys=False))

    def _arguments(self) -> Sequence[str]:
        return [
            f"--config.file={self.config}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ]

    def alerts(self, *matchers: str) -> list[dict[str, Any]]:
        """The alerts that are active, inhibited ones too: `labels`, `annotations`, `startsAt`, `status`."""
        pairs = [("filter", matcher) for matcher in matchers]
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?{urllib.parse.urlencode(pairs)}", timeout=30) as answer:
            return list(json.load(answer))


def _point(pair: Sequence[Any]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])
