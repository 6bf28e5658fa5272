"""`model: {mlflow: …}` and the section `mlflow`: what is accepted, what each fault says, and that no secret is said."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.config.mlflow import Registered
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError
from attributary_agents.models.deployments import Job
from attributary_topics import Deployment

SECRET = "s3cret-of-mlflow"


def config(model: Any = "models:/bank@champion", name: str = "bank", **sections: Any) -> Config:
    model = {"mlflow": model} if isinstance(model, str) else model
    return parse_config({"models": {name: {"model": model, "learn": False}}, **sections})


def test_an_alias_a_version_and_a_folder() -> None:
    assert config().models["bank"].registered == Registered("bank", alias="champion")
    assert config("models:/bank/3").models["bank"].registered == Registered("bank", version="3")
    folder = config({"mlflow": "bank-3", "sha256": "0" * 64}).models["bank"]
    assert folder.registered is None
    assert folder.spec == {"mlflow": "bank-3", "sha256": "0" * 64}
    assert config().models["bank"].spec == {"mlflow": "models:/bank@champion"}
    assert config({"mlflow": "models:/bank@champion", "poll": "5m"}).models["bank"].model.poll == 300  # type: ignore[union-attr]
    assert str(Registered.read("models:/bank@champion")) == "models:/bank@champion"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("models:/bank", "models.bank.model.mlflow: expected models:/NAME@ALIAS, models:/NAME/VERSION"),
        ("models:/bank/latest", "got 'models:/bank/latest'"),
        ("models:/bank/0", "got 'models:/bank/0'"),
        ("runs:/abc/model", "got 'runs:/abc/model'"),
        ({"mlflow": "models:/bank/3", "sha256": "0" * 64}, "models.bank.model.sha256: it is of a folder"),
        ({"mlflow": "models:/bank@champion", "poll": "100ms"}, "models.bank.model.poll"),
        ({"mlflow": "models:/bank@champion", "every": 1}, "unknown key 'models.bank.model.every'"),
    ],
)
def test_what_a_model_cannot_be_is_said_in_a_line(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_template_has_no_model_of_a_registry() -> None:
    with pytest.raises(ConfigError, match="a version of a registry is deployed to one model"):
        config(name="store-*")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"username": "me"}, "username and password (or password_file) belong together"),
        ({"username": "me", "password": SECRET, "password_file": "/f"}, "password and password_file are both given"),
        ({"username": "me", "password": SECRET, "token": SECRET}, "password and token are both given"),
        ({"tracking_uri": f"http://me:{SECRET}@mlflow:5000"}, "tracking_uri names a user"),
        ({"registry_uri": f"postgresql://me:{SECRET}@db/mlflow"}, "of a database the whole in MLFLOW_REGISTRY_URI"),
        ({"tracking_uri": f"postgresql:///db?host=h&password={SECRET}"}, "tracking_uri names a user or a password"),
        ({"url": "http://mlflow:5000"}, "unknown key 'mlflow.url'"),
    ],
)
def test_what_the_section_cannot_be_is_said_without_the_secret(section: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(mlflow=section)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


def test_secrets_go_to_who_asks_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    chosen = config(
        mlflow={"tracking_uri": "http://mlflow:5000", "username": "me", "password_file": str(tmp_path / "password")}
    )
    assert chosen.mlflow.environment() == {
        "MLFLOW_TRACKING_URI": "http://mlflow:5000",
        "MLFLOW_TRACKING_USERNAME": "me",
        "MLFLOW_TRACKING_PASSWORD": SECRET,
    }
    monkeypatch.setenv("ATTRIBUTARY_MLFLOW__TOKEN", SECRET)
    told = config()
    assert told.mlflow.environment() == {"MLFLOW_TRACKING_TOKEN": SECRET}
    assert SECRET not in repr(told)
    assert SECRET not in told.model_dump_json()
    # A process that builds a model runs code of the model's.
    job = pickle.dumps(Job.of(told, Deployment("bank", "4", {"mlflow": "models:/bank/4", "sha256": "0" * 64})))
    assert SECRET.encode() not in job
    assert SECRET in pickle.dumps(told.models["bank"]).decode("latin-1")  # or the line above would show nothing
