"""A real registry of MLflow, on SQLite, asked as workers and commands ask it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support.models.mlflow_registry import MlflowRegistry

from attributary_agents.cli.main import cli
from attributary_agents.config.mlflow import MlflowConfig, Registered
from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError, DeploymentError, FilesAwayError, RegistryAwayError
from attributary_agents.models.from_mlflow.flavours import load_folder
from attributary_agents.models.from_mlflow.folders import digest_of
from attributary_agents.models.from_mlflow.pyfunc import is_pyfunc
from attributary_agents.models.from_mlflow.registry import Registry, public
from attributary_agents.models.subprocess.process import run_apart
from attributary_agents.models.trial import check_models
from attributary_agents.models.versions import configured_version
from attributary_explainers import dump_model
from attributary_explainers.models.function import model_function

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
ROWS = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [20.0, 0.0]]
OWN = "tests.agents.models.from_mlflow.own_model.Threshold"
LABELS = ["no", "no", "no", "yes"]


def fitted() -> Any:
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(pd.DataFrame(ROWS, columns=["a", "b"]), LABELS)


def own() -> Any:
    from tests.agents.models.from_mlflow.own_model import Threshold

    return Threshold(10.0)


def signature() -> Any:
    import pandas as pd
    from mlflow.models import infer_signature

    return infer_signature(pd.DataFrame(ROWS, columns=["a", "b"]), pd.Series(LABELS))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> MlflowRegistry:
    """The model bank with three versions: of skops, of a pickle, and one that has python_function alone."""
    made = MlflowRegistry(tmp_path_factory.mktemp("mlflow"))
    made.register("bank", made.save(fitted()))
    made.register("bank", made.save(fitted(), serialization_format="cloudpickle"))
    made.register("bank", made.save(own(), "pyfunc", signature=signature()))
    made.point("bank", "challenger", "1")
    return made


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Forget what MLflow's client was given by the environment."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def of(registry: MlflowRegistry) -> Registry:
    return Registry(MlflowConfig(tracking_uri=registry.uri))


def test_what_there_is_and_what_is_missing_in_a_line(registry: MlflowRegistry) -> None:
    registry.client.create_registered_model("empty")
    assert of(registry).version_of(Registered.read("models:/bank@challenger")) == "1"
    assert of(registry).version_of(Registered.read("models:/bank/2")) == "2"
    lacks = {
        "models:/bank@champion": "no alias 'champion'; it has challenger",
        "models:/empty@a": "no alias 'a'; it has none",
        "models:/bank/9": "no version 9; it has 3, 2, 1",
        "models:/bnak@a": "no model 'bnak' in the registry: did you mean 'bank'?",
        "models:/zzz/1": "no model 'zzz' in the registry; it has bank, empty",
    }
    for uri, lack in lacks.items():
        with pytest.raises(DeploymentError) as caught:
            of(registry).version_of(Registered.read(uri))
        assert (str(caught.value), caught.value.reason) == (f"model.mlflow: {uri}: {lack}", "wrong_artefact")
    registry.client.delete_registered_model("empty")


def test_what_is_fetched_has_the_digest_of_what_was_registered(registry: MlflowRegistry, tmp_path: Path) -> None:
    source = Path(registry.client.get_model_version("bank", "1").source)

    assert of(registry).fetch(Registered("bank", version="1"), tmp_path) == digest_of(source) == digest_of(tmp_path)
    with pytest.raises(DeploymentError, match="models:/bank/9: no version 9; it has 3, 2, 1"):
        of(registry).fetch(Registered("bank", version="9"), tmp_path)


def test_files_that_are_away_are_neither_a_registry_that_is_nor_a_lack_of_the_version(
    registry: MlflowRegistry, tmp_path: Path
) -> None:
    """Of a volume that is not mounted, MLflow's client gives an empty folder and says nothing."""
    stored, away = source(registry, 2), source(registry, 2).with_suffix(".away")
    said = f"models:/bank/2: its files cannot be had: there is no file MLmodel in {stored}"
    into = tmp_path / "into"
    into.mkdir()
    config = parse_config(yaml.safe_load(write(registry, tmp_path, "models:/bank/2").read_text()))
    stored.rename(away)
    try:
        with pytest.raises(FilesAwayError) as caught:
            of(registry).fetch(Registered("bank", version="2"), into)
        assert str(caught.value) == said
        with pytest.raises(ConfigError) as refused:
            configured_version(config.models["bank"])
        assert str(refused.value) == said
    finally:
        away.rename(stored)


