"""Configuration: what is accepted, what wins, and that every refusal says where, what and why."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from attributary_agents.config.environment import forget_settings
from attributary_agents.config.explainers import ChangeConfig
from attributary_agents.config.reading import EXAMPLE, load_config, parse_config
from attributary_agents.errors import ConfigError
from attributary_explainers import ChangeExplainer

MODEL: dict[str, Any] = {"model": {"class": "river.naive_bayes.GaussianNB"}}


def with_model(**settings: Any) -> dict[str, Any]:
    return {"models": {"m": {**MODEL, **settings}}}


def at(path: str, value: Any) -> dict[str, Any]:
    """A valid configuration, but for `value` at the dotted path."""
    data: dict[str, Any] = with_model(
        explainers={"pfi": {}}, change={}, publish={}, model={"class": "river.naive_bayes.GaussianNB", "params": {}}
    )
    *parents, last = path.split(".")
    place = data
    for parent in parents:
        place = place.setdefault(parent, {})
    place[last] = value
    return data


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(data)
    return str(caught.value)


def test_the_example_parses() -> None:
    config = parse_config(yaml.safe_load(EXAMPLE))

    assert list(config.models) == ["credit"]
    assert config.models["credit"].explainers.sage.n_samples == 5
    assert config.kafka.changelog == "attributary-state-changelog"


def test_one_model_is_enough_and_no_model_is_not() -> None:
    assert parse_config(with_model()).models["m"].explainers.of_importance == ("pfi",)
    assert "models is missing" in refusal({})
    assert "models" in refusal({"models": {}})


UNKNOWN_KEYS = """
kafak  kafka.borkers  models.m.lern  models.m.model.parms  models.m.explainers.pfi.n_sample  models.m.change.windows
models.m.publish.evry  defaults.lern  defaults.change.windows  defaults.model  defaults.factory  defaults.features
defaults.groups  control.alowed  artefacts.folder  checkpoint.interval  web.prot  metrics.max_feature  log.levle
"""


@pytest.mark.parametrize("path", UNKNOWN_KEYS.split())
def test_an_unknown_key_is_named_with_its_path(path: str) -> None:
    message = refusal(at(path, 1))

    assert path.rpartition(".")[2] in message
    assert path.split(".")[0] in message
    assert "unknown key" in message


def test_an_unknown_explainer_is_named() -> None:
    message = refusal(at("models.m.explainers.shap", {}))
    assert "models.m.explainers.shap" in message
    assert "pfi, sage, mdi, pdp" in message


@pytest.mark.parametrize("name", ["_env_file", "_env_prefix", "_case_sensitive", "_cli_parse_args"])
def test_the_settings_library_s_own_arguments_are_unknown_keys(name: str) -> None:
    assert name in refusal({**with_model(), name: "x"})


def test_a_key_that_is_no_text_is_refused() -> None:
    assert "1" in refusal({**with_model(), 1: "x"})  # type: ignore[dict-item]


WRONG_VALUES = [
    ("kafka.brokers", [], "at least 1 item"),
    ("kafka.brokers", "localhost:9092", "list"),
    ("kafka.group", "a b", "'^[A-Za-z0-9._-]{1,200}$'"),
    ("kafka.topic_prefix", "", "'^[A-Za-z0-9._-]{1,200}$'"),
    ("kafka.partitions", 0, "greater than or equal to 1"),
    ("kafka.partitions", "four", "integer"),
    ("artefacts.directory", -1, "the path of a file or folder"),
    ("kafka.partitions", 7.5, "a valid integer, got 7.5"),
    ("models.m.explainers.mdi", ["x"], "should be a mapping, got"),
    ("models.m.watch_loss", "perhaps", "true or false"),
    ("models.m.watch_loss", [], "true or false or {reference: …, target: …}"),
    ("kafka.session_timeout_s", -1, "greater than 0"),
    ("kafka.transaction_timeout_s", 0, "greater than or equal to 1"),
    ("delivery", "once", "'at_least_once' or 'exactly_once'"),
    ("models.m.alpha", 1.5, "less than or equal to 1"),
    ("models.m.alpha", 0, "greater than or equal to 0.0000000000000001"),
    ("models.m.alpha", 5e-324, "greater than or equal to 0.0000000000000001"),
    ("models.m.loss", "hinge", "cross_entropy"),
    ("models.m.loss", {"cost": {"false_negative": 1}}, "costs by name"),
    ("models.m.change.loss", {"costs": {"false_negative": 1, "false_positive": 1}}, "costs by name"),
    ("models.m.loss", 3, "text"),
    ("models.m.learn", "perhaps", "true or false"),
    ("models.m.seed", "x", "integer"),
    ("models.m.features", {"a": "numeric"}, "number"),
    ("models.m.groups", ["a"], "a mapping"),
    ("models.m.explainers.pfi.n_samples", 0, "greater than or equal to 1"),
    ("models.m.explainers.pfi.reservoir", "fifo", "'geometric', 'lagged', 'sliding_window' or 'uniform'"),
    (
        "models.m.explainers.pfi.removal",
        "magic",
        "'interventional', 'observational', 'observational-trees' or 'product'",
    ),
    ("models.m.explainers.pfi.sampling", "lucky", "'independent' or 'stratified'"),
    ("models.m.explainers.sage.n_permutations", 0, "greater than or equal to 1"),
    ("models.m.missing", "ignore", "'absent', 'skip' or 'value'"),
    ("models.m.explainers.pfi.reservoir_size", 0, "greater than or equal to 1"),
    ("models.m.explainers.pfi.alpha", 2, "less than or equal to 1"),
    ("models.m.change.window", 19, "greater than or equal to 20"),
    ("models.m.change.threshold", -0.1, "greater than or equal to 0"),
    ("models.m.change.detector", "cusum", "'adwin', "),
    ("models.m.bounds", {"a": [3.0, 1.0]}, "a: expected [least, greatest], got [3.0, 1.0]"),
    ("models.m.bounds", {"a": [float("nan"), 1.0]}, "a: expected finite numbers or null"),
    ("models.m.bounds", {"a": 3}, "a list"),
    ("models.m.label_bounds", [3.0, 1.0], "expected [least, greatest], got [3.0, 1.0]"),
    ("models.m.label_bounds", [None, float("inf")], "expected finite numbers or null"),
    ("models.m.change.margin", -0.1, "greater than or equal to 0"),
    ("models.m.change.discrepancy", "squared", "'relative' or 'absolute'"),
    ("models.m.change.batch_size", 0, "greater than or equal to 1"),
    ("models.m.change.n_samples", 0, "greater than or equal to 1"),
    ("models.m.change.watch_discrepancy", "perhaps", "true or false"),
    ("models.m.change.one_sided", "perhaps", "true or false"),
    ("models.m.change.importances", [], "at least 1 item"),
    ("models.m.change.importances", ["mdi"], "'pfi' or 'sage'"),
    ("models.m.version", "", "at least 1 character"),
    ("defaults.alpha", 1.5, "less than or equal to 1"),
    ("defaults.change.window", 19, "greater than or equal to 20"),
    ("control.allowed", ["../x"], "Packages, modules or classes"),
    ("control.allowed", "river", "list"),
    ("models.m.change.signal", "error", "'zero_one' or 'loss'"),
    ("models.m.change.distance", "l2", "'label', 'probability' or 'number'"),
    ("models.m.change.loss", "hinge", "cross_entropy"),
    ("models.m.explain.budget", 1.0, "less than 1"),
    ("models.m.explain.budget", 0.0, "greater than 0"),
    ("models.m.explain.every", 0, "greater than or equal to 1"),
    ("models.m.explain.feature_share", 0.0, "greater than 0"),
    ("models.m.explain.feature_share", 1.1, "less than or equal to 1"),
    ("models.m.explain.max_lag", 0, "greater than or equal to 1"),
    ("models.m.publish.every", 0, "greater than or equal to 1"),
    ("models.m.publish.material_shift", 0, "greater than 0"),
    ("checkpoint.interval_s", 0, "greater than 0"),
    ("checkpoint.max_observations", 0, "greater than or equal to 1"),
    ("web.port", 70000, "less than or equal to 65535"),
    ("metrics.max_models", 0, "greater than or equal to 1"),
    ("log.level", "LOUD", "'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
    ("max_observation_bytes", 0, "greater than or equal to 1"),
]


@pytest.mark.parametrize(("path", "value", "expectation"), WRONG_VALUES)
def test_a_wrong_value_is_named_with_its_path_and_what_was_expected(path: str, value: Any, expectation: str) -> None:
    message = refusal(at(path, value))

    assert path in message
    assert expectation in message
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    assert repr(value) in message or repr(inner[0]) in message


def test_a_cost_that_is_none_is_named() -> None:
    message = refusal(at("models.m.loss", {"cost": {"false_negative": 100, "false_positive": 0}}))
    assert message == "configuration: models.m.loss: loss.cost.false_positive must be a number > 0 and < 1e+150, got 0"


def test_what_only_sage_has_is_refused_for_pfi() -> None:
    message = refusal(at("models.m.explainers.pfi.bias_correction", False))
    assert re.search(r"models\.m\.explainers.*pfi has no bias_correction: only sage has", message)


def test_every_fault_is_named() -> None:
    assert re.search(
        r"models\.m\.alpha.*web\.port|web\.port.*models\.m\.alpha",
        refusal({**at("models.m.alpha", 7), "web": {"port": -1}}),
    )


@pytest.mark.parametrize(
    ("parameters", "name"), [({"delta": 5}, "adwin.delta"), ({"clock": 0}, "adwin.clock"), ({"gamma": 1}, "gamma")]
)
def test_wrong_detector_parameters_are_refused_with_their_model(parameters: dict[str, Any], name: str) -> None:
    message = refusal(at("models.m.change.detector_params", parameters))
    assert name in message
    assert "models.m" in message


@pytest.mark.parametrize("settings", [{"factory": "module:function"}, {"model": None}])
def test_both_or_neither_of_model_and_factory_is_refused_with_its_model(settings: dict[str, Any]) -> None:
    message = refusal(with_model(**settings))
    assert "either `model`" in message
    assert "`factory`" in message
    assert "models.m" in message


@pytest.mark.parametrize("model_id", ["a\nb", "x" * 250, ""])
def test_a_model_id_that_no_record_can_carry_is_refused(model_id: str) -> None:
    assert f"model id {model_id!r}" in refusal({"models": {model_id: MODEL}})


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__GROUP", "blue")
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__BROKERS", '["one:9092", "two:9092"]')
    monkeypatch.setenv("ATTRIBUTARY_MODELS__M__ALPHA", "0.5")
    monkeypatch.setenv("ATTRIBUTARY_MODELS__M__EXPLAINERS__PFI__N_SAMPLES", "7")
    monkeypatch.setenv("ATTRIBUTARY_MODELS__M__FEATURES", '{"a": "number"}')
    monkeypatch.setenv("ATTRIBUTARY_MAX_OBSERVATION_BYTES", "10")
    config = parse_config(
        {**with_model(alpha=0.1, explainers={"pfi": {"n_samples": 2}}), "kafka": {"group": "green", "partitions": 2}}
    )

    assert config.kafka.group == "blue"
    assert config.kafka.brokers == ["one:9092", "two:9092"]
    assert config.kafka.partitions == 2
    assert config.models["m"].alpha == 0.5
    assert config.models["m"].explainers.pfi.n_samples == 7
    assert config.models["m"].features == {"a": "number"}
    assert config.max_observation_bytes == 10


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ATTRIBUTARY_WEB__PORT", "http", "web.port"),
        ("ATTRIBUTARY_WEB__PORT", "http", "'http'"),
        ("ATTRIBUTARY_KAFKA", "{not json", "ATTRIBUTARY_KAFKA: expected JSON"),
        ("ATTRIBUTARY_KAFKA__GRUOP", "x", "kafka.gruop"),
        *(
            (f"ATTRIBUTARY_{name}", "x", f"unknown environment variable ATTRIBUTARY_{name}:")
            for name in ("BROKERS", "KAFAK__GROUP", "")
        ),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    monkeypatch.setenv(name, value)
    assert said in refusal(with_model())


@pytest.mark.parametrize("name", ["ATTRIBUTARY_CONFIG", "ATTRIBUTARY_KAFKA_LIB"])
def test_a_variable_that_is_no_setting_is_left_to_its_reader(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plain = parse_config(with_model())
    monkeypatch.setenv(name, "0")
    assert parse_config(with_model()) == plain


def test_a_file_is_read_and_named_in_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(with_model(alpha=0.25)))
    assert load_config(path).models["m"].alpha == 0.25

    path.write_text(yaml.safe_dump(with_model(alpha=25)))
    with pytest.raises(ConfigError, match=r"attributary\.yaml: models\.m\.alpha"):
        load_config(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"models: [", "not YAML"),
        (b"\xff\xfe\x00", "not YAML"),
        (b"models: {m: {model: {class: !!python/object:os.system x}}}", "not YAML"),
        (b"- models", "expected a mapping"),
        (b"just text", "expected a mapping"),
        (b"", "models is missing"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)

    assert str(path) in str(caught.value)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(ConfigError, match=f"{path}(?s:.*)attributary config example"):
            load_config(path)
    with pytest.raises(ConfigError, match="--config"):
        load_config(None)


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("kafka: {group: a}\nmodels: {}\nkafka: {group: b}\n")
    with pytest.raises(ConfigError, match="kafka is given twice"):
        load_config(path)


def test_a_file_is_parsed_by_libyaml_and_its_faults_are_told_by_the_parser_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(with_model()))
    loaders: list[type[Any]] = []
    load = yaml.load

    def noted(text: str, loader: type[Any]) -> Any:
        loaders.append(loader)
        return load(text, loader)

    monkeypatch.setattr(yaml, "load", noted)
    load_config(path)
    assert [issubclass(loader, yaml.CSafeLoader) for loader in loaders] == [True]

    loaders.clear()
    path.write_text("models:\n\tm: 1\n")
    with pytest.raises(ConfigError, match="a tab in line 2"):
        load_config(path)
    assert [issubclass(loader, yaml.SafeLoader) for loader in loaders] == [False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"detector": "ddm", "signal": "loss"}, "zero_one with ddm"),
        ({"detector": None, "watch_discrepancy": False}, "watch_discrepancy is off"),
        ({"importances": ["pfi", "pfi"]}, "each method once"),
        ({"detector": "page_hinkley", "detector_params": {"clock": 1}}, "clock"),
    ],
)
def test_what_the_change_explainer_refuses_is_refused_with_its_model(change: dict[str, Any], said: str) -> None:
    message = refusal(with_model(change=change))
    assert said in message
    assert "models.m.change" in message


def test_every_parameter_of_the_change_explainer_can_be_configured() -> None:
    parameters = set(inspect.signature(ChangeExplainer.__init__).parameters) - {"self", "model"}
    elsewhere = {"groups", "seed", "version", "own_labels"}  # of the model, the last by its mode
    assert parameters == set(ChangeConfig.model_fields) | elsewhere


def test_clipping_needs_bounds() -> None:
    assert "models.m: `clip: true` needs `bounds`" in refusal(with_model(clip=True))
    assert parse_config(with_model(clip=True, bounds={"*": [-1e9, None]})).models["m"].bounds == {"*": (-1e9, None)}


def test_change_explanation_as_configured_by_default_is_that_of_the_library() -> None:
    declared = inspect.signature(ChangeExplainer.__init__).parameters
    found = ChangeConfig().model_dump()
    assert found == {name: list(d) if isinstance(d := declared[name].default, tuple) else d for name in found}


@pytest.mark.parametrize("gone", ["min_observations", "cooldown", "max_restarts", "explain_data"])
def test_keys_of_change_that_are_gone_are_refused_by_name(gone: str) -> None:
    assert f"models.m.change.{gone}" in refusal(with_model(change={gone: 1}))


def test_defaults_stand_under_every_model_s_own_settings() -> None:
    defaults = {
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 3}, "sage": {"n_samples": 2}},
        "change": {"window": 500, "margin": 0.5, "detector_params": {"delta": 0.001}},
        "publish": {"every": 50},
    }
    explainers, change = {"sage": {"n_permutations": 2}}, {"window": 200, "detector_params": {"clock": 8}}
    own = {**MODEL, "alpha": 0.1, "explainers": explainers, "change": change}
    config = parse_config({"defaults": defaults, "models": {"m": own, "n": MODEL, "o": {**MODEL, "change": None}}})
    m, n, o = (config.models[name] for name in "mno")
    assert (m.alpha, n.alpha) == (0.1, 0.01)
    assert (m.explainers.pfi.n_samples, m.explainers.sage.n_samples) == (3, 2)
    assert (m.explainers.sage.n_permutations, n.explainers.sage.n_permutations) == (2, None)
    assert m.change is not None
    assert n.change is not None
    assert (m.change.window, m.change.margin, n.change.window) == (200, 0.5, 500)
    assert (m.change.detector_params, n.change.detector_params) == ({"clock": 8}, {"delta": 0.001})
    assert m.publish.every == n.publish.every == 50
    assert o.change is None
    config = parse_config({"defaults": {"change": None}, "models": {"m": own, "n": MODEL}})
    assert config.models["m"].change is not None, "a section overrides a default null"
    assert config.models["n"].change is None


def test_another_detector_leaves_the_default_one_s_parameters_behind() -> None:
    defaults = {"change": {"detector": "adwin", "detector_params": {"clock": 8}, "window": 50}}
    found = parse_config({"defaults": defaults, **with_model(change={"detector": "page_hinkley"})}).models["m"].change
    assert found is not None
    assert (found.detector, found.detector_params, found.window) == ("page_hinkley", None, 50)


@pytest.mark.parametrize("missing", [{"b": 0.0}, "skip"])
def test_a_policy_of_missing_values_replaces_the_default_as_a_whole(missing: Any) -> None:
    config = parse_config({"defaults": {"missing": {"a": 1.0}}, **with_model(missing=missing)})
    assert config.models["m"].missing == missing


def test_a_fault_of_the_defaults_is_named_there_and_once() -> None:
    message = refusal({"defaults": {"alhpa": 1}, "models": {"m": MODEL, "n": MODEL}})
    assert message.count("alhpa") == 1
    assert "unknown key 'defaults.alhpa'" in message


def test_defaults_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTRIBUTARY_DEFAULTS__ALPHA", "0.5")
    monkeypatch.setenv("ATTRIBUTARY_MODELS__N__ALPHA", "0.25")
    config = parse_config({"defaults": {"alpha": 0.1}, "models": {"m": MODEL, "n": MODEL}})
    assert (config.models["m"].alpha, config.models["n"].alpha) == (0.5, 0.25)


class TestStateKey:
    def test_is_read_from_the_value_or_the_file_and_shown_nowhere(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_text("f" * 40 + "\n")
        given, filed = (
            parse_config({**with_model(), "state": state}) for state in ({"key": "g" * 32}, {"key_file": file})
        )
        assert (given.state.read_key(), filed.state.read_key()) == (b"g" * 32, b"f" * 40)
        assert parse_config(with_model()).state.read_key() is None
        assert "ggg" not in f"{given!r} {given.model_dump(mode='json')} {given.model_dump_json()}"

    @pytest.mark.parametrize(
        ("state", "said"),
        [
            ({"key": "secret-and-short"}, "32 characters or more, got 16"),
            ({"key": "s" * 32, "key_file": "/nowhere"}, "give one of them"),
            ({"accept_unsigned": True}, "only with key"),
            ({"key": ["secret"]}, "state.key"),
        ],
    )
    def test_faults_are_told_without_the_key(self, state: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigError, match=said) as caught:
            parse_config({**with_model(), "state": state})
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(("content", "said"), [(None, "cannot read"), ("short", "32 characters or more")])
    def test_a_file_that_is_no_key_is_told_when_it_is_needed(
        self, tmp_path: Path, content: str | None, said: str
    ) -> None:
        file = tmp_path / "key"
        if content is not None:
            file.write_text(content)
        config = parse_config({**with_model(), "state": {"key_file": file}})
        with pytest.raises(ConfigError, match=said):
            config.state.read_key()


def test_explaining_has_a_budget_or_a_number_of_observations() -> None:
    assert "give either `budget`" in refusal(with_model(explain={"budget": 0.3, "every": 4}))
    assert parse_config(with_model()).models["m"].explain.budget is None


@pytest.mark.parametrize(("own", "default"), [({"budget": 0.3}, {"every": 4}), ({"every": 4}, {"budget": 0.3})])
def test_the_one_that_a_model_says_replaces_the_other_of_the_defaults(own: Any, default: Any) -> None:
    data = {**with_model(explain=own, publish={"every": 7}), "defaults": {"explain": {**default, "max_lag": 5}}}
    model = parse_config(data).models["m"]
    assert model.explain.model_dump(exclude_none=True) == {**own, "max_lag": 5, "feature_share": 1.0}
    assert model.publish.every == 7


def test_what_hundreds_of_models_have_alike_is_said_once() -> None:
    models = {f"m{n:03}": {"alpha": 7, "model": {"class": "river.naive_bayes.GaussianNB"}} for n in range(300)}
    models["m007"]["alpha"] = 8
    with pytest.raises(ConfigError) as raised:
        parse_config({"models": models})
    said = str(raised.value)
    assert "models.m000.alpha should be less than or equal to 1" in said
    assert "got 7 (and 298 more models alike)" in said
    assert "models.m007.alpha" in said
    assert len(said) < 400


def test_settings_of_the_shell_are_forgotten_where_brokers_are_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {"ATTRIBUTARY_KAFKA_LIB": "/jars", "ATTRIBUTARY_CONFIG": "a.yaml", "ATTRIBUTARY_OTHER": "1", "KAFKA": "2"}
    settings = {"ATTRIBUTARY_KAFKA__BROKERS": "somebody:9092", "ATTRIBUTARY_DELIVERY": "exactly_once"}
    for name, value in {**others, **settings}.items():
        monkeypatch.setenv(name, value)
    forget_settings()
    assert not settings.keys() & os.environ.keys()
    assert {name: os.environ[name] for name in others} == others


@pytest.mark.parametrize("said", [True, "true", "yes", 1])
def test_what_a_sharded_model_cannot_have_is_off_however_true_is_written(said: Any) -> None:
    (model,) = parse_config(with_model(learn=False, sharded=said)).models.values()
    assert (model.sharded, model.change, model.watch_loss, model.quality) == (True, None, False, [])
