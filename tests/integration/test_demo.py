"""`attributary demo`: what it prints, that it ends cleanly, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.kafka import read_all
from support.waiting import wait_for

from attributary_agents.demo.local_broker import free_port

pytestmark = [pytest.mark.long, pytest.mark.embedded]
LIMIT = "3000"


class Demo:
    """The command as a child, its output in a file."""

    def __init__(self, folder: Path, *args: str, limit: str = LIMIT) -> None:
        self.port = free_port()
        self.output = folder / "demo.out"
        argv = [sys.executable, "-m", "attributary_agents.cli", "demo", "--limit", limit, "--port", str(self.port)]
        # Its own temporary folder: what is in there afterwards is what it left behind.
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*argv, *args],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(self.temporary)},
            )

    @property
    def text(self) -> str:
        return self.output.read_text()

    @property
    def page(self) -> str:
        """The address that it says before all else."""
        first, *_ = self.text.splitlines()
        assert re.fullmatch(r"page: http://127\.0\.0\.1:\d+/", first), self.text
        return first.removeprefix("page: ")

    def answer(self, path: str) -> Any:
        """What the page's server answers; None while it answers nothing, or something else than 200."""
        try:
            with urllib.request.urlopen(self.page + path, timeout=10) as answer:
                return json.load(answer)
        except OSError:
            return None

    def wait_until_it_says(self, text: str, timeout_s: float = 180.0) -> None:
        wait_for(text, lambda: text in self.text or self.process.poll() is not None, timeout_s)
        assert text in self.text, self.text

    def children(self) -> list[int]:
        """Every process below this one (the demo starts them in sessions of their own)."""
        found = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
        rows = [tuple(map(int, line.split())) for line in found.splitlines()[1:]]
        return [pid for pid, parent in rows if parent == self.process.pid]


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z"
    except OSError:
        return True


@contextmanager
def running(demo: Demo) -> Iterator[Demo]:
    """A demo that does not outlive its test, however that ends."""
    try:
        yield demo
    finally:
        children: list[int] = []
        if demo.process.poll() is None:
            children = demo.children()
            demo.process.kill()
            demo.process.wait()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    with running(Demo(tmp_path)) as demo:
        yield demo


def test_the_demo_explains_the_drift_and_leaves_metrics_open_until_ctrl_c(demo: Demo) -> None:
    demo.wait_until_it_says("Ctrl-C ends the demo")
    text = demo.text
    assert ">>> The data of credit may have changed. " in text
    sentence = re.search(r">>> The data of credit have changed, and it .* Since observation 1 [45]\d\d, (.*)", text)
    assert sentence, text
    assert "more on elevel" in sentence[1]
    assert re.search(r"less on (salary|.* and salary)", sentence[1])
    assert re.search(r"1500/3000 observations, \d+/s, importance: salary 0\.\d+", text)
    assert f"all {LIMIT} observations handled: {LIMIT} explained, 0 dead letters; metrics at http://" in text
    with urllib.request.urlopen(f"http://127.0.0.1:{demo.port}/metrics", timeout=10) as answer:
        assert b'attributary_feature_importance{explainer="pfi",feature="elevel",model_id="credit"}' in answer.read()
    _shows_what_the_topics_have(demo)
    assert demo.text.splitlines()[-2:] == [f"page: {demo.page}", "Ctrl-C ends the demo"]
    _ends_cleanly(demo, signal.SIGINT)


