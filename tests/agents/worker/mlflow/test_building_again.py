"""A version whose building process could not be started is built again; one that has been tried is refused at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from faust.types import TP

from attributary_agents.errors import DeploymentError, NotBegunError
from attributary_agents.models.subprocess import build as building
from attributary_agents.models.subprocess.process import ApartError
from attributary_agents.worker import assigned as module
from attributary_explainers import dump_model
from attributary_topics import Deployment
from tests.agents.stand_ins import MODELS, TOPIC, config_of, counting_classifier
from tests.agents.worker.test_assigned import Running, event

RECORD = b'{"version": "2", "factory": "tests.agents.stand_ins:counting_classifier"}'
DEPLOYED = ["write control/0/m", "write control-checkpoint/0", f"commit {MODELS}[0] 1"]
REFUSED = ["send", "write control-checkpoint/0", f"commit {MODELS}[0] 1"]


def deploying(
    monkeypatch: pytest.MonkeyPatch, *faults: Exception, pauses: tuple[float, ...] = (0.0, 0.0, 0.0)
) -> tuple[Running, list[str]]:
    """Return a worker that owns a partition, and what it does but for its notes, once it has taken a record."""
    running, left = Running(), list(faults)
    running.broker.assigned = {TP(TOPIC, 0), TP(MODELS, 0)}

    async def build(*_given: Any) -> bytes:
        if left:
            raise left.pop(0)
        return dump_model(counting_classifier())

    monkeypatch.setattr(module, "build", build)
    monkeypatch.setattr(module, "BUILD_AGAIN_S", pauses)
    asyncio.run(running.worker.handle_control(event(MODELS, 0, RECORD)))
    return running, [line for line in running.broker.log if line != "write note/0"]


def not_begun(_number: int) -> NotBegunError:
    return NotBegunError("no process could be started")


def test_it_is_built_again_and_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "attributary_agents"):
        running, log = deploying(monkeypatch, *map(not_begun, range(3)))
    assert log == DEPLOYED
    assert running.worker.view.registry.retried == {}
    said = [record.message for record in caplog.records]
    assert sum("no process could be started; it is tried again" in line for line in said) == 1
    (assigned,) = running.worker.assigned.values()
    assert assigned._endings._note.deployment == (0, 1), "only the last one counts as begun: no worker has ended at it"


def test_after_the_last_pause_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    running, log = deploying(monkeypatch, *map(not_begun, range(4)))
    assert log == REFUSED
    assert running.worker.view.registry.retried == {}


def test_a_model_that_has_been_tried_is_not_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log = deploying(monkeypatch, DeploymentError("it cannot be explained"))
    assert log == REFUSED


def test_a_partition_that_goes_ends_the_pause_and_leaves_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running()
    running.broker.assigned = {TP(TOPIC, 0), TP(MODELS, 0)}

    async def build(*_given: Any) -> bytes:
        raise not_begun(0)

    monkeypatch.setattr(module, "build", build)
    monkeypatch.setattr(module, "BUILD_AGAIN_S", (3600.0,))

    async def until(condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.001)

    async def run() -> None:
        task = asyncio.ensure_future(running.worker.handle_control(event(MODELS, 0, RECORD)))
        await until(lambda: "m" in running.worker.view.registry.retried)
        await running.handle(0)
        (assigned,) = running.worker.assigned.values()
        assert assigned.partition.offset == 0, "observations are handled meanwhile"
        await running.worker.release()
        await asyncio.wait_for(task, 10)
        assert assigned.control.offset == -1

    asyncio.run(run())
    assert f"commit {MODELS}[0] 1" not in running.broker.log
    assert running.worker.view.registry.retried == {}


@pytest.mark.parametrize(("kind", "is_begun"), [("start", False), ("time", True), ("memory", True), ("ended", True)])
def test_what_counts_as_begun(kind: str, is_begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_apart(*_given: Any, **_named: Any) -> bytes:
        raise ApartError(kind, "it did not finish")

    monkeypatch.setattr(building, "run_apart", run_apart)
    with pytest.raises(DeploymentError, match=r"^the model could not be built: it did not finish\. ") as caught:
        asyncio.run(building.build(config_of(), Deployment("m", "2", {"factory": "a:b"})))
    assert isinstance(caught.value, NotBegunError) is not is_begun
