"""Values of records are in incidents and in the log, unless nobody is to look at values."""

from __future__ import annotations

import json
import logging
import random

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.worker.partition import Partition
from tests.agents.stand_ins import TOPIC
from tests.agents.worker.test_partition import record

MODEL = {"model": {"class": "river.tree.HoeffdingTreeClassifier"}, "change": {"window": 100}}


@pytest.mark.parametrize("watch_inputs", [True, False])
def test_values_are_in_incidents_where_they_are_watched(watch_inputs: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    partition = Partition(
        TOPIC, 0, parse_config({"models": {"m": {**MODEL, "watch_inputs": watch_inputs}}}), lambda _key: None
    )
    rng, sent = random.Random(1), []
    for i in range(1000):
        city = rng.choice(["Bonn", "Köln"] if i < 700 else ["cologne", "bonn"])
        x = {"a": rng.gauss(0, 1), "city": city}
        sent += partition.handle(record(i, b"m", json.dumps({"x": x, "y": (x["a"] > 0) == (i < 700)}).encode()))
    told = [json.loads(one.value or b"") for one in sent if "incidents" in one.topic]
    assert told
    assert any(one["what"] == "inputs" for one in told) is watch_inputs
    values = [feature["values_after"] for one in told for feature in one["features"].values()]
    assert any(value is not None for value in values) is watch_inputs
    said = caplog.text + "".join((one.value or b"").decode() for one in sent)
    assert ("cologne" in said) is watch_inputs