def _shows_what_the_topics_have(demo: Demo) -> None:
    """The latest importance event and the incidents, as a client of Kafka's own reads them, are what the page shows."""
    found = re.search(r"topics attributary\.\* at (\S+)", demo.text)
    assert found
    events = [json.loads(one.value or b"") for one in read_all(found[1], "attributary.importances.v1")]
    last = max(events, key=lambda event: event["observation"])
    revisions = [json.loads(one.value or b"") for one in read_all(found[1], "attributary.incidents.v1")]
    newest = {event["id"]: event["sentence"] for event in sorted(revisions, key=lambda event: event["revision"])}
    assert newest
    path = "api/v1/models/credit/importances?by=observation&top=50"

    def is_read() -> bool:
        series, told = demo.answer(path), demo.answer("api/v1/models/credit/incidents")
        is_there = series is not None and told is not None and told["n"] == len(newest)
        return is_there and series["n_events"] == len(events)

    wait_for("the page has read all", is_read, 60)
    shown = {one["feature"]: one for one in demo.answer(path)["features"]}
    assert shown.keys() == last["features"].keys()
    for name, feature in last["features"].items():
        assert shown[name]["latest"] == float(f"{feature['importance']:.7g}"), name
        assert shown[name]["latest_half_width"] == float(f"{feature['half_width']:.7g}"), name
        assert shown[name]["latest_rank"] == feature["rank"]
    row = demo.answer("api/v1/models/credit")["row"]
    assert (row["model_loss"], row["baseline_loss"]) == (last["model_loss"], last["baseline_loss"])
    told = demo.answer("api/v1/models/credit/incidents")["incidents"]
    assert {row["id"]: row["sentence"] for row in told} == newest


def test_the_demo_goes_without_its_page(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--no-page", "--exit", limit="200")
    assert demo.process.wait(120) == 0, demo.text
    assert demo.text.startswith("Agrawal's credit data")
    assert "page" not in demo.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_demo_ends_cleanly_in_the_middle(number: signal.Signals, demo: Demo) -> None:
    demo.wait_until_it_says("is joining")
    _ends_cleanly(demo, number)


def test_a_killed_demo_leaves_no_process(demo: Demo) -> None:
    demo.wait_until_it_says("is joining")
    children = demo.children()
    assert len(children) == 3, "the broker, the page's server and the worker"
    demo.process.kill()
    demo.process.wait()
    wait_for("the children end", lambda: all(map(_gone, children)))


def test_the_demo_plays_any_csv(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    rows = [f"{i % 7},{'north' if i % 3 else 'south'},{(i % 7) * 2.5 + 1}" for i in range(600)]
    path.write_text("weekday,region,revenue\n" + "\n".join(rows) + "\n")
    demo = Demo(tmp_path, "--data", str(path), "--model", "sales", "--exit")
    assert demo.process.wait(120) == 0, demo.text
    assert "sales.csv: regression of revenue" in demo.text
    assert "all 600 observations handled: 600 explained, 0 dead letters" in demo.text


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--data", "no/such.csv")
    assert demo.process.wait(60) == 2
    assert demo.text.strip() == "attributary: no file at no/such.csv"


def _ends_cleanly(demo: Demo, number: signal.Signals) -> None:
    children = demo.children()
    demo.process.send_signal(number)
    assert demo.process.wait(90) == 0, demo.text
    assert "Traceback" not in demo.text
    assert "stopping" in demo.text
    assert all(map(_gone, children)), children
    assert list(demo.temporary.iterdir()) == []


def test_the_readme_begins_with_what_the_demo_prints(tmp_path: Path) -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    block = re.search(r"^```\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL)
    assert block
    with running(Demo(tmp_path, limit="10000")) as demo:  # all of them, as without a limit
        demo.wait_until_it_says("and it has adapted", 250)
        told = [line for line in demo.text.splitlines() if line.startswith(">>> ")]
        assert len(told) == 3, "one drift is one incident, in three revisions"
        demo.wait_until_it_says("Ctrl-C ends the demo", 250)
        _ends_cleanly(demo, signal.SIGINT)
    assert len(demo.text.splitlines()) == 12, "with the page once more, Ctrl-C and stopping"
    printed = [line.removeprefix(">>> ") for line in demo.text.splitlines()]
    for line in block[1].splitlines():
        assert line in printed, f"the README says\n{line}\nand the demo prints\n" + "\n".join(printed)
