"""What is read after other observations is what would be read alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.config.models import ModelConfig
from attributary_agents.worker.reading import ObservationReader
from attributary_topics import InvalidRecordError
from tests.agents.stand_ins import FACTORY

DECLARED = {"a": "number", "b": "any"}
CONFIGS: dict[str, dict[str, Any]] = {
    "free": {"max_features": 3, "max_text": 60},
    "declared": {"features": DECLARED, "max_text": 60},
    "skipping": {"max_features": 3, "missing": "skip"},
    "bounded": {"bounds": {"a": [-1, 1], "*": [-50, None]}, "label_bounds": [0, 9]},
    "clipped": {"bounds": {"a": [-1, 1]}, "clip": True, "features": DECLARED},
}
MAX_BYTES = 500

value_of = st.sampled_from([0.5, -2.0, 100, 3, True, None, "t", "t" * 70, -60.0, [1]])
names = st.sampled_from(["a", "b", "b", "c", "d", "n" * 250])
usual = st.permutations(["a", "b"]).flatmap(lambda order: st.fixed_dictionaries(dict.fromkeys(order, value_of)))
observations = st.builds(
    lambda x, y: json.dumps({"x": x, "y": y}).encode(),
    usual | usual | st.dictionaries(names, value_of, max_size=5),
    st.sampled_from([1, 0.5, 12, True, "yes", "y" * 70, None]),
)
values = observations | st.sampled_from([None, b"", b"{", b'{"x": {"a": NaN, "b": 1}, "y": 1}', b" " * 600])


def reader(name: str) -> ObservationReader:
    return ObservationReader(b"m", ModelConfig(factory=FACTORY, **CONFIGS[name]), MAX_BYTES)


def outcome(reading: ObservationReader, value: bytes | None) -> Any:
    try:
        found = reading.read(value)
    except InvalidRecordError as error:
        return error.reason, str(error)
    return found.model_id, list(found.x.items()), found.y


@pytest.mark.parametrize("name", CONFIGS)
@given(st.lists(values, min_size=1, max_size=12))
def test_what_came_before_changes_nothing(name: str, sent: list[bytes | None]) -> None:
    one = reader(name)
    for value in sent:
        assert outcome(one, value) == outcome(reader(name), value)


def test_each_check_of_an_observation_holds_after_others_like_it() -> None:
    def sent(x: dict[str, Any], y: Any = 1) -> bytes:
        return json.dumps({"x": x, "y": y}).encode()

    for name, good, bad, reason in (
        ("free", sent({"a": 1.0, "b": "t"}), sent({"a": 1.0, "b": "t" * 61}), "too_large"),
        ("free", sent({"a": 1.0, "b": 1.0}), sent({"a": 1.0, "b": 1.0}, "y" * 61), "too_large"),
        ("free", sent({"a": 1.0}), sent(dict.fromkeys("abcd", 1.0)), "too_large"),
        ("free", sent({"a": 1.0}), sent({"n" * 250: 1.0}), "too_large"),
        ("free", sent({"a": 1.0}), sent({"a": None}), "missing_feature"),
        ("free", sent({"a": 1.0}), sent({"a": 1.0}) + b" " * MAX_BYTES, "too_large"),
        ("declared", sent({"a": 1.0, "b": 1.0}), sent({"a": "t", "b": 1.0}), "wrong_type"),
        ("declared", sent({"a": 1.0, "b": 1.0}), sent({"a": 1.0, "c": 1.0}), "undeclared_feature"),
        ("bounded", sent({"a": 1.0, "b": 1.0}), sent({"a": 1.5, "b": 1.0}), "out_of_bounds"),
        ("bounded", sent({"a": 1.0, "b": 1.0}), sent({"a": 1.0, "b": 1.0}, 12), "out_of_bounds"),
    ):
        one = reader(name)
        assert outcome(one, good)[0] == "m"
        assert outcome(one, bad)[0] == reason
        assert outcome(one, good)[0] == "m"
    one = reader("clipped")
    for a in (0.5, 3.0):
        assert outcome(one, sent({"a": a, "b": 1.0}))[1] == [("a", min(a, 1.0)), ("b", 1.0)]
