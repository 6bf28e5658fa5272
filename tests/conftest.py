"""Brokers and data for all tests, and a last word about what was skipped."""

import gc
import os
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from benchmarks.data import FOLDER
from benchmarks.data.made import DATA_HELP, choose_folder
from support.monitoring import MonitoringMissingError, require_programs
from support.registry import RegistryMissingError, SchemaRegistry

from attributary_agents.config.environment import forget_settings
from attributary_agents.demo import local_broker
from attributary_agents.demo.brokers import Broker, BrokerMissingError, broker
from tests.proofs import leave_to_the_proofs
from tests.shares import leave_to_the_long_run

CI = bool(os.environ.get("CI"))

forget_settings()

# A worker's start is imports for the most part: in tests workers are forked from a process that has done them, except
# where how a user starts one is what the test is about. `FORKED_WORKERS=0` starts all of them as a user does.
os.environ.setdefault("FORKED_WORKERS", "1" if sys.platform == "linux" else "0")

# No test asserts on time, Hypothesis's own included; under CI the same examples every time.
hypothesis.settings.register_profile("attributary", deadline=None, derandomize=CI)
hypothesis.settings.load_profile("attributary")


# Each test process has ports of its own: none may get that of a broker which another one has stopped for a while.
local_broker.use_share_of_ports(
    int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), of=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
)


@pytest.fixture(scope="module", autouse=True)
def no_thread_goes_on() -> Iterator[None]:
    """A file leaves no thread behind that works: it would log, draw and compete in the tests of other files.

    Threads that wait for work or requests do no harm, and end with the pool or server that they belong to.
    """
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and not _waits_for_work(thread)]
    for thread in left:
        thread.join(60)
    assert not [thread.name for thread in left if thread.is_alive()]


@pytest.fixture(scope="module", autouse=True)
def what_is_imported_is_set_aside() -> None:
    """The collector passes over modules and the list of tests; where a test has undone that, the next file does it."""
    if len(gc.get_objects(generation=2)) > 300_000:
        _set_aside()


def _set_aside() -> None:
    # To look through a million objects takes the collector half a second each time.
    gc.collect()
    gc.freeze()


def _waits_for_work(thread: threading.Thread) -> bool:
    # The module of what it runs; of a subclass, that of the class.
    runs = getattr(thread, "_target", None) or type(thread)
    return str(runs.__module__).split(".")[0] in {"concurrent", "anyio", "socketserver"}


@pytest.fixture(scope="session")
def embedded_broker() -> Iterator[Broker]:
    """The embedded broker, one per test process."""
    yield from _running("embedded")


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    """A real Apache Kafka, one per test process."""
    yield from _running("kafka")


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """A real schema registry, one per test process; who kills it asks for `mortal_registry`."""
    registry = SchemaRegistry(tmp_path_factory.mktemp("registry"))
    try:
        registry.start()
    except RegistryMissingError as error:
        (pytest.fail if CI else pytest.skip)(str(error))
    yield registry
    registry.stop()


@pytest.fixture
def mortal_registry(schema_registry: SchemaRegistry) -> Iterator[SchemaRegistry]:
    """The shared registry, for a test that kills it: afterwards it runs, with all its schemas."""
    yield schema_registry
    if not schema_registry.is_running:
        schema_registry.start()


def _running(spec: str) -> Iterator[Broker]:
    try:
        started = broker(spec)
        started.start()
    except BrokerMissingError as error:
        # Under CI a missing broker is a broken pipeline; elsewhere it is somebody without Java.
        (pytest.fail if CI else pytest.skip)(str(error))
    with started:
        yield started
        started.kill()  # nobody needs its data any more: an orderly end takes Apache Kafka some seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", default=str(FOLDER), help=DATA_HELP)


@pytest.fixture(scope="session")
def data_dir(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the benchmark data, or with stand-ins: what `--data` names."""
    return choose_folder(pytestconfig.getoption("data"), tmp_path_factory.getbasetemp() / "data")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the long run what `share` says, to the proofs what `PROOFS` says, and put integration tests first.

    They mostly wait for Kafka and Prometheus, and the last one should not wait alone. This needs xdist's
    `--dist loadfile --no-loadscope-reorder`: files are given out in this order.
    """
    leave_to_the_long_run(items)
    leave_to_the_proofs(items)
    items.sort(key=lambda item: not item.nodeid.startswith("tests/integration/"))  # stable: files stay together


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import the tests without the collector, which finds next to nothing there and takes two seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        _set_aside()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("prometheus"):
        try:
            require_programs()
        except MonitoringMissingError as error:
            # As with a broker: CI installs them.
            (pytest.fail if CI else pytest.skip)(str(error))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    yield  # pytest's own summaries first: this one is to be found in the last lines
    skipped = terminalreporter.stats.get("skipped", [])
    terminalreporter.write_line("")
    terminalreporter.write_line(f"skipped ({len(skipped)}):" if skipped else "nothing was skipped")
    for report in sorted(skipped, key=lambda report: report.nodeid):
        *_, reason = report.longrepr if isinstance(report.longrepr, tuple) else (str(report.longrepr),)
        terminalreporter.write_line(f"  {report.nodeid}: {reason.removeprefix('Skipped: ')}")