def test_a_registry_that_is_away_is_no_registry_without_the_model(tmp_path: Path) -> None:
    for uri, said in [
        (f"sqlite:///{tmp_path / 'none.db'}", "there is no database"),
        ("http://127.0.0.1:1", "Connection refused"),
    ]:
        with pytest.raises(RegistryAwayError, match=said):
            Registry(MlflowConfig(tracking_uri=uri)).version_of(Registered.read("models:/bank@a"))
    assert not (tmp_path / "none.db").exists()


def test_secrets_are_for_the_client_and_not_for_who_builds(registry: MlflowRegistry, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret")
    given = {"tracking_uri": registry.uri, "username": "me", "password_file": tmp_path / "password"}
    Registry(MlflowConfig.model_validate(given)).version_of(Registered.read("models:/bank/1"))
    assert (os.environ["MLFLOW_TRACKING_USERNAME"], os.environ["MLFLOW_TRACKING_PASSWORD"]) == ("me", "s3cret")
    seen = asyncio.run(run_apart(f"{__name__}:environment_here", b"", within_s=60))
    assert b"MLFLOW_TRACKING_URI" in seen
    assert b"s3cret" not in seen
    (tmp_path / "password").unlink()
    with pytest.raises(ConfigError, match=r"^mlflow\.password_file: cannot read "):
        Registry(MlflowConfig.model_validate(given)).version_of(Registered.read("models:/bank/1"))


def environment_here(_payload: bytes) -> Callable[[], bytes]:
    return lambda: repr(dict(os.environ)).encode()


def test_what_the_client_says_is_told_without_passwords_and_signatures() -> None:
    said = "403 for url: https://me:SECRET@store/4/MLmodel?X-Amz-Signature=SECRET and ftp://u:SECRET@h/a"
    assert public(said) == "403 for url: https://***@store/4/MLmodel?*** and ftp://***@h/a"


def source(registry: MlflowRegistry, version: int) -> Path:
    return Path(registry.client.get_model_version("bank", str(version)).source)


def test_native_flavours_have_probabilities_and_the_same_ones(registry: MlflowRegistry) -> None:
    expected = fitted().predict_proba(ROWS)
    for version in (1, 2):
        model = load_folder("bank", source(registry, version), ["river."])
        assert not is_pyfunc(model)
        assert model.predict_proba(ROWS) == pytest.approx(expected, abs=1e-12)


def test_python_function_alone_has_labels_and_says_so(
    registry: MlflowRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    model = load_folder("models:/bank/3", source(registry, 3), ["river."])
    assert is_pyfunc(model)
    assert "models:/bank/3: it has the flavour python_function alone: it predicts labels" in caplog.text
    function = model_function(model, "label")
    assert [function({"b": b, "a": a}) for a, b in ROWS] == [{label: 1.0} for label in LABELS]
    assert dump_model(model)


def write(registry: MlflowRegistry, folder: Path, uri: str, **model: Any) -> Path:
    path = folder / "attributary.yaml"
    features = {"a": "number", "b": "number"}
    settings = {"model": {"mlflow": uri}, "learn": False, "features": features, **model}
    path.write_text(yaml.safe_dump({"mlflow": {"tracking_uri": registry.uri}, "models": {"bank": settings}}))
    return path


def test_check_rehearses_the_version_that_the_alias_is_at(registry: MlflowRegistry, tmp_path: Path) -> None:
    lines = [json.dumps({"a": a, "b": b, "y": label}) for (a, b), label in zip(ROWS * 10, LABELS * 10, strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    sample = ["--offline", "--sample", str(tmp_path / "rows.jsonl"), "--target", "y"]
    path = write(registry, tmp_path, "models:/bank@challenger")
    done = CliRunner().invoke(cli, ["check", "-c", str(path), *sample])
    assert done.exit_code == 0, done.output
    assert "bank: works: 40 of 40 rows used" in done.output
    assert "models:/bank@challenger is version 1 now" in done.output
    path = write(registry, tmp_path, "models:/bank@champion")
    done = CliRunner().invoke(cli, ["check", "-c", str(path), *sample])
    assert done.exit_code == 2
    assert "model.mlflow: models:/bank@champion: no alias 'champion'; it has challenger" in done.output
    path = write(registry, tmp_path, "models:/bank/3", loss="expected_zero_one")
    done = CliRunner().invoke(cli, ["check", "-c", str(path), *sample])
    assert done.exit_code == 2
    assert f"write `state: {{allowed: [{OWN}]}}` into the configuration" in done.output
    path.write_text(path.read_text() + f"state: {{allowed: [{OWN}]}}\n")
    done = CliRunner().invoke(cli, ["check", "-c", str(path), *sample])
    assert done.exit_code == 0, done.output
    assert "bank: works: 40 of 40 rows used" in done.output
    assert "it has the flavour python_function alone" in done.output


def test_a_start_says_what_is_missing_and_goes_on_without_the_registry(
    registry: MlflowRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    raw = yaml.safe_load(write(registry, tmp_path, "models:/bank@challenger").read_text())
    check_models(parse_config(raw))
    raw["models"]["bank"]["model"]["mlflow"] = "models:/bank@champion"
    with pytest.raises(ConfigError, match=r"models\.bank: model\.mlflow: models:/bank@champion: no alias 'champion'"):
        check_models(parse_config(raw))
    raw["mlflow"]["tracking_uri"] = f"sqlite:///{tmp_path / 'none.db'}"
    check_models(parse_config(raw))
    assert "MLflow's registry cannot be asked: there is no database" in caplog.text
    del raw["mlflow"]
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(ConfigError, match=r"models\.bank: mlflow\.tracking_uri is not given, and neither is"):
        check_models(parse_config(raw))


def test_a_version_is_tried_before_it_is_deployed(registry: MlflowRegistry, tmp_path: Path) -> None:
    path = write(registry, tmp_path, "models:/bank@challenger")
    arguments = ["models", "deploy", "bank", "-c", str(path), "--json", "--dry-run", "--mlflow"]
    done = CliRunner().invoke(cli, [*arguments, "models:/bank@challenger"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said == {
        "model_id": "bank",
        "version": "1",
        "mlflow": "models:/bank/1",
        "sha256": digest_of(source(registry, 1)),
        "sent": False,
    }
    done = CliRunner().invoke(cli, [*arguments, "models:/bank@champion"])
    assert isinstance(done.exception, ConfigError)
    assert "no alias 'champion'; it has challenger" in str(done.exception)


@pytest.mark.parametrize("written", [{"mlflow": "models:/bank@challenger"}, {"model": {"mlflow": "models:/bank/1"}}])
def test_a_version_in_a_file_is_refused_without_its_hash_which_is_said(
    written: dict[str, Any], registry: MlflowRegistry, tmp_path: Path
) -> None:
    path = write(registry, tmp_path, "models:/bank@challenger")
    named, digest = tmp_path / "next.yaml", digest_of(source(registry, 1))
    arguments = ["models", "deploy", "bank", str(named), "-c", str(path), "--dry-run"]
    named.write_text(yaml.safe_dump({"version": "2", **written}))
    done = CliRunner().invoke(cli, arguments)
    assert f"has no hash; write mlflow: models:/bank/1, sha256: {digest}" in str(done.exception)
    named.write_text(yaml.safe_dump({"version": "2", "mlflow": "models:/bank/1", "sha256": digest}))
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
