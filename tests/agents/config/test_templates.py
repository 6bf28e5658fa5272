"""Templates: which settings a model id has, and which templates are refused."""

from __future__ import annotations

import pickle
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.templates import Finder, common_id, example_of
from attributary_agents.errors import ConfigError

MODEL: dict[str, Any] = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}


def models(**named: dict[str, Any]) -> dict[str, Any]:
    return {"models": {name: {**MODEL, **own} for name, own in named.items()}}


def refusal(**named: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(models(**named))
    return str(caught.value).removeprefix("configuration: ")


def test_an_id_wins_over_templates_and_a_longer_template_over_a_shorter_one() -> None:
    alphas = {"*": 0.1, "store-*": 0.2, "store-??": 0.3, "store-[0-4]x": 0.4, "store-7": 0.5}
    config = parse_config(models(**{name: {"alpha": alpha} for name, alpha in alphas.items()}))
    found = {name: config.find(name) for name in ("bank", "store-1", "store-123", "store-12", "store-3x", "store-7")}
    assert {name: one and one.alpha for name, one in found.items()} == {
        "bank": 0.1,
        "store-1": 0.2,
        "store-123": 0.2,
        "store-12": 0.3,
        "store-3x": 0.4,
        "store-7": 0.5,
    }
    assert config.finder.template_of("store-7") is None
    assert config.finder.name_of("store-9") == "store-*"


def test_what_matches_nothing_and_a_template_itself_is_no_model_id() -> None:
    config = parse_config(models(**{"store-*": {}, "bank": {}}))
    assert [config.find(name) for name in ("Store-1", "my-store-1", "store-*", "bank2", "store")] == [None] * 5
    keys = (b"bank", b"store-1", b"store-*", b"\xff", b"store-\x00", b"store-" + b"x" * 300, b"", None)
    assert [config.finder.id_of_key(key) for key in keys] == ["bank", "store-1", *[None] * 6]
    assert config.finder.ids == ("bank",)


def test_a_copy_with_other_models_and_a_pickle_find_their_own() -> None:
    config = parse_config(models(**{"store-*": {"idle": 60}}))
    assert config.find("store-1") is not None
    other = config.model_copy(update={"models": {"bank": config.models["store-*"]}})
    assert (other.find("store-1"), other.find("bank")) == (None, config.models["store-*"])
    again = pickle.loads(pickle.dumps(config))
    assert again.find("store-1") == config.models["store-*"]


def test_settings_are_of_the_id_then_of_its_template_then_defaults() -> None:
    data = models(
        **{
            "store-*": {"alpha": 0.2, "seed": 2, "max_models": 5, "change": {"window": 300}},
            "store-7": {"seed": 3, "change": {"margin": 0.5}},
            "bank": {},
        }
    )
    data["models"]["store-7"]["model"] = {"class": "river.linear_model.LinearRegression"}
    config = parse_config({**data, "defaults": {"alpha": 0.1, "seed": 1, "max_text": 7}})
    own, of_template, other = config.models["store-7"], config.find("store-8"), config.models["bank"]
    assert of_template is not None
    assert [one.alpha for one in (own, of_template, other)] == [0.2, 0.2, 0.1]
    assert [one.seed for one in (own, of_template, other)] == [3, 2, 1]
    assert [one.max_text for one in (own, of_template, other)] == [7, 7, 7]
    assert own.change is not None
    assert (own.change.window, own.change.margin) == (300, 0.5)
    assert own.spec == {"model": {"class": "river.linear_model.LinearRegression", "params": {}}}
    assert own.max_models is None


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("60s", 60.0), ("5m", 300.0), ("3h", 10_800.0), ("1d", 86_400.0), ("1.5 h", 5400.0), (60, 60.0), ("0.5", 0.5)],
)
def test_a_duration_is_a_number_of_seconds_or_has_a_unit(written: Any, seconds: float) -> None:
    assert parse_config(models(**{"store-*": {"idle": written}})).models["store-*"].idle == seconds


def test_what_a_template_may_not_have_and_what_only_it_may_have_is_refused_in_one_line() -> None:
    assert refusal(bank={"idle": "1d"}) == "models: bank.idle: only a template has it, a model id with *, ? or ["
    assert refusal(bank={"max_models": 3}).startswith("models: bank.max_models: only a template has it")
    assert refusal(**{"store-*": {"sharded": True, "learn": False}}) == (
        "models: store-*.sharded: a template's models cannot be sharded: give the model's own id"
    )
    assert refusal(**{"store-*": {"idle": "1 fortnight"}}) == (
        "models.store-*.idle: expected a duration, such as 60s, 5m, 3h or 1d, or a number of seconds, got '1 fortnight'"
    )
    for wrong in ("0s", -1, 0):
        assert "models.store-*.idle should be greater than 0" in refusal(**{"store-*": {"idle": wrong}})
    assert "models.store-*.max_models" in refusal(**{"store-*": {"max_models": 0}})
    assert refusal(**{"[*]": {}}) == "models: [*]: no model id matches it: one has no *, ? or ["


def test_two_templates_of_equal_length_are_refused_where_both_can_match() -> None:
    assert refusal(**{"a-*": {}, "*-b": {}}) == (
        "models: the templates '*-b' and 'a-*' are equally long, and both match 'a-b': the longer one would win; "
        "write one of them longer, or other ids"
    )
    parse_config(models(**{"a-*": {}, "b-*": {}, "*-cc": {}, "[x-z]": {}, "[!-]?": {}}))


def test_common_ids_are_those_of_an_enumeration() -> None:
    tokens = ("a", "b", "?", "*", "[ab]", "[!a]", "[b-c]")
    globs = ["".join(parts) for n in (1, 2, 3) for parts in product(tokens, repeat=n)]
    ids = ["".join(parts) for n in range(4) for parts in product("abcd", repeat=n)]
    matching = {glob: {one for one in ids if fnmatchcase(one, glob)} for glob in globs}
    pairs = [(one, other) for i, one in enumerate(globs) for other in globs[i % 7 :: 7]]
    n_common = 0
    for one, other in pairs:
        found = common_id(one, other)
        # Globs of three parts that have an id in common have one of three characters, of these four.
        assert (found is not None) == bool(matching[one] & matching[other]), (one, other, found)
        if found is not None:
            n_common += 1
            assert fnmatchcase(found, one)
            assert fnmatchcase(found, other)
            assert len(found) == min(map(len, matching[one] & matching[other])), (one, other, found)
    assert 0 < n_common < len(pairs)


@pytest.mark.parametrize("template", ["store-*", "*", "??-[0-9]*", "[!a-z]", "a[]x]b", "s[", "x?y"])
def test_an_example_is_a_model_id_that_its_template_matches(template: str) -> None:
    if template == "s[":
        with pytest.raises(ValueError, match="matches no model id"):
            example_of(template)
        return
    found = example_of(template)
    assert fnmatchcase(found, template)
    config = parse_config(models(**{template: {}}))
    assert Finder(config.models).name_of(found) == template
    tried, model_id = config.with_one_of(template)
    assert (tried.find(model_id), model_id) == (config.models[template], found)
    assert config.with_one_of("store-7") == (config, "store-7")
