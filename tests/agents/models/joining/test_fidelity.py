"""When the log says that a mirror is not like the model that it mirrors, and that it is so again."""

from __future__ import annotations

import logging
import re

import pytest

from attributary_agents.models.model_state import TRUSTED
from attributary_topics import Observation
from tests.agents.models.joining.test_modes import LINEAR, rows, run, served, state_of

LOGGER = "attributary_agents.models.model_state"


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == LOGGER]


def test_a_mirror_of_what_it_cannot_learn_is_doubted_once_and_not_before_it_had_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = state_of(mode="mirror", fidelity=0.9, **LINEAR)
    # A product of two features: no linear model explains any of it.
    stream = [Observation("m", x, None, y_pred=x["a"] * x["b"]) for x in rows(TRUSTED + 500)]
    with caplog.at_level(logging.INFO):
        run(state, stream[: TRUSTED - 1])
        assert told(caplog) == []
        run(state, stream[TRUSTED - 1 :])
    (said,) = told(caplog)
    fidelity = re.fullmatch(
        r"model m: the mirror's fidelity is (-?\d\.\d\d), below 0\.9 \(models\.m\.fidelity\), at its observation 1000: "
        r"it explains too little of the logged predictions for its importances to be those of the model in service",
        said,
    )
    assert fidelity is not None
    assert float(fidelity[1]) < 0.2


@pytest.mark.long
def test_a_mirror_that_recovers_is_said_to_and_the_next_fall_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    state = state_of(mode="mirror", fidelity=0.8, **LINEAR)
    good = [Observation("m", x, None, y_pred=served(x)) for x in rows(TRUSTED + 500)]
    # Another scale of the same thing, which the mirror learns in time.
    other = [Observation("m", x, None, y_pred=-served(x)) for x in rows(4000, seed=2)]
    with caplog.at_level(logging.INFO):
        run(state, good)
        assert told(caplog) == []
        run(state, other)
        run(state, [Observation("m", x, None, y_pred=served(x)) for x in rows(4000, seed=3)])
    assert [re.sub(r"-?\d+\.\d+", "?", one).split(",")[0] for one in told(caplog)] == [
        "model m: the mirror's fidelity is ?",
        "model m: the mirror's fidelity is ? again",
        "model m: the mirror's fidelity is ?",
        "model m: the mirror's fidelity is ? again",
    ]
    assert not state.doubt.is_open


def test_a_model_that_is_no_mirror_is_not_doubted(caplog: pytest.LogCaptureFixture) -> None:
    state = state_of(**LINEAR)
    with caplog.at_level(logging.INFO):
        run(state, [Observation("m", x, x["a"] * x["b"]) for x in rows(TRUSTED + 200)])
    assert told(caplog) == []
