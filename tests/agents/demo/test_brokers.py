"""Brokers start, keep their data, stop without a trace, and say what is wrong when they cannot start."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.kafka import Record, create_topics, produce, read_all
from support.waiting import wait_for

from attributary_agents.demo import local_broker
from attributary_agents.demo.brokers import Broker, BrokerError, EmbeddedBroker, broker
from attributary_agents.demo.processes import start_child, stop_child

KINDS = [
    pytest.param("embedded", marks=pytest.mark.embedded),
    pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.long]),
]
RECORDS: list[Record] = [(b"key-%d" % (i % 7), b"value-%d" % i, [("number", b"%d" % i)]) for i in range(1000)]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    # The shared broker decides whether this kind can run here: it skips, or fails under CI.
    request.getfixturevalue(f"{request.param}_broker")
    return str(request.param)


@pytest.fixture
def shared(kind: str, request: pytest.FixtureRequest) -> Broker:
    started: Broker = request.getfixturevalue(f"{kind}_broker")
    return started


def test_records_come_back_in_their_order(shared: Broker) -> None:
    create_topics(shared.bootstrap, {"ordered": 3})
    places = produce(shared.bootstrap, "ordered", RECORDS)
    read = read_all(shared.bootstrap, "ordered")

    assert len(set(places)) == len(RECORDS)
    assert [(record.partition, record.offset) for record in read] == sorted(places)
    written = dict(zip(places, RECORDS, strict=True))
    for record in read:
        key, value, headers = written[record.partition, record.offset]
        assert (record.key, record.value, list(record.headers)) == (key, value, headers)
    for partition in range(3):
        numbers = [int(record.headers[0][1]) for record in read if record.partition == partition]
        assert numbers == sorted(numbers)


def test_no_topic_is_created_by_asking_for_it(shared: Broker) -> None:
    for _ in range(2):
        with pytest.raises(LookupError, match="there is no topic never-created"):
            read_all(shared.bootstrap, "never-created")


def test_stop_leaves_no_process_no_port_and_no_data(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with broker(kind) as running:
        pid = running.pid
        assert pid is not None
        assert alive(pid)
        assert list(tmp_path.iterdir())
    assert running.pid is None
    assert not alive(pid)
    assert not accepts(running.bootstrap)
    assert not list(tmp_path.iterdir())


def test_stop_and_start_keeps_the_records(kind: str, tmp_path: Path) -> None:
    with broker(kind, data_dir=tmp_path) as running:
        create_topics(running.bootstrap, {"kept": 1})
        produce(running.bootstrap, "kept", RECORDS)
        address = running.bootstrap
        running.stop()
        running.start()
        assert running.bootstrap == address
        assert values(running, "kept") == [value for _, value, _ in RECORDS]


def test_sigkill_and_start_keeps_the_records(kind: str, tmp_path: Path) -> None:
    with broker(kind, data_dir=tmp_path) as running:
        create_topics(running.bootstrap, {"kept": 1})
        produce(running.bootstrap, "kept", RECORDS)
        if isinstance(running, EmbeddedBroker):
            # It writes its memory out once a second, and only what was written out survives.
            saved = tmp_path / "data" / "kafka.json"
            wait_for("it is saved", lambda: saved.exists() and '"high_watermark":1000' in saved.read_text())
        running.kill()
        assert running.pid is None
        running.start()
        assert values(running, "kept") == [value for _, value, _ in RECORDS]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has died")
def test_a_killed_parent_takes_its_broker_along(kind: str, tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from attributary_agents.demo.brokers import broker\n"
        "started = broker(sys.argv[1], data_dir=pathlib.Path(sys.argv[2]))\n"
        "started.start()\n"
        "print(started.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, kind, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for("the broker ends", lambda: not alive(pid))


def test_a_broker_that_cannot_start_shows_its_log(kind: str, tmp_path: Path) -> None:
    unable = broker(kind, data_dir=tmp_path)
    host, port = unable.bootstrap.split(":")
    with socket.socket() as occupant:
        occupant.bind((host, int(port)))
        with pytest.raises(BrokerError) as caught:
            unable.start()
    assert unable.pid is None
    log = tmp_path / "broker.log"
    assert str(log) in str(caught.value)
    assert log.read_text().splitlines()[-1] in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "needs"), [("ATTRIBUTARY_KAFKA_LIB", "no Apache Kafka in"), ("PATH", "needs Java")]
)
def test_without_jars_or_java_it_says_make_kafka(
    variable: str, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    if variable != "PATH":
        (tmp_path / "java").touch(mode=0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerError, match=f"{needs}.*make kafka"):
        broker("kafka").start()


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "noida_db", None)
    with pytest.raises(BrokerError, match=r"pip install 'attributary\[demo\]'"):
        broker("embedded").start()


def test_an_external_broker_is_looked_at_and_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        address = f"127.0.0.1:{somebody.getsockname()[1]}"
        with broker(address) as external:
            assert (external.name, external.bootstrap, external.pid) == ("external", address, None)
            with pytest.raises(BrokerError, match="not started here"):
                external.kill()
        assert accepts(address)
    with pytest.raises(BrokerError, match=f"no broker answers at {address}") as caught:
        broker(address).start()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["", "rabbit", "localhost", "localhost:", ":9092", "localhost:0", "h:99999"])
def test_an_unknown_broker_names_the_choices(spec: str) -> None:
    with pytest.raises(BrokerError, match="`embedded`, `kafka` or HOST:PORT"):
        broker(spec)


def test_processes_with_different_shares_get_different_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_broker, "_ports", local_broker._ports)  # put back afterwards
    given = []
    for number in range(3):
        local_broker.use_share_of_ports(number, of=3)
        given.append({local_broker.free_port() for _ in range(50)})
    assert [len(ports) for ports in given] == [50, 50, 50]
    assert max(given[0]) < min(given[1])
    assert max(given[1]) < min(given[2])


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    child = start_child([sys.executable, "-c", code], log=tmp_path / "log")
    wait_for("it is deaf", lambda: "deaf" in (tmp_path / "log").read_text())
    assert os.getsid(child.pid) == child.pid
    assert stop_child(child, timeout_s=0.05) == -signal.SIGKILL


def values(running: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(running.bootstrap, topic)]


def alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for (a zombie) does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc").is_dir():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return status.rpartition(")")[2].split()[0] != "Z"


def accepts(bootstrap: str) -> bool:
    host, port = bootstrap.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except ConnectionRefusedError:
        return False
    return True
